"""Which plans the kernel for pairs runs, and what an operator measures of its windows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.model.catalog import Catalog, Stream, Table
from muntin.model.settings import Settings
from muntin.operators.join import JoinOperator, NewRows, Tools, make_join
from muntin.operators.join.program import is_equi_join
from muntin.operators.join.snapshot import answer_of
from muntin.operators.workspace import Workspace
from muntin.plan.join import JoinPlan
from muntin.planner.join_planner import plan_join
from muntin.sql.script import read_query
from muntin.state.batch import Batch

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("ts", pa.timestamp("us"))])


def plan(sql: str, **settings: str) -> JoinPlan:
    catalog = Catalog()
    for name in "ABC":
        catalog.add(Stream(name, SCHEMA, "ts"))
    catalog.add(Table("T", pa.schema([("k", pa.int64())])))
    return plan_join(read_query(sql, "q", catalog), Settings.of(**settings))


@pytest.mark.parametrize(
    ("sql", "settings", "expected"),
    [
        ("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", {}, True),
        ("SELECT A.k FROM A, B WHERE A.s = B.s WINDOW 1 SECOND", {}, True),
        (
            "SELECT A.k FROM A [ROWS 5], A B [RANGE 1 SECOND] WHERE A.k = B.k AND A.s = 'x'",
            {},
            True,
        ),
        ("SELECT A.k FROM A, T WHERE A.k = T.k WINDOW 1 SECOND", {}, True),
        ("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", {"expiry": "eager"}, False),
        ("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", {"algorithm": "naive"}, False),
        ("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", {"buckets": "5"}, False),
        ("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", {"index": "A"}, False),
        ("SELECT A.k FROM A, B WHERE A.k = B.k AND A.s = B.s WINDOW 1 SECOND", {}, False),
        ("SELECT A.k FROM A, B WHERE A.k = B.k AND A.ts < B.ts WINDOW 1 SECOND", {}, False),
        ("SELECT A.k FROM A, B WHERE A.k < B.k WINDOW 1 SECOND", {}, False),
        ("SELECT A.k FROM A [PARTITION BY k ROWS 1], B [ROWS 2] WHERE A.k = B.k", {}, False),
        ("SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 1 SECOND", {}, False),
        ("SELECT A.k FROM A WINDOW 1 SECOND", {}, False),
    ],
)
def test_pairs_are_two_windows_with_one_equality(
    sql: str,
    settings: dict[str, str],
    expected: bool,  # noqa: FBT001
) -> None:
    assert is_equi_join(plan(sql, **settings)) is expected


def operator(sql: str, streams: str = "AB", **settings: str) -> JoinOperator:
    return make_join(
        plan(sql, **settings),
        list(streams),
        {"T": pa.table({"k": [1, 2, None]})},
        Tools(Evaluator(Duck()), Workspace()),
    )


def news(*streams: list[tuple[int, int | None]]) -> list[NewRows]:
    """Return rows of (time, key), per stream."""
    found = []
    for rows in streams:
        times = np.array([time for time, _ in rows], np.int64)
        table = pa.table(
            [
                [key for _, key in rows],
                [None] * len(rows),
                pa.array(times).cast(pa.timestamp("us")),
            ],
            schema=SCHEMA,
        )
        found.append(NewRows(np.arange(len(rows)), Batch(table, times, np.zeros(len(rows))), 0))
    return found


def test_matches_are_positions_in_the_order_in_which_rows_complete_them() -> None:
    join = operator("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 10 MICROSECONDS")
    found = [
        (int(time), *positions)
        for matches in join.join(
            news([(1, 7), (2, 7), (3, None), (20, 7)], [(2, 7), (5, 8), (12, 7)]), 25
        )
        for time, positions in zip(matches.times, matches.positions.T.tolist(), strict=True)
    ]
    assert found == [(2, 1, 0), (2, 0, 0), (20, 3, 2)]
    assert join.rows() == [1, 0]
    assert join.now == 25


def test_rows_loaded_from_history_complete_no_matches_but_are_partners() -> None:
    join = operator("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 10 MICROSECONDS")
    join.fill(news([(1, 7)], [(1, 7)]), 1)
    assert join.rows() == [1, 1]
    assert [matches.positions.tolist() for matches in answer_of(join)] == [[[0], [0]]]
    assert join.state.counters[7] == 0


def test_a_stored_table_is_there_from_the_start_without_its_null_keys() -> None:
    join = operator("SELECT A.k FROM A, T WHERE A.k = T.k WINDOW 10 MICROSECONDS", "A")
    assert join.rows() == [0, 2]
    assert [matches.positions.tolist() for matches in join.join(news([(1, 2), (2, 3)]), 2)] == [
        [[0], [1]]
    ]


def test_measuring_reads_rates_rows_and_different_keys_of_all_kinds_of_windows() -> None:
    join = operator("SELECT A.k FROM A [RANGE 2 SECONDS], B [ROWS 3] WHERE A.k = B.k")
    assert join.measure() is None
    list(join.join(news([], [(0, 1)]), 0))
    assert join.measure() is None, "no time has passed"
    list(
        join.join(
            news(
                [(n * 100_000, n % 5) for n in range(1, 41)],
                [(n * 500_000, 1) for n in range(1, 9)],
            ),
            4_000_000,
        )
    )
    measured = join.measure()
    assert measured is not None
    assert [(found.rate, found.rows) for found in measured.sources] == [(10.0, 20.0), (2.0, 3.0)]
    assert [round(found.distinct[0]) for found in measured.sources] == [5, 1]
    assert join.measure() is None, "nothing has come since"


def test_the_fraction_of_matching_pairs_is_measured_on_samples() -> None:
    join = operator("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 4 SECONDS")
    list(join.join(news([(0, 0)], [(0, 0)]), 0))
    skewed: list[tuple[int, int | None]] = [(n + 1, 0 if n % 2 else n) for n in range(400)]
    list(join.join(news(skewed, skewed), 1000))
    measured = join.measure()
    assert measured is not None
    ((edge, share),) = measured.edges
    assert edge == ((0, 0), (1, 0))
    assert 0.2 < share < 0.3, "half of the rows on either side have the value 0"
