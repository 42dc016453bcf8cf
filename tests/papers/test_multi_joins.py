"""[Golab03]: its worked examples."""

from __future__ import annotations

import pytest

import muntin
from muntin.model.catalog import Catalog, Stream
from muntin.model.settings import Settings
from muntin.planner.join_planner import plan_join
from muntin.sql.script import read_query
from muntin.sql.types import build_schema
from muntin.testing.generators import multi_join_streams

SECOND = 1_000_000
COLUMNS = {"attr": "bigint", "ts": "timestamp"}


def engine_with(streams: int, **settings: str) -> muntin.Engine:
    engine = muntin.Engine(**settings)
    for number in range(1, streams + 1):
        engine.stream(f"S{number}", COLUMNS, time="ts")
    return engine


@pytest.mark.parametrize("algorithm", ["eager", "naive", "lazy", "general_lazy"])
@pytest.mark.parametrize("join", ["nested_loop", "hash"])
@pytest.mark.parametrize("order", ["S1, S2, S3", "S3, S2, S1"])
def test_table_2_gives_the_correct_results_of_table_3(
    algorithm: str, join: str, order: str
) -> None:
    """Feed all rows before the first evaluation at 210: rows of S1 expired at 205 must not join."""
    engine = engine_with(3, algorithm=algorithm, join=join, order=order, reevaluation="210 seconds")
    q = engine.query(
        "SELECT S1.ts AS t1, S2.ts AS t2, S3.ts AS t3 FROM S1, S2, S3 WHERE S1.attr = S2.attr AND "
        "S2.attr = S3.attr WINDOW 100 SECONDS"
    )
    for stream, times in (("S1", (90, 100)), ("S2", (150, 180)), ("S3", (195, 205))):
        engine.push(stream, [(1, at * SECOND) for at in times])
    engine.advance(210 * SECOND)
    assert seconds_of(q, "t1", "t2", "t3") == [(100, 180, 195), (100, 150, 195)]


def seconds_of(q: muntin.StandingQuery, *columns: str) -> list[tuple[int, ...]]:
    """Return the polled rows, times in seconds."""
    rows = q.poll()
    return list(
        zip(
            *(
                (value // SECOND for value in rows.column(name).cast("int64").to_pylist())
                for name in columns
            ),
            strict=True,
        )
    )


def test_table_4_orders_the_origin_first_and_the_others_globally() -> None:
    catalog = Catalog()
    for name in ("S1", "S2", "S3"):
        catalog.add(Stream(name, build_schema(COLUMNS), "ts"))
    sql = (
        "SELECT S1.attr FROM S1, S2, S3 WHERE S1.attr = S2.attr AND S2.attr = S3.attr WINDOW 100 "
        "SECONDS"
    )
    plan = plan_join(read_query(sql, "q", catalog), Settings.of(order="S1, S2, S3"))
    assert [[step.source for step in steps] for steps in plan.orders] == [[1, 2], [0, 2], [0, 1]]


def test_naive_compares_more_than_eager_and_hash_less_than_nested_loops() -> None:
    work = {}
    for algorithm, join in (("eager", "nested_loop"), ("naive", "nested_loop"), ("eager", "hash")):
        streams = multi_join_streams(1_200, rates=[1, 1, 1], distinct=[20, 20, 20], seed=5)
        engine = engine_with(3, algorithm=algorithm, join=join, order="S1, S2, S3")
        q = engine.query(
            "SELECT S1.attr FROM S1, S2, S3 WHERE S1.attr = S2.attr AND S2.attr = S3.attr WINDOW "
            "300 SECONDS"
        )
        for number, rows in enumerate(streams, 1):
            engine.push(f"S{number}", rows)
        engine.advance(1_200 * SECOND)
        stats = q.stats()["work"]
        assert isinstance(stats, dict)
        work[algorithm, join] = (stats["matches"], stats["comparisons"])
    assert len({matches for matches, _ in work.values()}) == 1
    assert (
        work["eager", "hash"][1] < work["eager", "nested_loop"][1] < work["naive", "nested_loop"][1]
    )


def test_count_windows_hold_exactly_their_rows_under_lazy_evaluation() -> None:
    """COMPUTECOUNTJOIN joins with the last N rows as of the new row, the newest included."""
    results = {}
    for algorithm in ("eager", "lazy", "general_lazy", "naive"):
        engine = engine_with(2, algorithm=algorithm, reevaluation="1 hour")
        q = engine.query(
            "SELECT S1.ts AS t1, S2.ts AS t2 FROM S1 [ROWS 2], S2 [ROWS 1] WHERE S1.attr = S2.attr"
        )
        engine.push("S1", [(7, at * SECOND) for at in (1, 2, 3)])
        engine.push("S2", [(7, 4 * SECOND), (7, 5 * SECOND)])
        engine.push("S1", [(7, 6 * SECOND)])
        engine.advance(10 * SECOND)
        results[algorithm] = seconds_of(q, "t1", "t2")
    assert results["eager"] == [(3, 4), (2, 4), (3, 5), (2, 5), (6, 5)]
    assert all(other == results["eager"] for other in results.values())
