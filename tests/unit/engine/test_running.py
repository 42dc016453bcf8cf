"""The engine while it runs: time, threads, subscribers, queries added and dropped."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

import muntin
from muntin.runtime.holdings import state_rows
from muntin.testing.generators import uniform_stream

SECOND = 1_000_000
PAIRS = "SELECT A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS"


def two_streams(**settings: str) -> muntin.Engine:
    engine = muntin.Engine(**settings)
    for name in "AB":
        engine.stream(name, {"k": "bigint", "v": "double", "ts": "timestamp"}, time="ts")
    return engine


def pairs_of(table: pa.Table) -> list[tuple[float, float]]:
    return list(zip(table.column("av").to_pylist(), table.column("bv").to_pylist(), strict=True))


def test_rows_wait_until_their_place_in_the_order_is_final() -> None:
    engine = two_streams()
    q = engine.query(PAIRS)
    engine.push("A", [(1, 1.0, 1 * SECOND), (1, 2.0, 5 * SECOND)])
    engine.push("B", [(1, 10.0, 2 * SECOND)])
    assert pairs_of(q.poll()) == [(1.0, 10.0)]
    engine.push("B", [(1, 20.0, 7 * SECOND)])
    assert pairs_of(q.poll()) == [(2.0, 10.0)]
    engine.advance(7 * SECOND)
    assert pairs_of(q.poll()) == [(2.0, 20.0), (1.0, 20.0)]


def test_a_query_registered_while_running_sees_what_is_inside_its_windows() -> None:
    engine = two_streams()
    engine.query(PAIRS, name="first")
    engine.push("A", [(1, 1.0, 1 * SECOND), (1, 2.0, 4 * SECOND)])
    engine.push("B", [(1, 10.0, 4 * SECOND)])
    engine.advance(4 * SECOND)
    late = engine.query(
        "SELECT A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS EMIT CHANGES",
        name="late",
    )
    engine.push("B", [(1, 20.0, 5 * SECOND)])
    engine.advance(5 * SECOND)
    assert sorted(pairs_of(late.poll())) == [(1.0, 20.0), (2.0, 20.0)]
    assert sorted(pairs_of(late.answer())) == [(1.0, 20.0), (2.0, 20.0)]
    engine.advance(60 * SECOND)
    changes = late.poll()
    assert set(changes.column("_op").to_pylist()) == {"-"}
    assert sorted(pairs_of(changes)) == [(1.0, 20.0), (2.0, 20.0)]


def test_dropping_a_query_frees_its_rows_and_leaves_the_others_alone() -> None:
    engine = two_streams()
    engine.query("SELECT v FROM A WINDOW 1 HOUR", name="long")
    q = engine.query("SELECT v FROM A WINDOW 2 SECONDS", name="short")
    for second in range(5):
        engine.push("A", [(1, float(second), second * SECOND)])
    assert state_rows(engine.dataflow)["A"] == 5
    engine.drop("long")
    assert state_rows(engine.dataflow)["A"] == 2
    assert q.poll().column("v").to_pylist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    with pytest.raises(muntin.CatalogError, match="there is no query 'long'"):
        engine.explain("long")


def test_subscribers_get_every_batch_once_and_in_order_even_when_they_push() -> None:
    engine = two_streams()
    q = engine.query("SELECT v FROM A WINDOW 1 SECOND")
    seen: list[float] = []

    def again(batch: pa.RecordBatch) -> None:
        seen.extend(batch.column("v").to_pylist())
        if len(seen) < 400:
            engine.push("A", [(1, float(len(seen)), len(seen) * SECOND)])

    q.subscribe(again)
    engine.push("A", [(1, 0.0, 0)])
    assert seen == [float(number) for number in range(400)]
    assert q.poll().column("v").to_pylist() == seen


def test_a_failing_subscriber_is_reported_and_nothing_is_lost() -> None:
    engine = two_streams()
    q = engine.query("SELECT v FROM A WINDOW 1 SECOND", name="q")
    other: list[int] = []

    def fail(_: pa.RecordBatch) -> None:
        raise ValueError("no room")

    q.subscribe(fail)
    q.subscribe(lambda batch: other.append(len(batch)))
    with pytest.raises(
        muntin.SubscriberError, match="a subscriber of query q failed: ValueError: no room"
    ):
        engine.push("A", [(1, 1.0, 0)])
    assert other == [1]
    assert len(q.poll()) == 1


def test_one_thread_pushes_while_others_poll_and_look() -> None:
    engine = two_streams()
    q = engine.query(PAIRS)
    a, b = uniform_stream(20_000, 1_000, 500, 1), uniform_stream(20_000, 1_000, 500, 2)
    done = threading.Event()
    polled: list[pa.Table] = []
    failures: list[BaseException] = []

    def watch(look: bool) -> None:  # noqa: FBT001
        try:
            while not done.is_set():
                if look:
                    q.answer()
                    q.stats()
                    engine.explain()
                else:
                    polled.append(q.poll())
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=watch, args=(look,)) for look in (False, True)]
    for thread in threads:
        thread.start()
    for start in range(0, len(a), 500):
        engine.push("A", a.slice(start, 500))
        engine.push("B", b.slice(start, 500))
    engine.advance(30 * SECOND)
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    together = pa.concat_tables([*polled, q.poll()])
    alone = two_streams()
    expected = alone.query(PAIRS)
    alone.push("A", a)
    alone.push("B", b)
    alone.advance(30 * SECOND)
    assert together.equals(expected.poll())


def test_single_rows_cost_the_same_however_many_wait() -> None:
    engine = two_streams()
    engine.query(PAIRS)
    for second in range(3_000):
        engine.push("A", [(second, 0.0, second * SECOND)])
    (held,) = engine.dataflow.groups.inputs("A")
    assert held.waiting() == 3_000
    assert len(held._inbox.batches()) < 20
    assert all(batch.rows.column(0).num_chunks < 5 for batch in held._inbox.batches())


def test_hundreds_of_queries_share_their_workspace() -> None:
    engine = two_streams()
    queries = [
        engine.query(
            f"SELECT A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k WINDOW {1 + number} SECONDS"
        )
        for number in range(120)
    ]
    engine.push("A", [(1, 1.0, 0)])
    engine.push("B", [(1, 2.0, 60 * SECOND)])
    engine.advance(60 * SECOND)
    assert [len(query.poll()) for query in queries] == [0] * 60 + [1] * 60


def test_an_unnamed_query_finds_a_free_name() -> None:
    engine = two_streams()
    engine.stream("q1", {"k": "bigint", "ts": "timestamp"})
    assert engine.query("SELECT k FROM q1 WINDOW 1 SECOND").name == "q2"


def test_results_beyond_a_buffer_are_complete_and_in_order() -> None:
    """One row joins half a million partners, more than the workspace holds at first."""
    engine = two_streams()
    q = engine.query(PAIRS)
    many = 500_000
    engine.push(
        "A",
        pa.table(
            {
                "k": [1] * many,
                "v": [float(n) for n in range(many)],
                "ts": pa.array(range(many)).cast(pa.timestamp("us")),
            }
        ),
    )
    engine.push("B", [(1, 0.5, SECOND)])
    engine.advance(SECOND)
    values = q.poll().column("av").to_pylist()
    assert values == [float(n) for n in reversed(range(many))]


def test_streams_and_tables_may_come_as_views_and_dictionaries() -> None:
    engine = muntin.Engine()
    engine.stream(
        "A",
        pa.schema(
            [
                ("s", pa.string_view()),
                ("d", pa.dictionary(pa.int8(), pa.string())),
                ("ts", pa.timestamp("ms")),
            ]
        ),
    )
    engine.table("T", pa.table({"s": pa.array(["x"], pa.string_view()), "n": [7]}))
    q = engine.query("SELECT A.d, T.n FROM A, T WHERE A.s = T.s WINDOW 1 SECOND")
    rows = pa.table(
        {
            "s": pa.array(["x", "y"], pa.string_view()),
            "d": pa.array(["p", "q"]).dictionary_encode(),
            "ts": pa.array([0, 0], pa.timestamp("ms")),
        }
    )
    engine.push("A", rows)
    engine.advance(0)
    assert q.poll().select(["d", "n"]).to_pylist() == [{"d": "p", "n": 7}]


def test_results_with_more_text_than_an_arrow_chunk_holds_are_complete() -> None:
    """A quarter of a million matches of ten thousand letters each: more than two gigabytes."""
    engine = muntin.Engine()
    engine.stream("A", {"k": "bigint", "s": "varchar", "ts": "timestamp"})
    engine.stream("B", {"k": "bigint", "ts": "timestamp"})
    q = engine.query("SELECT A.s FROM A, B WHERE A.k = B.k WINDOW 1 SECOND")
    engine.push("A", [(1, "x" * 10_000, 0)])
    engine.push(
        "B", pa.table({"k": [1] * 250_000, "ts": pa.array([1] * 250_000).cast(pa.timestamp("us"))})
    )
    engine.advance(1)
    results = q.poll()
    assert len(results) == 250_000
    assert results.column("s").num_chunks > 1
