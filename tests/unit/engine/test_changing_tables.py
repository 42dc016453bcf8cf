"""Tables that change: what a call does, what it refuses, and that it is all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import muntin
from muntin.errors import MuntinError

SECOND = 1_000_000
Rows = list[tuple[object, ...]]


def engine_of(sql: str, rows: Rows | None = None) -> tuple[muntin.Engine, muntin.StandingQuery]:
    engine = muntin.Engine(clock=None)
    engine.stream("A", {"k": "int", "ts": "timestamp"}, time="ts")
    columns = {"id": "int", "name": "varchar"}
    engine.table("T", [(1, "one")] if rows is None else rows, columns, key="ID")
    return engine, engine.query(sql, name="q")


def changes(q: muntin.StandingQuery) -> list[tuple[object, ...]]:
    found: list[dict[str, Any]] = q.poll().to_pylist()
    return [(row.pop("_op"), row.pop("_ts").second, *row.values()) for row in found]


JOINED = "SELECT t.name FROM A, T t WHERE A.k = t.id WINDOW 10 SECONDS"


def test_changes_take_effect_at_the_last_closed_instant() -> None:
    engine, q = engine_of(JOINED)
    engine.push("A", [(1, SECOND), (2, 3 * SECOND)])
    engine.advance(4 * SECOND)
    engine.upsert("T", [{"id": 1, "name": "uno"}, {"id": 2, "name": "due"}])
    engine.delete("T", pa.array([1, 9]))
    assert changes(q) == [
        ("+", 1, "one"),
        ("-", 4, "one"),
        ("+", 4, "uno"),
        ("+", 4, "due"),
        ("-", 4, "uno"),
    ]
    assert q.answer().to_pylist() == [{"name": "due"}]


def test_an_upsert_of_the_same_row_changes_nothing() -> None:
    engine, q = engine_of(JOINED)
    engine.push("A", [(1, SECOND)])
    engine.advance(4 * SECOND)
    engine.upsert("T", [(1, "one")])
    assert changes(q) == [("+", 1, "one")]


def test_every_shows_a_change_at_the_next_multiple_also_after_a_restart(tmp_path: Any) -> None:
    engine, q = engine_of(f"{JOINED} EVERY 5 SECONDS")
    engine.push("A", [(1, SECOND)])
    engine.advance(6 * SECOND)
    engine.upsert("T", [(1, "uno")])
    assert q.answer().to_pylist() == [{"name": "one"}]
    engine.checkpoint(tmp_path)
    engine = muntin.Engine.restore(tmp_path, clock=None)
    q = engine.handle("q")
    assert q.answer().to_pylist() == [{"name": "one"}]
    engine.advance(10 * SECOND)
    assert changes(q) == [("+", 5, "one"), ("-", 10, "one"), ("+", 10, "uno")]


def test_queries_that_are_added_later_begin_with_the_content() -> None:
    engine, _ = engine_of(JOINED)
    engine.upsert("T", [(2, "two")])
    later = engine.query("SELECT COUNT(*) AS n FROM A, T t WHERE A.k <= t.id WINDOW 9 s", name="r")
    engine.push("A", [(1, SECOND)])
    engine.advance(SECOND)
    assert later.answer().to_pylist() == [{"n": 2}]


@pytest.mark.parametrize(
    ("call", "fact"),
    [
        (lambda e: e.upsert("T", [(3, "c"), (3, "d")]), "have the key 3 more than once"),
        (lambda e: e.upsert("T", [(4, "x"), (None, "y")]), "have NULL as their key id"),
        (lambda e: e.upsert("T", [("four", "x")]), "table T"),
        (lambda e: e.upsert("T", pa.table({"id": [4]})), "have no column 'name'"),
        (lambda e: e.upsert("U", [(4, "x")]), "there is no table 'U'"),
        (lambda e: e.upsert("A", [(4, 0)]), "there is no table 'A'"),
        (lambda e: e.upsert("F", [(4,)]), "table F has no key, so its rows cannot change"),
        (lambda e: e.delete("F", [1]), "table F has no key"),
        (lambda e: e.delete("T", [1, None]), "have NULL as their key id"),
        (lambda e: e.delete("T", "1"), "cannot take the keys of table T from str"),
        (lambda e: e.delete("T", ["one"]), "the keys of table T"),
        (lambda e: e.table("G", [{"n": 1}, {"n": 1}], key="n"), "have the key 1 more than once"),
        (lambda e: e.table("G", [{"n": 1}], key="m"), "table G has no column 'm' to be its key"),
        (lambda e: e.query("SELECT id FROM T"), "the query reads no stream|reads no stream"),
    ],
)
def test_what_is_wrong_changes_nothing(call: Callable[[Any], object], fact: str) -> None:
    engine, q = engine_of(JOINED)
    engine.table("F", [{"n": 1}])
    engine.push("A", [(1, SECOND), (3, SECOND), (4, SECOND)])
    engine.advance(SECOND)
    with pytest.raises(MuntinError, match=fact):
        call(engine)
    engine.advance(2 * SECOND)
    assert changes(q) == [("+", 1, "one")]
    assert q.answer().to_pylist() == [{"name": "one"}]
    engine.table("G", [{"n": 1}], key="n")


def test_rows_that_were_replaced_are_dropped_in_time() -> None:
    engine, q = engine_of(JOINED, [(key, "a") for key in range(100)])
    for turn in range(200):
        engine.upsert("T", [(key, f"{turn}") for key in range(100)])
    engine.delete("T", list(range(1, 100)))
    table = engine.dataflow.tables.changing["T"]
    assert len(table) == 1
    assert table._log.num_rows < 3_000
    assert engine.dataflow.tables["T"].to_pylist() == [{"id": 0, "name": "199"}]
    engine.push("A", [(0, SECOND), (5, SECOND)])
    engine.advance(SECOND)
    assert changes(q) == [("+", 1, "199")]
