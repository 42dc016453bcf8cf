"""Rows that probe are those of some keys where one key joins all streams."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
SECONDS = 40
TREE = "((A, B), (C, D))"


def epochs(random: np.random.Generator) -> dict[str, pa.Table]:
    """Return streams whose rows match only those of the same fifth of a second."""
    found = {}
    for name in "ABCD":
        times = START + np.sort(random.integers(0, SECONDS * SECOND, 30 * SECONDS))
        found[name] = pa.table(
            {"k": times // (SECOND // 5), "ts": pa.array(times).cast(pa.timestamp("us"))}
        )
    return found


def uniform(random: np.random.Generator) -> dict[str, pa.Table]:
    """Return streams of 30 keys that have nothing to do with time."""
    found = {}
    for name in "ABCD":
        times = START + np.sort(random.integers(0, SECONDS * SECOND, 25 * SECONDS))
        keys = random.integers(0, 30, len(times))
        found[name] = pa.table({"k": keys, "ts": pa.array(times).cast(pa.timestamp("us"))})
    return found


def run(streams: dict[str, pa.Table], **settings: str) -> tuple[Counter[Any], dict[str, Any]]:
    engine = muntin.Engine(tree=TREE, **settings)
    for name in streams:
        engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
    q = engine.query(
        "SELECT A.k AS k, A.ts AS a, B.ts AS b, C.ts AS c, D.ts AS d FROM A, B, C, D "
        "WHERE A.k = B.k AND B.k = C.k AND C.k = D.k WINDOW 3 SECONDS",
        name="q",
    )
    found: Counter[Any] = Counter()
    for second in range(SECONDS):
        end = pa.scalar(START + (second + 1) * SECOND, pa.timestamp("us"))
        for name, rows in streams.items():
            times = rows.column("ts")
            begin = pa.scalar(START + second * SECOND, pa.timestamp("us"))
            inside = pa.compute.and_(
                pa.compute.greater_equal(times, begin), pa.compute.less(times, end)
            )
            engine.push(name, rows.filter(inside))
        engine.advance(START + (second + 1) * SECOND)
        found.update(tuple(row.values()) for row in q.poll().drop("_ts").to_pylist())
    overload: Any = q.stats().get("overload")
    return found, overload


@pytest.mark.parametrize("make", [epochs, uniform])
def test_rows_of_some_keys_find_more_than_the_oldest_ones(make: Any) -> None:
    streams = make(np.random.default_rng(3))
    exact, _ = run(streams)
    limited = {"overload": "adapt", "resources": "40"}
    chosen, overload = run(streams, **limited, probe_choice="key")
    oldest, before = run(streams, **limited)
    assert overload["part_of_keys"] < 1
    assert before["part_of_keys"] == 1
    assert overload["stale_results"] == 0
    assert chosen <= exact
    assert chosen.total() > 1.3 * oldest.total()
    assert sum(overload["probes"].values()) <= 40 * (SECONDS + 2) + 400, "before the first sample"


def test_the_slice_turns_so_that_every_key_has_results() -> None:
    """With windows of half a second, a turn takes 128 seconds of event time."""
    engine = muntin.Engine(overload="adapt", resources="6", probe_choice="key", tree="((A, B), C)")
    for name in "ABC":
        engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
    q = engine.query(
        "SELECT A.k AS k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 500 MILLISECONDS",
        name="q",
    )
    random = np.random.default_rng(5)
    seen = []
    for second in range(150):
        for name in "ABC":
            times = START + second * SECOND + np.sort(random.integers(0, SECOND, 60))
            keys = random.integers(0, 30, len(times))
            engine.push(name, pa.table({"k": keys, "ts": pa.array(times).cast(pa.timestamp("us"))}))
        engine.advance(START + (second + 1) * SECOND)
        seen.append(set(q.poll().column("k").to_pylist()))
    assert len(set().union(*seen[60:70])) < 25
    assert len(set().union(*seen[10:])) == 30
