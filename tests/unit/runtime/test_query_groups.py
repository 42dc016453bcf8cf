"""Each query advances with its streams: state of groups, waiting, and rows for new queries."""

from __future__ import annotations

import re
from typing import Any

import pytest

import muntin

SECOND = 1_000_000


def engine_with(*streams: str, **slack: str) -> muntin.Engine:
    engine = muntin.Engine()
    for name in streams:
        engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts", slack=slack.get(name, 0))
    return engine


def push(engine: muntin.Engine, stream: str, *seconds: float, key: int = 1) -> None:
    engine.push(stream, [(key, round(second * SECOND)) for second in seconds])


def times(query: muntin.StandingQuery) -> list[float]:
    return [instant.timestamp() for instant in query.poll().column("_ts").to_pylist()]


def test_a_silent_stream_holds_back_only_the_queries_that_read_it() -> None:
    engine = engine_with("A", "B", "Silent")
    alone = engine.query("SELECT k FROM A WINDOW 9 SECONDS")
    pairs = engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS")
    held = engine.query("SELECT A.k FROM A, Silent WHERE A.k = Silent.k WINDOW 9 SECONDS")
    above = engine.query("SELECT k FROM A EXCEPT SELECT k FROM Silent WINDOW 9 SECONDS")
    push(engine, "A", 1, 2)
    push(engine, "B", 1)
    assert (len(alone.poll()), len(pairs.poll()), len(held.poll()), len(above.poll())) == (
        2,
        1,
        0,
        0,
    )
    push(engine, "Silent", 2, key=2)
    assert len(above.poll()) == 1
    engine.advance(2 * SECOND)
    assert [query.stats()["watermark"] for query in (alone, held)] == ["1970-01-01 00:00:02"] * 2


def test_a_row_may_be_late_for_one_query_and_in_time_for_another() -> None:
    engine = engine_with("A", "B")
    alone = engine.query("SELECT k FROM A WINDOW 9 SECONDS")
    pairs = engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS")
    push(engine, "A", 5)
    push(engine, "B", 2)
    push(engine, "A", 3, 1)
    assert len(engine.late("A")) == 2, "each row once"
    assert (alone.stats()["rows_late"], pairs.stats()["rows_late"]) == (2, 1)
    engine.advance(9 * SECOND)
    assert (times(alone), times(pairs)) == ([5.0], [3.0, 5.0])


def test_stats_and_explain_name_the_stream_that_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moment = [100.0]
    monkeypatch.setattr("muntin.engine.engine.time.monotonic", lambda: moment[0])
    engine = engine_with("A", "B")
    query = engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS")
    assert query.stats()["waiting_for"] is None, "no row waits yet"
    moment[0] = 110.0
    push(engine, "A", 5)
    moment[0] = 112.0
    assert query.stats()["waiting_for"] == {"stream": "B", "newest": None, "since_seconds": 12.0}
    assert "waiting for stream B: no rows yet (since 12 s)" in engine.explain()
    push(engine, "B", 3)
    moment[0] = 115.0
    waiting = {"stream": "B", "newest": "1970-01-01 00:00:03", "since_seconds": 3.0}
    assert query.stats()["waiting_for"] == waiting
    assert engine.queries()[0].plan()["waiting_for"] == waiting
    assert "waiting for stream B: newest row 1970-01-01 00:00:03 (since 3 s)" in engine.explain()
    engine.advance(5 * SECOND)
    assert query.stats()["waiting_for"] is None
    assert "waiting" not in engine.explain()


def test_a_new_query_starts_at_the_watermark_of_its_streams_with_rows_held_by_others() -> None:
    engine = engine_with("A", "B")
    engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS", name="pairs")
    push(engine, "A", 1, 2, 3)
    push(engine, "B", 2)
    ahead = engine.query(
        "SELECT x.k FROM A AS x, A AS y WHERE x.k = y.k WINDOW 9 SECONDS", name="ahead"
    )
    assert ahead.stats()["watermark"] == "1970-01-01 00:00:03"
    push(engine, "A", 4)
    assert len(ahead.poll()) == 7, (
        "the new row with itself and with three rows from before, both ways"
    )
    behind = engine.query(
        "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECONDS EMIT CHANGES", name="behind"
    )
    assert behind.stats()["watermark"] == "1970-01-01 00:00:02"


def test_a_query_that_needs_more_than_its_group_holds_opens_another_one() -> None:
    engine = engine_with("A", "B")
    pair = "SELECT x.k FROM A AS x, A AS y WHERE x.k = y.k WINDOW {} SECONDS"
    engine.query("SELECT A.k FROM A, B WINDOW 9 SECONDS", name="long")
    engine.query(pair.format(1), name="short")
    push(engine, "B", 9)
    push(engine, "A", 1, 2, 3, 4)
    same = engine.query(pair.format(1), name="same")
    more = engine.query(pair.format(9), name="more")
    assert [len(group.joins.running) for group in engine.dataflow.groups.active] == [1, 1, 1]
    assert same.stats()["shares_with"] == ["short"]
    push(engine, "A", 4.5)
    assert (len(same.poll()), len(more.poll())) == (3, 9)


def test_streams_that_no_query_reads_keep_nothing_while_there_are_queries() -> None:
    engine = engine_with("A", "B", "C", B="2 seconds")
    push(engine, "B", 1)
    assert engine.stats()["streams"]["B"]["rows_waiting"] == 1, (  # type: ignore[index]
        "before the first query, streams wait for each other"
    )
    engine.query("SELECT k FROM A WINDOW 9 SECONDS", name="q")
    push(engine, "B", 2, 3, 4, 5)
    counts = engine.stats()["streams"]["B"]  # type: ignore[index]
    assert (counts["rows_waiting"], counts["rows_logged"]) == (2, 0), "what is inside the slack"
    push(engine, "B", 1)
    assert engine.stats()["streams"]["B"]["rows_late"] == 1  # type: ignore[index]
    engine.drop("q")
    push(engine, "B", 6)
    assert engine.stats()["streams"]["B"]["rows_waiting"] == 3  # type: ignore[index]


def test_queries_over_the_same_streams_form_one_group_that_ends_with_its_last_query() -> None:
    engine = engine_with("A", "B")
    for number in range(5):
        engine.query(
            f"SELECT A.k FROM A, B WHERE A.k = B.k WINDOW {number + 1} SECONDS", name=f"q{number}"
        )
    engine.query("SELECT k FROM A INTERSECT SELECT k FROM B WINDOW 3 SECONDS", name="set")
    assert len(engine.dataflow.groups.active) == 1
    engine.query("SELECT k FROM B WINDOW 1 SECONDS", name="only")
    push(engine, "A", 1)
    assert len(engine.dataflow.groups.inputs("B")) == 2
    for name in ("only", "set", *(f"q{number}" for number in range(5))):
        engine.drop(name)
    assert not engine.dataflow.groups.active
    waiting = engine.stats()["streams"]["A"]["rows_waiting"]  # type: ignore[index]
    assert waiting == 1, "no query has read it"


def test_a_query_that_cannot_be_run_leaves_no_group_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_with("A", "B")

    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr("muntin.runtime.query_group.RunningJoin", fail)
    with pytest.raises(MemoryError, match=re.escape("no room")):
        engine.query("SELECT k FROM A WINDOW 1 SECOND", name="q")
    assert not engine.dataflow.groups.active
    monkeypatch.undo()
    query = engine.query("SELECT k FROM A WINDOW 1 SECOND", name="q")
    push(engine, "A", 1)
    assert len(query.poll()) == 1
