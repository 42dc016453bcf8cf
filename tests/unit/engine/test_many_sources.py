"""One to six sources give the oracle's results.

The tests cover one stream under many names, every kind of window and every way to run a join.
"""

from __future__ import annotations

from itertools import cycle, islice, pairwise
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.operators import workspace
from muntin.plan.query import Emit
from muntin.sql.script import read_query
from muntin.state import join_state
from muntin.testing.compare import assert_same_changes, assert_same_rows, assert_same_sequence
from muntin.testing.oracle import Oracle

SECOND = 1_000_000
WINDOWS = [
    "[RANGE 6 SECONDS]",
    "[ROWS 4]",
    "[PARTITION BY v ROWS 2]",
    "[RANGE 1 HOUR]",
    "[PARTITION BY k, v ROWS 1]",
    "[ROWS 1000000000000]",
]
WAYS: dict[str, dict[str, str]] = {
    "default": {},
    "changes": {},
    "nested loops": {"join": "nested_loop", "expiry": "eager"},
    "naive": {"algorithm": "naive", "order": "reversed", "buckets": "2"},
    "lazy": {
        "algorithm": "lazy",
        "reevaluation": "3 seconds",
        "expiry": "lazy",
        "expiry_interval": "2 seconds",
    },
    "general lazy": {"algorithm": "general_lazy", "order": "reversed", "reevaluation": "5 seconds"},
    "probe": {"expiry": "probe", "buckets": "3, s0 = 1"},
    "probe_insert": {"expiry": "probe_insert", "index": "s0"},
    "probe_all": {"expiry": "probe_all", "join": "nested_loop"},
    "all": {"expiry": "all", "replan_change": "1", "replan_gain": "1"},
}


def stream(name: str, count: int) -> pa.Table:
    random = np.random.default_rng(len(name) * 7 + ord(name[0]))
    keys = pa.array(random.integers(0, 4, count), mask=random.random(count) < 0.1)
    times = np.sort(random.integers(0, 30, count)) * SECOND
    return pa.table(
        {
            "k": keys,
            "v": random.integers(0, 3, count),
            "n": np.arange(count),
            "ts": pa.array(times).cast(pa.timestamp("us")),
        }
    )


def check_chain(relations: list[str], way: str, first: int) -> None:
    """Run a chain of equalities over the relations and compare it with the oracle.

    Content, order and state must be equal.
    """
    count = len(relations)
    aliases = [f"s{place}" for place in range(count)]
    windows = [
        window if relation != "T" else ""
        for window, relation in zip(islice(cycle(WINDOWS), first, None), relations, strict=False)
    ]
    sources = ", ".join(
        f"{relation} {alias} {window}"
        for relation, alias, window in zip(relations, aliases, windows, strict=True)
    )
    where = " AND ".join(f"{left}.k = {right}.k" for left, right in pairwise(aliases))
    select = ", ".join(f"{alias}.n AS n{place}" for place, alias in enumerate(aliases))
    emit = " EMIT CHANGES" if way == "changes" else ""
    sql = f"SELECT {select} FROM {sources}{' WHERE ' + where if where else ''}{emit}"
    settings = {name: value for name, value in WAYS[way].items() if count > 1 or name != "index"}
    settings["window_memory"] = "4000000000 GB"
    if settings.get("order") == "reversed":
        settings["order"] = ", ".join(reversed(aliases))
    engine = muntin.Engine(**settings)
    rows = {name: stream(name, 60 if count < 4 else 26) for name in "AB"}
    for name, table in rows.items():
        engine.stream(name, table.schema, time="ts")
    stored = stream("T", 5).drop_columns(["ts"])
    engine.table("T", stored)
    q = engine.query(sql, name="q")
    for start in range(0, 60, 7):
        for name, table in rows.items():
            engine.push(name, table.slice(start, 7))
    end = 31 * SECOND
    engine.advance(end)
    query = read_query(sql, "q", engine._declared.catalog)
    oracle = Oracle(query, rows, {"T": stored}, engine._declared.catalog)
    if query.emit is Emit.INSERTS:
        assert_same_sequence(oracle.inserts(end), q.poll())
    else:
        assert_same_changes(oracle.changes(end), q.poll())
    assert_same_rows(oracle.answer(end), q.answer())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", range(1, 7))
def test_a_stream_joined_with_itself(count: int, way: str) -> None:
    check_chain(["A"] * count, way, count)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("relations", ["AB", "AT", "TAB", "ABA", "TATB", "ABTAB"])
def test_streams_and_stored_tables(relations: str, way: str) -> None:
    check_chain(list(relations), way, len(way))


@pytest.mark.parametrize("way", WAYS)
def test_the_smallest_buffers_and_rings(way: str) -> None:
    small = [(workspace, "_COLUMNS", 4), (workspace, "_MARGIN", 2), (join_state, "_LEAST", 1)]
    with patch.object(*small[0]), patch.object(*small[1]), patch.object(*small[2]):
        for first in range(len(WINDOWS)):
            check_chain(["A", "B", "A"], way, first)
