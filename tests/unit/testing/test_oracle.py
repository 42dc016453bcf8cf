"""The oracle against results worked out by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow
from muntin.plan.query import Emit
from muntin.testing.watermark import OrderFrontier

SECOND = 1_000_000
TEN = TimeWindow(10 * SECOND)
ON_K = ['"0.k" = "1.k"']


def test_rows_join_while_they_are_less_than_a_window_apart(workshop: Any) -> None:
    query = workshop.query([("A", TEN), ("B", TEN)], ON_K)
    oracle = workshop.oracle(
        query,
        A=workshop.rows((0, 1, 10), (11, 2, 20)),
        B=workshop.rows((9.999999, 1, 1), (10, 1, 2), (11, 2, 3)),
    )
    # B's row of 10 is exactly one window after A's row of 0, which expired at that instant.
    assert workshop.lines(oracle.inserts()) == ["+ 10 10 1", "+ 11 20 3"]


def test_inserts_stop_at_the_given_instant(workshop: Any) -> None:
    oracle = workshop.oracle(
        workshop.query([("A", TEN)]), A=workshop.rows((1, 1, 1), (2, 1, 2), (3, 1, 3))
    )
    assert workshop.lines(oracle.inserts(2 * SECOND)) == ["+ 1 1", "+ 2 2"]


def test_each_stream_has_its_own_window(workshop: Any) -> None:
    query = workshop.query([("A", TimeWindow(2 * SECOND)), ("B", TEN)], ON_K)
    oracle = workshop.oracle(
        query, A=workshop.rows((0, 1, 1), (7, 1, 2)), B=workshop.rows((2, 1, 5))
    )
    # A's row of 0 is gone at 2; B's row of 2 is there until 12.
    assert workshop.lines(oracle.inserts()) == ["+ 7 2 5"]


def test_ties_are_broken_by_declaration_then_arrival_and_partners_come_newest_first(
    workshop: Any,
) -> None:
    query = workshop.query([("A", TEN), ("B", TEN)], ON_K)
    oracle = workshop.oracle(
        query, A=workshop.rows((5, 1, 1), (5, 1, 2)), B=workshop.rows((5, 1, 3), (5, 1, 4))
    )
    assert workshop.lines(oracle.inserts()) == ["+ 5 2 3", "+ 5 1 3", "+ 5 2 4", "+ 5 1 4"]


def test_rows_that_arrive_out_of_order_are_put_in_order_of_time(workshop: Any) -> None:
    oracle = workshop.oracle(
        workshop.query([("A", RowsWindow(1))]), A=workshop.rows((3, 1, 3), (1, 1, 1), (2, 1, 2))
    )
    assert workshop.lines(oracle.inserts()) == ["+ 1 1", "+ 2 2", "+ 3 3"]
    assert workshop.bag(oracle.answer(2 * SECOND)) == [(2,)]


def test_a_self_join_pairs_a_row_with_itself_once(workshop: Any) -> None:
    query = workshop.query([("A", TEN), ("A", TEN)], ON_K)
    oracle = workshop.oracle(query, A=workshop.rows((1, 7, 1), (2, 7, 2)))
    # Row 2 comes first as the newest row of the first alias, then as that of the second, where it
    # meets itself and then row 1.
    assert workshop.lines(oracle.inserts()) == ["+ 1 1 1", "+ 2 2 1", "+ 2 2 2", "+ 2 1 2"]


def test_a_self_join_over_a_count_window_counts_the_new_row_under_both_aliases(
    workshop: Any,
) -> None:
    query = workshop.query([("A", RowsWindow(1)), ("A", RowsWindow(2))], ON_K)
    oracle = workshop.oracle(query, A=workshop.rows((1, 7, 1), (2, 7, 2), (3, 7, 3)))
    # Under the first alias only the new row itself is left; under the second also the one before.
    assert workshop.lines(oracle.inserts()) == [
        "+ 1 1 1",
        "+ 2 2 1",
        "+ 2 2 2",
        "+ 3 3 2",
        "+ 3 3 3",
    ]


def test_a_count_window_holds_the_last_rows_of_the_stream_before_any_predicate(
    workshop: Any,
) -> None:
    query = workshop.query([("A", RowsWindow(2)), ("B", TEN)], [*ON_K, '"0.v" > 1'])
    oracle = workshop.oracle(
        query, A=workshop.rows((1, 1, 5), (2, 1, 1), (3, 2, 9)), B=workshop.rows((4, 1, 0))
    )
    assert workshop.lines(oracle.inserts()) == []


def test_a_partitioned_window_holds_the_last_rows_of_each_partition_and_null_is_one(
    workshop: Any,
) -> None:
    query = workshop.query([("A", PartitionedWindow(("k",), 1)), ("B", TEN)])
    oracle = workshop.oracle(
        query,
        A=workshop.rows((1, 1, 1), (2, None, 2), (3, None, 3), (4, 2, 4), (5, 1, 5)),
        B=workshop.rows((6, 1, 0)),
    )
    assert workshop.lines(oracle.inserts()) == ["+ 6 5 0", "+ 6 4 0", "+ 6 3 0"]


def test_rows_of_a_stored_table_are_always_there_and_never_the_newest(workshop: Any) -> None:
    query = workshop.query([("T", None), ("A", TEN)], ON_K)
    oracle = workshop.oracle(
        query,
        T=workshop.table((1, "x"), (2, "y"), (1, "z")),
        A=workshop.rows((5, 1, 10), (6, 3, 11), (50, 1, 12)),
    )
    assert workshop.lines(oracle.inserts()) == ["+ 5 z 10", "+ 5 x 10", "+ 50 z 12", "+ 50 x 12"]
    assert workshop.bag(oracle.answer(5 * SECOND)) == [("x", 10), ("z", 10)]


def test_null_keys_never_match(workshop: Any) -> None:
    query = workshop.query([("A", TEN), ("B", TEN)], ON_K)
    assert (
        workshop.oracle(query, A=workshop.rows((1, None, 1)), B=workshop.rows((2, None, 2)))
        .inserts()
        .num_rows
        == 0
    )


def test_golab03_tables_2_and_3(workshop: Any) -> None:
    hundred = TimeWindow(100 * SECOND)
    query = workshop.query(
        [("A", hundred), ("B", hundred), ("C", hundred)], ['"0.k" = "1.k"', '"1.k" = "2.k"']
    )
    streams = {
        "A": workshop.rows((90, 1, 90), (100, 1, 100)),
        "B": workshop.rows((150, 1, 150), (180, 1, 180)),
        "C": workshop.rows((195, 1, 195), (205, 1, 205)),
    }
    assert workshop.lines(workshop.oracle(query, **streams).inserts()) == [
        "+ 195 100 180 195",
        "+ 195 100 150 195",
    ]


def test_the_answer_holds_the_rows_present(workshop: Any) -> None:
    query = workshop.query([("A", TEN), ("B", TEN)], ON_K)
    oracle = workshop.oracle(
        query, A=workshop.rows((1, 1, 1)), B=workshop.rows((4, 1, 2), (6, 1, 3))
    )
    found = {
        instant: workshop.bag(oracle.answer(instant * SECOND)) for instant in (3, 4, 6, 10, 11)
    }
    assert found == {3: [], 4: [(1, 2)], 6: [(1, 2), (1, 3)], 10: [(1, 2), (1, 3)], 11: []}


def test_changes_add_and_remove(workshop: Any) -> None:
    query = workshop.query([("A", TEN), ("B", TEN)], ON_K, emit=Emit.CHANGES)
    oracle = workshop.oracle(query, A=workshop.rows((1, 1, 1)), B=workshop.rows((4, 1, 2)))
    assert workshop.lines(oracle.changes(20 * SECOND)) == ["+ 4 1 2", "- 11 1 2"]
    assert oracle.instants(20 * SECOND) == [second * SECOND for second in (1, 4, 11, 14)]


def test_changes_of_one_instant_are_consolidated(workshop: Any) -> None:
    query = workshop.query([("A", RowsWindow(1))], emit=Emit.CHANGES)
    oracle = workshop.oracle(
        query, A=workshop.rows((1, 1, 5), (2, 2, 5), (3, 3, 6), (4, 1, 7), (4, 1, 8))
    )
    # At 2 an equal row replaces the old one; at 4 a row leaves before the instant is over.
    assert workshop.lines(oracle.changes(20 * SECOND)) == [
        "+ 1 5",
        "- 3 5",
        "+ 3 6",
        "- 4 6",
        "+ 4 8",
    ]
    assert workshop.lines(oracle.inserts()) == ["+ 1 5", "+ 2 5", "+ 3 6", "+ 4 7", "+ 4 8"]


def test_changes_repeat_a_row_as_often_as_it_comes(workshop: Any) -> None:
    oracle = workshop.oracle(
        workshop.query([("A", TEN)], emit=Emit.CHANGES), A=workshop.rows((1, 1, 5), (1, 2, 5))
    )
    assert workshop.lines(oracle.changes(20 * SECOND)) == ["+ 1 5", "+ 1 5", "- 11 5", "- 11 5"]


def test_every_holds_results_back_to_the_next_multiple(workshop: Any) -> None:
    query = workshop.query([("A", TEN)], every=5)
    oracle = workshop.oracle(
        query, A=workshop.rows((-7, 1, 0), (0, 1, 1), (1, 1, 2), (5, 1, 3), (6, 1, 4))
    )
    assert workshop.lines(oracle.inserts()) == ["+ -5 0", "+ 0 1", "+ 5 2", "+ 5 3", "+ 10 4"]
    assert workshop.lines(oracle.inserts(9 * SECOND)) == ["+ -5 0", "+ 0 1", "+ 5 2", "+ 5 3"]
    assert workshop.bag(oracle.answer(4 * SECOND)) == [
        (0,),
        (1,),
    ]  # the answer at 0, where the row of -7 still lives


def test_changes_with_every_are_differences_between_multiples(workshop: Any) -> None:
    query = workshop.query([("A", TimeWindow(3 * SECOND))], every=5, emit=Emit.CHANGES)
    oracle = workshop.oracle(query, A=workshop.rows((1, 1, 1), (3, 1, 3), (10, 1, 9)))
    # The row of 1 comes and goes between two multiples.
    assert workshop.lines(oracle.changes(20 * SECOND)) == ["+ 5 3", "- 10 3", "+ 10 9", "- 15 9"]
    assert oracle.instants(20 * SECOND) == [second * SECOND for second in (5, 10, 15)]


def test_a_query_gets_no_results_whose_newest_row_came_before_it(workshop: Any) -> None:
    query = workshop.query([("A", TEN), ("B", TEN)], ON_K)
    streams = {"A": workshop.rows((1, 1, 1), (6, 1, 6)), "B": workshop.rows((2, 1, 2))}
    oracle = workshop.oracle(query, after=OrderFrontier(5 * SECOND), **streams)
    assert workshop.lines(oracle.inserts()) == ["+ 6 6 2"]
    assert workshop.bag(oracle.answer(7 * SECOND)) == [(6, 2)]


def test_no_rows_at_all(workshop: Any) -> None:
    query = workshop.query([("A", TEN), ("B", RowsWindow(2))], ON_K, emit=Emit.CHANGES)
    oracle = workshop.oracle(query)
    assert oracle.inserts().schema == query.output_schema
    assert (
        oracle.answer(SECOND).num_rows
        == oracle.changes(SECOND).num_rows
        == len(oracle.instants(SECOND))
        == 0
    )


def test_results_have_the_declared_types(workshop: Any) -> None:
    query = workshop.query([("T", None), ("A", TEN)], ON_K)
    oracle = workshop.oracle(query, T=workshop.table((1, "x")), A=workshop.rows((5, 1, 10)))
    assert oracle.inserts().schema == oracle.changes(5 * SECOND).schema == query.output_schema
    assert oracle.answer(5 * SECOND).schema == pa.schema([("c0", pa.string()), ("c1", pa.int32())])
