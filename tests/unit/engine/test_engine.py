"""Every method of the engine and of a query's handle, on small tables."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import muntin
from muntin.runtime.holdings import state_rows

SECOND = 1_000_000
COLUMNS = {"k": "bigint", "v": "varchar", "ts": "timestamp"}


def streams(*names: str, slack: str | int = 0, **settings: Any) -> muntin.Engine:
    engine = muntin.Engine(**settings)
    for name in names:
        engine.stream(name, COLUMNS, time="ts", slack=slack)
    return engine


def rows(text: str) -> list[tuple[int | None, str, int]]:
    """Return the rows of a text table: seconds, key, value."""
    found = []
    for line in text.strip().splitlines():
        time, key, value = line.split()
        found.append((None if key == "NULL" else int(key), value, round(float(time) * SECOND)))
    return found


def lines(results: pa.Table) -> list[str]:
    """Return results as text: sign, seconds, values."""
    instants = results.column("_ts").cast(pa.int64()).to_pylist()
    values = results.drop_columns(["_op", "_ts"]).to_pylist()
    signs = results.column("_op").to_pylist()
    return [
        f"{s} {t / SECOND:g} {' '.join(map(str, row.values()))}"
        for s, t, row in zip(signs, instants, values, strict=True)
    ]


def answer(q: muntin.StandingQuery) -> list[str]:
    return sorted(" ".join(map(str, row.values())) for row in q.answer().to_pylist())


def work(q: muntin.StandingQuery) -> dict[str, int]:
    found = q.stats()["work"]
    assert isinstance(found, dict)
    return found


# -- declarations ----------------------------------------------------------------------------------


def test_a_script_declares_sets_queries_and_drops() -> None:
    engine = muntin.Engine()
    created = engine.execute("""
        CREATE STREAM A (k BIGINT, v VARCHAR, ts TIMESTAMP) WITH (time = 'ts');
        SET expiry = 'lazy'; SET expiry_interval = '5 seconds';
        CREATE QUERY one AS SELECT k FROM A WINDOW 1 SECOND;
        SET expiry = 'own';
        CREATE QUERY two AS SELECT v FROM A WINDOW 1 SECOND WITH (expiry = 'eager');
        DROP QUERY IF EXISTS nosuch;
        DROP QUERY one;
    """)
    assert [query.name for query in created] == ["one", "two"]
    assert [query.name for query in engine.queries()] == ["two"]
    engine.push("A", rows("1 7 x"))
    assert lines(created[1].poll()) == ["+ 1 x"]
    with pytest.raises(muntin.CatalogError, match="there is no query 'one'"):
        created[0].poll()


def test_a_script_that_fails_keeps_its_earlier_statements() -> None:
    engine = muntin.Engine()
    statements = [
        "CREATE STREAM A (k BIGINT, v VARCHAR, ts TIMESTAMP)",
        "CREATE QUERY q AS SELECT k FROM A WINDOW 1 SECOND",
        "DROP STREAM A",
    ]
    script = ";\n".join([*statements, "SET expiry = 'all'"])
    with pytest.raises(
        muntin.SqlError,
        match=r"line 3, column 1: stream A is read by query q\. Drop those queries first",
    ):
        engine.execute(script)
    engine.push("A", rows("1 7 x"))
    assert lines(engine.queries()[0].poll()) == ["+ 1 7"]
    assert (
        "expiry own"
        in engine.query("SELECT a.k FROM A a, A b WHERE a.k = b.k WINDOW 1 SECOND").explain()
    )


def test_settings_of_the_engine_and_of_a_query() -> None:
    engine = streams("A", "B", algorithm="naive")
    sql = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND"
    assert "algorithm naive, expiry own" in engine.query(sql).explain()
    assert (
        "algorithm eager, expiry probe"
        in engine.query(sql + " WITH (algorithm = 'eager', EXPIRY = 'probe')").explain()
    )
    assert "algorithm naive, expiry own" in engine.query(sql).explain()


@pytest.mark.parametrize(
    "given",
    [
        pa.table({"k": [1, 2], "n": ["one", "two"]}),
        pa.RecordBatch.from_pylist([{"k": 1, "n": "one"}, {"k": 2, "n": "two"}]),
        pd.DataFrame({"k": [1, 2], "n": ["one", "two"]}),
        [{"k": 1, "n": "one"}, {"k": 2, "n": "two"}],
    ],
    ids=["table", "batch", "frame", "dicts"],
)
def test_a_stored_table_comes_in_any_form(given: Any) -> None:
    engine = streams("A")
    engine.table("T", given)
    q = engine.query("SELECT A.v, T.n FROM A, T WHERE A.k = T.k WINDOW 1 SECOND")
    engine.push("A", rows("1 2 x\n1 3 y"))
    assert lines(q.poll()) == ["+ 1 x two"]
    assert state_rows(engine.dataflow) == {"A": 2}


def test_a_table_with_declared_types_takes_tuples() -> None:
    engine = streams("A")
    engine.table("T", [(1, "2026-01-01")], {"k": "smallint", "day": "timestamp"})
    q = engine.query("SELECT T.day FROM A, T WHERE A.k = T.k WINDOW 1 SECOND")
    engine.push("A", rows("1 1 x"))
    assert q.poll().column("day").to_pylist() == [datetime(2026, 1, 1)]  # noqa: DTZ001


def test_streams_and_tables_are_dropped_when_no_query_reads_them() -> None:
    engine = streams("A", "B")
    engine.table("T", [{"k": 1}])
    q = engine.query("SELECT A.k FROM A, T WHERE A.k = T.k WINDOW 1 SECOND", name="q")
    for kind, name in (("STREAM", "A"), ("TABLE", "T")):
        with pytest.raises(muntin.SqlError, match=f"{kind.lower()} {name} is read by query q"):
            engine.execute(f"DROP {kind} {name}")
    with pytest.raises(muntin.SqlError, match="there is no table A"):
        engine.execute("DROP TABLE A")
    engine.push("A", rows("1 1 x"))
    assert lines(q.poll()) == ["+ 1 1"]
    engine.drop("Q")
    engine.execute("DROP STREAM A; DROP TABLE T; DROP STREAM IF EXISTS A")
    with pytest.raises(muntin.CatalogError, match=r"there is no stream 'A'"):
        engine.push("A", [])
    engine.stream("a", {"ts": "timestamp"})
    engine.push("A", [(5,)])


# -- time ------------------------------------------------------------------------------------------


def test_out_of_order_rows_within_the_slack_are_put_in_order() -> None:
    engine = streams("A", slack="2 seconds")
    q = engine.query("SELECT v FROM A [ROWS 1] EMIT CHANGES")
    engine.push("A", rows("3 1 c\n1 1 a\n2 1 b\n2 1 B"))
    assert lines(q.poll()) == []
    engine.push("A", rows("6 1 d"))
    assert lines(q.poll()) == ["+ 1 a", "- 2 a", "+ 2 B", "- 3 B", "+ 3 c"]
    engine.advance(6 * SECOND)
    assert lines(q.poll()) == ["- 6 c", "+ 6 d"]
    assert engine.late("A").num_rows == 0


def test_an_instant_counts_in_every_form() -> None:
    engine = streams("A", "B")
    q = engine.query("SELECT A.v FROM A, B WHERE A.k = B.k WINDOW 1 HOUR")
    engine.push("A", rows("1 1 a\n2 1 b\n3 1 c"))
    engine.push("B", rows("0 1 x"))
    engine.advance(SECOND)
    assert lines(q.poll()) == ["+ 1 a"]
    engine.advance("1970-01-01T00:00:02")
    assert lines(q.poll()) == ["+ 2 b"]
    engine.advance(datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC))
    assert lines(q.poll()) == ["+ 3 c"]


def test_time_never_goes_back() -> None:
    engine = streams("A")
    q = engine.query("SELECT v FROM A WINDOW 5 SECONDS")
    engine.push("A", rows("10 1 x"))
    engine.advance(2 * SECOND)
    assert answer(q) == ["x"]
    engine.advance(14 * SECOND)
    engine.advance(3 * SECOND)
    assert answer(q) == ["x"]
    engine.advance(15 * SECOND)
    assert answer(q) == []
    assert engine.stats()["watermark"] == "1970-01-01 00:00:15"


def test_only_streams_that_queries_read_hold_time_back() -> None:
    engine = streams("A", "Silent")
    q = engine.query("SELECT v FROM A WINDOW 1 SECOND")
    engine.push("A", rows("1 1 x"))
    assert lines(q.poll()) == ["+ 1 x"]
    engine.query("SELECT v FROM Silent WINDOW 1 SECOND", name="other")
    both = engine.query("SELECT A.v FROM A, Silent WINDOW 1 SECOND", name="both")
    engine.push("A", rows("2 1 y"))
    assert lines(q.poll()) == ["+ 2 y"]
    engine.push("Silent", rows("1.5 1 z"))
    assert lines(both.poll()) == ["+ 1.5 x"]


def test_every_waits_for_its_instants_and_answers_as_of_the_last() -> None:
    engine = streams("A")
    q = engine.query("SELECT v FROM A WINDOW 3 SECONDS EVERY 2 SECONDS EMIT CHANGES")
    engine.push("A", rows("-1 1 a\n0.5 1 b"))
    assert (lines(q.poll()), answer(q)) == (["+ 0 a"], ["a"])
    engine.advance(2 * SECOND)
    assert (sorted(lines(q.poll())), answer(q)) == (["+ 2 b", "- 2 a"], ["b"])
    engine.advance(3 * SECOND + 999_999)
    assert (lines(q.poll()), answer(q)) == ([], ["b"])
    engine.advance(4 * SECOND)
    assert (lines(q.poll()), answer(q), state_rows(engine.dataflow)) == (["- 4 b"], [], {"A": 0})


# -- results ---------------------------------------------------------------------------------------


def test_poll_gives_every_change_once_and_keeps_its_schema_when_empty() -> None:
    engine = streams("A")
    q = engine.query("SELECT v, k + 1 AS n FROM A WINDOW 1 SECOND")
    assert q.poll().schema == pa.schema(
        [("_op", pa.string()), ("_ts", pa.timestamp("us")), ("v", pa.string()), ("n", pa.int64())]
    )
    engine.push("A", rows("1 1 x\n1 NULL y"))
    assert lines(q.poll()) == ["+ 1 x 2", "+ 1 y None"]
    assert len(q.poll()) == 0
    assert q.answer().schema == pa.schema([("v", pa.string()), ("n", pa.int64())])


def test_an_answer_is_the_content_of_the_windows_and_consumes_no_polled_results() -> None:
    engine = streams("A", "B")
    q = engine.query("SELECT A.v AS a, B.v AS b FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS")
    engine.push("A", rows("1 1 x\n2 1 y"))
    engine.push("B", rows("3 1 z"))
    engine.advance(3 * SECOND)
    assert answer(q) == answer(q) == ["x z", "y z"]
    engine.advance(11 * SECOND)
    assert answer(q) == ["y z"]
    assert lines(q.poll()) == ["+ 3 y z", "+ 3 x z"]


def test_stats_count_rows_work_and_state() -> None:
    engine = streams("A", "B")
    q = engine.query(
        "SELECT A.v FROM A, B WHERE A.k = B.k AND A.v <> 'no' WINDOW 10 SECONDS", name="q"
    )
    engine.push("A", rows("1 1 x\n2 1 no\n3 2 y"))
    engine.push("B", rows("1 1 z\n30 1 w"))
    engine.advance(30 * SECOND)
    stats = q.stats()
    assert {
        name: stats[name]
        for name in (
            "query",
            "processed_until",
            "rows_in",
            "rows_out",
            "rows_waiting_for_poll",
            "state_rows",
        )
    } == {
        "query": "q",
        "processed_until": "1970-01-01 00:00:30",
        "rows_in": 5,
        "rows_out": 1,
        "rows_waiting_for_poll": 1,
        "state_rows": {"A": 0, "B": 1},
    }
    assert work(q)["rows_inserted"] == 4
    assert work(q)["matches"] == 1
    assert work(q)["rows_expired"] == 3
    response = stats["response_seconds"]
    assert isinstance(response, dict)
    assert 0 < response["p50"] <= response["max"] < 60
    every = engine.stats()
    assert every["queries"] == {"q": q.stats()}
    assert every["streams"]["A"] | {"log_bytes": 0} == {  # type: ignore[index]
        "rows_in": 3, "rows_late": 0, "rows_ahead": 0, "rows_waiting": 0, "rows_logged": 0,
        "log_bytes": 0,
    }  # fmt: skip


def test_state_rows_are_the_most_that_any_query_holds() -> None:
    engine = streams("A", "B")
    engine.query("SELECT v FROM A WINDOW 2 SECONDS")
    engine.query("SELECT a.v FROM A a [ROWS 3], A b [ROWS 1] WHERE a.k = b.k")
    engine.push("A", rows("1 1 x\n2 1 x\n3 1 x\n4 1 x"))
    assert state_rows(engine.dataflow) == {"A": 3, "B": 0}


def test_results_stay_as_they_were_when_more_come() -> None:
    engine = streams("A")
    q = engine.query("SELECT v FROM A WINDOW 1 SECOND")
    engine.push("A", rows("1 1 x"))
    first = q.poll()
    for n in range(2, 50):
        engine.push("A", [(n, "y" * n, n * SECOND)])
    assert lines(first) == ["+ 1 x"]


# -- subscribers -----------------------------------------------------------------------------------


def test_subscribers_are_called_with_what_is_released_from_then_on() -> None:
    engine = streams("A")
    q = engine.query("SELECT v FROM A WINDOW 1 SECOND")
    engine.push("A", rows("1 1 x"))
    got: list[pa.RecordBatch] = []
    q.subscribe(got.append)
    engine.push("A", rows("2 1 y\n3 1 z"))
    engine.push("A", [])
    assert all(isinstance(batch, pa.RecordBatch) for batch in got)
    assert lines(pa.Table.from_batches(got)) == ["+ 2 y", "+ 3 z"]
    assert lines(q.poll()) == ["+ 1 x", "+ 2 y", "+ 3 z"]


def test_a_subscriber_that_pushes_sees_its_rows_after_all_earlier_ones() -> None:
    """Nothing overtakes, even if one push makes many batches."""
    engine = streams("A")
    q = engine.query("SELECT k FROM A WINDOW 1 HOUR EMIT CHANGES")
    got: list[int] = []

    def once(batch: pa.RecordBatch) -> None:
        if not got:
            engine.push("A", [(-1, "", 9 * SECOND)])
            engine.advance(9 * SECOND)
        got.extend(batch.column("k").to_pylist())

    q.subscribe(once)
    many = 300_000
    times = pa.array(np.arange(many)).cast(pa.timestamp("us"))
    engine.push(
        "A", pa.table({"k": np.arange(many), "v": pa.nulls(many, pa.string()), "ts": times})
    )
    engine.advance(many)
    assert got == [*range(many), -1]


def test_a_chain_of_pushes_of_any_depth_ends_and_its_failure_is_reported_briefly() -> None:
    engine = streams("A")
    q = engine.query("SELECT k FROM A WINDOW 1 SECOND", name="q")
    seen: list[int] = []

    def further(batch: pa.RecordBatch) -> None:
        seen.extend(batch.column("k").to_pylist())
        if len(seen) == 1_100:
            raise RuntimeError('it\'s "over"\\')
        engine.push("A", [(len(seen), "", len(seen))])

    q.subscribe(further)
    with pytest.raises(
        muntin.SubscriberError, match="a subscriber of query q failed: RuntimeError: it's"
    ) as raised:
        engine.push("A", [(0, "", 0)])
    assert len(str(raised.value)) < 300
    assert seen == list(range(1_100))
    assert q.poll().column("k").to_pylist() == seen


def test_a_query_dropped_by_its_subscriber_is_gone_and_the_others_are_not() -> None:
    engine = streams("A")
    first, second = (
        engine.query("SELECT v FROM A WINDOW 1 SECOND", name=name) for name in ("first", "second")
    )
    first.subscribe(lambda _: engine.drop("first"))
    engine.push("A", rows("1 1 x"))
    engine.push("A", rows("2 1 y"))
    assert lines(second.poll()) == ["+ 1 x", "+ 2 y"]
    assert [query.name for query in engine.queries()] == ["second"]
    with pytest.raises(muntin.CatalogError, match=r"there is no query 'first'\. There are second"):
        first.subscribe(print)


# -- while it runs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("window", ["[RANGE 10 SECONDS]", "[ROWS 3]", "[PARTITION BY k ROWS 2]"])
@pytest.mark.parametrize("emit", ["EMIT INSERTS", "EMIT CHANGES"])
def test_a_query_added_while_running_continues_as_if_it_had_always_been_there(
    window: str, emit: str
) -> None:
    """It gets no results whose rows all arrived before its registration."""
    engine = streams("A", "B")
    sql = f"SELECT A.v AS a, B.v AS b FROM A {window}, B {window} WHERE A.k = B.k {emit}"
    always = engine.query(sql, name="always")
    engine.push("A", rows("1 1 a\n2 2 b\n3 1 c"))
    engine.push("B", rows("2 1 x\n3 2 y"))
    engine.advance(3 * SECOND)
    assert len(always.poll()) > 0
    added = engine.query(sql, name="added")
    assert (lines(added.poll()), answer(added)) == ([], [])
    engine.push("A", rows("4 2 d\n5 1 e"))
    engine.push("B", rows("4 1 z\n6 2 w"))
    engine.advance(6 * SECOND)
    old = {"a x", "b y", "c x"}
    expected = [line for line in lines(always.poll()) if line.split(maxsplit=2)[2] not in old]
    assert sorted(lines(added.poll())) == sorted(expected)
    assert answer(added) == [line for line in answer(always) if line not in old]


def test_dropping_the_last_query_frees_all_rows() -> None:
    engine = streams("A")
    engine.query("SELECT v FROM A [PARTITION BY k ROWS 1]", name="one")
    engine.query("SELECT v FROM A WINDOW 1 HOUR", name="two")
    engine.push("A", [(n % 3, "x", n) for n in range(5_000)])
    held = engine.stats()["streams"]["A"]["rows_logged"]  # type: ignore[index]
    engine.drop("two")
    fewer = engine.stats()["streams"]["A"]["rows_logged"]  # type: ignore[index]
    engine.drop("one")
    left = engine.stats()["streams"]["A"]["rows_logged"]  # type: ignore[index]
    assert (held, fewer < 2_100, left) == (5_000, True, 0)


def test_single_rows_give_what_one_batch_gives() -> None:
    a, b = (
        [(n * step % 7, f"{name}{n}", n * 1000) for n in range(700)]
        for name, step in (("a", 3), ("b", 5))
    )
    sql = "SELECT A.v AS a, B.v AS b FROM A [ROWS 20], B [RANGE 15 MILLISECONDS] WHERE A.k = B.k"
    one, many = streams("A", "B"), streams("A", "B")
    at_once, piecemeal = one.query(sql), many.query(sql)
    one.push("A", a)
    one.push("B", b)
    for left, right in zip(a, b, strict=True):
        many.push("A", [left])
        many.push("B", [right])
    for engine in (one, many):
        engine.advance(SECOND)
    assert piecemeal.poll().to_pylist() == at_once.poll().to_pylist()
    assert state_rows(one.dataflow) == state_rows(many.dataflow) == {"A": 20, "B": 0}


def test_two_threads_push_and_two_poll_and_nothing_is_lost_or_doubled() -> None:
    engine = streams("A", "B")
    q = engine.query("SELECT A.v AS a, B.v AS b FROM A, B WHERE A.k = B.k WINDOW 1 HOUR")
    count, polled, failures = 300, [], []
    running = threading.Event()
    running.set()

    def push(name: str) -> None:
        for n in range(count):
            engine.push(name, [(n, f"{name}{n}", n)])

    def poll() -> None:
        while running.is_set():
            polled.append(q.poll())
            q.answer()

    def guarded(target: Any, *arguments: Any) -> None:
        try:
            target(*arguments)
        except BaseException as error:  # noqa: BLE001 (whatever it is, the test has to hear of it)
            failures.append(error)

    pushers = [threading.Thread(target=guarded, args=(push, name)) for name in "AB"]
    pollers = [threading.Thread(target=guarded, args=(poll,)) for _ in range(2)]
    for thread in [*pushers, *pollers]:
        thread.start()
    for thread in pushers:
        thread.join()
    running.clear()
    for thread in pollers:
        thread.join()
    engine.advance(count)
    assert failures == []
    together = [
        row
        for part in [*polled, q.poll()]
        for row in zip(part.column("a").to_pylist(), part.column("b").to_pylist(), strict=True)
    ]
    assert sorted(together) == sorted((f"A{n}", f"B{n}") for n in range(count))
    assert state_rows(engine.dataflow) == {"A": count, "B": count}


def test_engines_are_independent_of_each_other() -> None:
    one, two = streams("A", expiry="lazy"), streams("A")
    q = one.query("SELECT v FROM A WINDOW 1 SECOND")
    two.push("A", rows("1 1 x"))
    assert (two.queries(), lines(q.poll())) == ([], [])
    assert repr(q) == "StandingQuery('q1')"
