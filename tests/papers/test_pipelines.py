"""Worked examples of paper 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import muntin

SECOND = 1_000_000


def run(
    query: str, rows: Mapping[str, Sequence[tuple[object, int]]], until: int
) -> tuple[list[tuple[int, str, object]], muntin.StandingQuery]:
    """The changes (second, sign, value) of a query with one column over streams of one column."""
    engine = muntin.Engine()
    for name, values in rows.items():
        kind = "varchar" if isinstance(values[0][0], str) else "bigint"
        engine.stream(name, {"v": kind, "ts": "timestamp"})
    q = engine.query(query)
    for name, values in rows.items():
        engine.push(name, [(value, second * SECOND) for value, second in values])
    engine.advance(until * SECOND)
    changes = q.poll()
    columns = (changes.column("_ts").cast("int64").to_pylist(), changes.column("_op").to_pylist(), changes.column(2).to_pylist())
    return [(at // SECOND, sign, value) for at, sign, value in zip(*columns, strict=True)], q


def test_figure_1_the_sum_changes_when_tuples_expire() -> None:
    """Prices 6, 9, 5, 8 give 28; 6 expires: 22; 9 expires: 13; 7 comes: 20. 1, which is not above 4, is in no sum."""
    rows = {"S": [(6, 0), (1, 0), (9, 1), (5, 3), (8, 4), (7, 8)]}
    changes, _ = run("SELECT SUM(v) AS total FROM S WHERE v > 4 WINDOW 6 SECONDS", rows, 8)
    sums = [value for _, sign, value in changes if sign == "+" and value is not None]
    assert [int(str(value)) for value in sums[-4:]] == [28, 22, 13, 20]


def test_figure_2a_a_tuple_becomes_invalid_when_an_equal_one_comes_on_the_right() -> None:
    changes, _ = run("SELECT v FROM S MINUS SELECT v FROM R WINDOW 60 SECONDS", {"S": [("A", 1), ("B", 2)], "R": [("C", 3), ("A", 5)]}, 6)
    assert changes == [(1, "+", "A"), (2, "+", "B"), (5, "-", "A")]


def test_figures_2b_and_5_distinct_values_stay_while_a_duplicate_is_in_the_window() -> None:
    """a at 2, 6 and 8, d at 4 and 7, e at 9; window 6: a is there from 2 to 14, d from 4 to 13, e from 9 to 15.

    The paper sends a replacement at 8 and 10; a changelog need not, since the row that is there stays the same row.
    """
    rows = {"S": [("a", 2), ("d", 4), ("a", 6), ("d", 7), ("a", 8), ("e", 9)]}
    changes, _ = run("SELECT DISTINCT v FROM S WINDOW 6 SECONDS", rows, 20)
    assert changes == [(2, "+", "a"), (4, "+", "d"), (9, "+", "e"), (13, "-", "d"), (14, "-", "a"), (15, "-", "e")]


def test_figure_2b_the_count_of_distinct_values_is_right_at_every_instant() -> None:
    rows = {"S": [("a", 2), ("d", 4), ("a", 6), ("d", 7), ("a", 8), ("e", 9)]}
    changes, q = run("SELECT COUNT(DISTINCT v) AS n FROM S WINDOW 6 SECONDS", rows, 20)
    assert [(at, value) for at, sign, value in changes if sign == "+" and at > 0] == [(2, 1), (4, 2), (9, 3), (13, 2), (14, 1), (15, 0)]
    assert q.answer().to_pylist() == [{"n": 0}]
