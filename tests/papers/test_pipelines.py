"""[HammadTR]: its worked examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.operators.intake import Intake
from muntin.operators.signed import Changes
from muntin.operators.windowed import OnceOperator
from muntin.plan.nodes import Distinct
from muntin.sql.script import read_query

SECOND = 1_000_000
IN_TIME = pytest.mark.parametrize("strategy", ["probing", "negative", "hybrid"])
ALL = pytest.mark.parametrize("strategy", ["input", "probing", "negative", "hybrid"])


def run(
    query: str, rows: Mapping[str, Sequence[tuple[object, int]]], until: int, strategy: str = "auto"
) -> tuple[list[tuple[int, str, object]], muntin.StandingQuery]:
    """Return the changes (second, sign, value) of a query over streams, all with one column."""
    engine = muntin.Engine(pipeline=strategy)
    for name, values in rows.items():
        kind = "varchar" if isinstance(values[0][0], str) else "bigint"
        engine.stream(name, {"v": kind, "ts": "timestamp"})
    q = engine.query(query)
    for name, values in rows.items():
        engine.push(name, [(value, second * SECOND) for value, second in values])
    engine.advance(until * SECOND)
    changes = q.poll()
    columns = (
        changes.column("_ts").cast("int64").to_pylist(),
        changes.column("_op").to_pylist(),
        changes.column(2).to_pylist(),
    )
    return [(at // SECOND, sign, value) for at, sign, value in zip(*columns, strict=True)], q


@ALL
def test_figure_1_the_sum_changes_when_tuples_expire(strategy: str) -> None:
    """Prices 6, 9, 5, 8 give 28; 6 expires: 22; 9 expires: 13; 7 comes: 20.

    1, which is not above 4, is in no sum.
    """
    rows = {"S": [(6, 0), (1, 0), (9, 1), (5, 3), (8, 4), (7, 8)]}
    changes, _ = run(
        "SELECT SUM(v) AS total FROM S WHERE v > 4 WINDOW 6 SECONDS", rows, 8, strategy
    )
    sums = [value for _, sign, value in changes if sign == "+" and value is not None]
    assert [int(str(value)) for value in sums[-4:]] == [28, 22, 13, 20]


FIGURE_1 = [(6, 0), (9, 1), (5, 3), (8, 4)]
SUM = "SELECT SUM(v) AS total FROM S WHERE v > 4 WINDOW 6 SECONDS"


@IN_TIME
def test_figure_1a_answers_do_not_wait_for_input(strategy: str) -> None:
    """At T2, when 6 has left, the sum is 22 although nothing comes."""
    assert sums_at(strategy, [6, 7]) == [[28, 22], [13]]


def test_figure_1a_triggered_by_input_the_answers_in_between_come_late() -> None:
    """22 and 13 are released with 20, when 7 comes at T5, each under its own time."""
    assert sums_at("input", [6, 7, 8]) == [[28], [], [22, 13, 20]]


def sums_at(strategy: str, seconds: list[int]) -> list[list[int]]:
    """Return the sums from 28 on that are released by each given second; 7 comes at 8."""
    engine = muntin.Engine(pipeline=strategy)
    engine.stream("S", {"v": "bigint", "ts": "timestamp"})
    q = engine.query(SUM)
    engine.push("S", [(value, second * SECOND) for value, second in FIGURE_1])
    found = []
    for second in seconds:
        if second == 8:
            engine.push("S", [(7, 8 * SECOND)])
        engine.advance(second * SECOND)
        changes = q.poll().to_pylist()
        found.append(
            [
                int(change["total"])
                for change in changes
                if change["_op"] == "+" and change["total"] is not None
            ]
        )
    found[0] = found[0][found[0].index(28) :]
    return found


@IN_TIME
def test_figure_2a_a_tuple_becomes_invalid_when_an_equal_one_comes_on_the_right(
    strategy: str,
) -> None:
    rows = {"S": [("A", 1), ("B", 2)], "R": [("C", 3), ("A", 5)]}
    changes, _ = run("SELECT v FROM S MINUS SELECT v FROM R WINDOW 60 SECONDS", rows, 6, strategy)
    assert changes == [(1, "+", "A"), (2, "+", "B"), (5, "-", "A")]


@IN_TIME
def test_figures_2b_and_5_distinct_values_stay_while_a_duplicate_is_in_the_window(
    strategy: str,
) -> None:
    """Keep a from 2 to 14, d from 4 to 13, e from 9 to 15.

    Rows are a at 2, 6 and 8, d at 4 and 7, e at 9; the window is 6.

    The paper sends a replacement at 8 and 10; a changelog need not, since the row that is there
    stays the same row.
    """
    rows = {"S": [("a", 2), ("d", 4), ("a", 6), ("d", 7), ("a", 8), ("e", 9)]}
    changes, _ = run("SELECT DISTINCT v FROM S WINDOW 6 SECONDS", rows, 20, strategy)
    assert changes == [
        (2, "+", "a"),
        (4, "+", "d"),
        (9, "+", "e"),
        (13, "-", "d"),
        (14, "-", "a"),
        (15, "-", "e"),
    ]


def test_figure_5_a_value_is_sent_again_when_the_duplicate_that_stays_longest_replaces_it() -> None:
    """Stream S2': a at 2, d at 4; a at 8 with the tuple of 8, not that of 6; e at 9; d at 10.

    The tuple of d at 10 is that of 7.
    """
    engine = muntin.Engine()
    engine.stream("S", {"v": "varchar", "ts": "timestamp"})
    query = read_query("SELECT DISTINCT v FROM S WINDOW 6 SECONDS", "q", engine._declared.catalog)
    assert not query.is_join
    assert isinstance(query.root, Distinct)
    intake, operator = (
        Intake(query.root.schema, expires=True),
        OnceOperator(query.root, Evaluator(Duck())),
    )
    said = []
    for value, at in [
        ("a", 2),
        ("d", 4),
        ("a", 6),
        ("d", 7),
        ("a", 8),
        ("e", 9),
        (None, 10),
        (None, 20),
    ]:
        if value is not None:
            intake.put(
                Changes(pa.table({"v": [value]}), np.array([at]), np.array([1]), np.array([at + 6]))
            )
        found = operator.run([intake.take(at)])
        said += list(
            zip(
                found.columns.column(0).to_pylist(),
                found.signs,
                found.explicit_ends() - 6,
                found.times,
                strict=True,
            )
        )
    assert said == [("a", 1, 2, 2), ("d", 1, 4, 4), ("a", 1, 8, 8), ("e", 1, 9, 9), ("d", 1, 7, 10)]


@IN_TIME
def test_figure_2b_the_count_of_distinct_values_is_right_at_every_instant(strategy: str) -> None:
    rows = {"S": [("a", 2), ("d", 4), ("a", 6), ("d", 7), ("a", 8), ("e", 9)]}
    changes, q = run("SELECT COUNT(DISTINCT v) AS n FROM S WINDOW 6 SECONDS", rows, 20, strategy)
    assert [(at, value) for at, sign, value in changes if sign == "+" and at > 0] == [
        (2, 1),
        (4, 2),
        (9, 3),
        (13, 2),
        (14, 1),
        (15, 0),
    ]
    assert q.answer().to_pylist() == [{"n": 0}]
