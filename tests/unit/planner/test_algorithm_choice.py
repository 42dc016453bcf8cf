"""``auto`` chooses by predicted cost; processor time agrees with the choice."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.errors import SettingError
from muntin.model.settings import Algorithm

ROWS = 6_000


def engine(rate: float, names: Sequence[str] = "AB", **settings: str) -> muntin.Engine:
    found = muntin.Engine(replan="off", **settings)
    for name in names:
        found.execute(
            f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts TIMESTAMP) "
            f"WITH (rate = {rate}, distinct = 1000)"
        )
    return found


def seconds(query: str, rate: float, **settings: str) -> float:
    """Return the processor time of a query over random rows that come at a rate."""
    e = engine(rate, **settings)
    q = e.query(query, name="q")
    random = np.random.default_rng(1)
    times = pa.array(np.arange(ROWS) * round(1_000_000 / rate)).cast(pa.timestamp("us"))
    rows = {
        name: pa.table(
            {"k": random.integers(0, 1_000, ROWS), "v": random.integers(0, 9, ROWS), "ts": times}
        )
        for name in "AB"
    }
    begin = time.process_time()
    for name, table in rows.items():
        e.push(name, table)
    q.poll()
    return time.process_time() - begin


EQUAL = "SELECT A.v FROM A, B WHERE A.k = B.k WINDOW 2 SECONDS"
THETA = "SELECT A.v FROM A [RANGE 2 SECONDS], B [ROWS 2] WHERE A.k > B.k AND B.v = 3"


def test_large_windows_with_an_equality_are_hashed_and_that_takes_least_time() -> None:
    plan = engine(1_000)
    plan.query(EQUAL, name="q")
    text = plan.explain("q")
    assert "join: hash, algorithm eager" in text
    assert "seconds of work per second predicted; no index: " in text
    taken: dict[str, list[float]] = {"auto": [], "nested_loop": []}
    for _ in range(3):
        for method, each in taken.items():
            each.append(seconds(EQUAL, 1_000, join=method))
    assert min(taken["auto"]) < min(taken["nested_loop"]) / 2


def test_without_an_equality_windows_are_scanned_and_nothing_else_is_possible() -> None:
    plan = engine(2)
    plan.query(THETA, name="q")
    assert "join: nested loops, algorithm eager" in plan.explain("q")
    with pytest.raises(SettingError, match="no equality leads to"):
        plan.query(THETA + " WITH (join = 'hash')", name="hashed")


def test_tiny_windows_of_a_join_with_further_comparisons_are_scanned() -> None:
    plan = engine(1)
    plan.query("SELECT A.v FROM A, B WHERE A.k = B.k AND A.v > B.v WINDOW 1 SECOND", name="q")
    text = plan.explain("q")
    assert "join: nested loops" in text
    assert "all indexes: " in text
    assert "A, B cheaper to scan" in text


def test_tiny_windows_with_one_equality_keep_the_kernel_for_pairs() -> None:
    plan = engine(2)
    plan.query("SELECT A.v FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", name="q")
    assert "join: hash" in plan.explain("q")


def test_eager_and_lazy_are_compared_where_an_interval_is_given() -> None:
    plan = engine(1_000)
    every = EQUAL + " EVERY 100 MILLISECONDS"
    plan.query(every, name="q")
    (line,) = [line for line in plan.explain("q").splitlines() if "algorithm eager; " in line]
    eager, lazy = (float(line.split(f"{name} ")[-1].split(",")[0]) for name in ("eager", "lazy"))
    assert eager < lazy
    taken: dict[str, list[float]] = {"auto": [], str(Algorithm.LAZY): []}
    for _ in range(3):
        for algorithm, each in taken.items():
            each.append(seconds(every, 1_000, algorithm=algorithm))
    assert min(taken["auto"]) < 1.2 * min(taken[Algorithm.LAZY])
