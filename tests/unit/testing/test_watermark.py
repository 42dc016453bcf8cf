from __future__ import annotations

from muntin.testing.watermark import OrderFrontier, Watermark


def declared(**slacks: int) -> Watermark:
    watermark = Watermark()
    for name, slack in slacks.items():
        watermark.declare(name, slack)
    return watermark


def test_the_frontier_waits_for_the_slowest_stream() -> None:
    watermark = declared(A=0, B=2)
    watermark.follow("q", "AB")
    watermark.arrive("a", 10)
    assert watermark.frontier("q").time < 0
    watermark.arrive("B", 5)
    # A has sent later rows; B may send more of time 3, which come after all present rows.
    assert watermark.frontier("q") == OrderFrontier(3, 1)
    watermark.arrive("B", 20)
    assert watermark.frontier("q") == OrderFrontier(10, 0)
    assert watermark.frontier("q").closed == 9
    assert [watermark.frontier("q").last_time(order) for order in (0, 1)] == [10, 9]


def test_a_query_waits_only_for_the_streams_it_reads() -> None:
    watermark = declared(A=0, B=0)
    watermark.follow("alone", "A")
    watermark.follow("both", "AB")
    watermark.arrive("A", 10)
    assert watermark.frontier("alone") == OrderFrontier(10, 0)
    assert watermark.frontier("both").time < 0
    late = watermark.arrive("A", 9)
    assert (late.late_for, late.lost, late.late) == (frozenset({"alone"}), False, True)
    watermark.forget("both")
    assert watermark.arrive("A", 9).lost


def test_a_stream_that_no_query_reads_waits_for_others_only_while_there_is_no_query() -> None:
    watermark = declared(A=0, B=0)
    watermark.arrive("A", 10)
    assert not watermark.arrive("A", 9).late
    watermark.follow("q", "B")
    assert watermark.arrive("A", 9).lost


def test_rows_older_than_the_frontier_are_late() -> None:
    watermark = declared(A=2)
    watermark.follow("q", "A")
    assert not watermark.arrive("A", 10).late
    assert not watermark.arrive("A", 8).late
    assert watermark.arrive("A", 7).late


def test_advance_completes_its_instant_on_all_streams() -> None:
    watermark = declared(A=0)
    watermark.follow("q", "A")
    watermark.advance(9)
    assert watermark.frontier("q") == OrderFrontier(9)
    assert watermark.arrive("A", 8).late
    assert not watermark.arrive("A", 9).late
    assert not watermark.arrive("A", 10).late
    watermark.advance(5)
    assert watermark.frontier("q") == OrderFrontier(10, 0)


def test_an_instant_is_closed_when_it_is_complete_on_all_streams() -> None:
    assert [
        (frontier.exact, frontier.closed) for frontier in (OrderFrontier(9), OrderFrontier(9, 0))
    ] == [
        (True, 9),
        (False, 8),
    ]


def test_an_advance_that_the_rows_have_passed_moves_no_query() -> None:
    watermark = declared(A=0, B=6)
    for query in "AB":
        watermark.follow(query, [query])
    watermark.arrive("A", 10)
    watermark.arrive("B", 10)
    for instant in (5, 11, 12):
        watermark.advance(instant)
    assert [watermark.advanced(query) for query in "AB"] == [11, 5]
    watermark.follow("later", "A")
    watermark.advance(13)
    assert watermark.advanced("later") == 12
