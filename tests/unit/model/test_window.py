from __future__ import annotations

import pytest

from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow, Unbounded, Window


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (TimeWindow(90_000_000), "[RANGE 90 seconds]"),
        (TimeWindow(1), "[RANGE 1 microsecond]"),
        (RowsWindow(5), "[ROWS 5]"),
        (PartitionedWindow(("a", "b"), 2), "[PARTITION BY a, b ROWS 2]"),
        (Unbounded(), "[STORED]"),
    ],
)
def test_windows_print_as_they_are_written(window: Window, text: str) -> None:
    assert str(window) == text


@pytest.mark.parametrize("size", [0, -1])
def test_a_window_that_holds_nothing_cannot_be_made(size: int) -> None:
    for make in (TimeWindow, RowsWindow, lambda rows: PartitionedWindow(("a",), rows)):
        with pytest.raises(AssertionError, match="the binder refuses windows that hold nothing"):
            make(size)


def test_equal_windows_are_one_value() -> None:
    assert (
        len(
            {
                TimeWindow(5),
                TimeWindow(5),
                RowsWindow(5),
                PartitionedWindow(("a",), 5),
                Unbounded(),
                Unbounded(),
            }
        )
        == 4
    )
