from __future__ import annotations

from muntin.testing.watermark import Watermark


def test_nothing_is_complete_until_every_stream_has_sent_something() -> None:
    watermark = Watermark()
    watermark.declare("A", 0)
    watermark.declare("B", 2)
    watermark.arrive("a", 10)
    assert watermark.complete is None
    watermark.arrive("B", 5)
    assert watermark.complete == 2  # 5 minus the slack is 3, of which more may come
    watermark.arrive("B", 20)
    assert watermark.complete == 9


def test_rows_of_a_complete_instant_are_late() -> None:
    watermark = Watermark()
    watermark.declare("A", 2)
    assert watermark.arrive("A", 10)
    assert watermark.arrive("A", 8)
    assert not watermark.arrive("A", 7)
    watermark.advance(9)
    assert not watermark.arrive("A", 9)
    assert watermark.arrive("A", 10)


def test_advance_never_goes_back() -> None:
    watermark = Watermark()
    watermark.advance(5)
    watermark.advance(3)
    assert watermark.complete == 5
