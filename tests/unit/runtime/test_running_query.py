"""From matches to result rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.model.catalog import Catalog, Stream, Table
from muntin.model.settings import Settings
from muntin.operators.join import Matches
from muntin.planner.join_planner import plan_join
from muntin.runtime.running_query import ResultMaker
from muntin.sql.script import read_query
from muntin.state.columns import StoredRows

A = pa.table(
    {"v": [10, 20, None], "s": ["x", None, "z"], "ts": pa.array([0, 1, 2], pa.timestamp("us"))}
)
T = pa.table({"n": ["one", "two"]})
SECOND = 1_000_000


def maker(sql: str) -> ResultMaker:
    catalog = Catalog()
    catalog.add(Stream("A", A.schema, "ts"))
    catalog.add(Table("T", T.schema))
    plan = plan_join(read_query(sql, "q", catalog), Settings())
    rows = {"A": StoredRows(A), "T": StoredRows(T)}
    select = [column.expression for column in plan.query.select]
    return ResultMaker(
        plan.query,
        select,
        plan.residuals,
        [rows[source.relation] for source in plan.query.sources],
        Evaluator(Duck()),
    )


def matches(times: list[int], *positions: list[int], signs: list[int] | None = None) -> Matches:
    return Matches(
        np.array(times, np.int64),
        np.array(signs, np.int8) if signs else None,
        np.array(positions, np.int64),
        0.0,
    )


def test_plain_columns_and_expressions_follow_sign_and_time() -> None:
    made = maker("SELECT T.n, A.v + 1 AS w, 'c' AS c, A.v FROM A, T WINDOW 1 SECOND").make(
        matches([5, 6], [1, 2], [0, 1], signs=[1, -1])
    )
    assert made.schema.names == ["_op", "_ts", "n", "w", "c", "v"]
    assert made.drop_columns(["_ts"]).to_pylist() == [
        {"_op": "+", "n": "one", "w": 21, "c": "c", "v": 20},
        {"_op": "-", "n": "two", "w": None, "c": "c", "v": None},
    ]
    assert made.column("_ts").cast(pa.int64()).to_pylist() == [5, 6]


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (0, 0),
        (1, 2),
        (2 * SECOND, 2),
        (2 * SECOND + 1, 4),
        (-1, 0),
        (-2 * SECOND, -2),
        (-2 * SECOND - 1, -2),
        (-3 * SECOND, -2),
    ],
)
def test_every_shows_what_happened_at_the_next_multiple(time: int, shown: int) -> None:
    made = maker("SELECT v FROM A WINDOW 1 SECOND EVERY 2 SECONDS").make(matches([time], [0]))
    assert made.column("_ts").cast(pa.int64()).to_pylist() == [shown * SECOND]


def test_constants_alone_need_no_column() -> None:
    made = maker("SELECT 1 AS one, NULL AS nothing FROM A WINDOW 1 SECOND")
    assert (
        made.select(matches([0, 0, 0], [0, 1, 2])).to_pylist() == [{"one": 1, "nothing": None}] * 3
    )
    none = made.make(matches([], []))
    assert none.num_rows == 0
    assert none.schema.names == ["_op", "_ts", "one", "nothing"]


def test_matches_that_fail_a_residual_are_left_out_with_all_that_belongs_to_them() -> None:
    made = maker("SELECT A.v, B.s FROM A, A B WHERE A.v + B.v > 25 WINDOW 1 SECOND")
    given = Matches(
        np.array([1, 2, 3]),
        np.array([1, -1, 1], np.int8),
        np.array([[0, 0, 1], [0, 1, 2]]),
        np.array([0.1, 0.2, 0.3]),
    )
    passed = made.passing(given)
    assert (passed.times.tolist(), passed.positions.tolist()) == ([2], [[0], [1]])
    assert passed.signs is not None
    assert passed.signs.tolist() == [-1]
    assert not isinstance(passed.arrivals, float)
    assert passed.arrivals.tolist() == [0.2]
    assert made.make(passed).drop_columns(["_ts"]).to_pylist() == [{"_op": "-", "v": 10, "s": None}]


def test_matches_that_all_pass_are_handed_on_as_they_are() -> None:
    made = maker("SELECT A.v FROM A, A B WHERE A.v + B.v > 5 WINDOW 1 SECOND")
    given = matches([1], [0], [1])
    assert made.passing(given) is given
    assert maker("SELECT v FROM A WINDOW 1 SECOND").passing(given) is given


def test_results_do_not_change_when_the_kernel_reuses_its_buffers() -> None:
    times, positions = np.array([7]), np.array([[0]])
    made = maker("SELECT v FROM A WINDOW 1 SECOND").make(Matches(times, None, positions, 0.0))
    times[:], positions[:] = 99, 1
    assert made.to_pylist() == [
        {"_op": "+", "_ts": pa.scalar(7, pa.timestamp("us")).as_py(), "v": 10}
    ]
