from __future__ import annotations

from muntin.testing.watermark import Frontier, Watermark


def declared(**slacks: int) -> Watermark:
    watermark = Watermark()
    for name, slack in slacks.items():
        watermark.declare(name, slack)
    return watermark


def test_the_frontier_waits_for_the_slowest_stream() -> None:
    watermark = declared(A=0, B=2)
    watermark.arrive("a", 10)
    assert watermark.frontier.time < 0
    watermark.arrive("B", 5)
    # A has sent later rows, B may send more of time 3: they stand behind all that are there.
    assert watermark.frontier == Frontier(3, 1)
    watermark.arrive("B", 20)
    assert watermark.frontier == Frontier(10, 0)
    assert watermark.frontier.closed == 9
    assert [watermark.frontier.last_time(order) for order in (0, 1)] == [10, 9]


def test_streams_that_no_query_reads_do_not_count() -> None:
    watermark = declared(A=0, B=0)
    watermark.follow(["A"])
    watermark.arrive("A", 10)
    assert watermark.frontier == Frontier(10, 0)
    watermark.follow(["A", "B"])
    watermark.arrive("A", 11)
    assert watermark.frontier == Frontier(10, 0)  # never goes back


def test_rows_older_than_the_frontier_are_late() -> None:
    watermark = declared(A=2)
    assert watermark.arrive("A", 10)
    assert watermark.arrive("A", 8)
    assert not watermark.arrive("A", 7)


def test_advance_completes_its_instant_on_all_streams() -> None:
    watermark = declared(A=0)
    watermark.advance(9)
    assert watermark.frontier == Frontier(9)
    assert not watermark.arrive("A", 8)
    assert watermark.arrive("A", 9)
    assert watermark.arrive("A", 10)
    watermark.advance(5)
    assert watermark.frontier == Frontier(10, 0)


def test_an_instant_is_closed_when_it_is_complete_on_all_streams() -> None:
    assert [(frontier.exact, frontier.closed) for frontier in (Frontier(9), Frontier(9, 0))] == [(True, 9), (False, 8)]
