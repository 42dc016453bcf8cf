from __future__ import annotations

import pytest

from muntin.errors import SqlError
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow
from muntin.sql.cursor import Cursor
from muntin.sql.lexer import tokenize
from muntin.sql.windows import read_bracket, read_extent

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("1 MINUTE", TimeWindow(60 * SECOND)),
        ("90 seconds", TimeWindow(90 * SECOND)),
        ("1.5 SECONDS", TimeWindow(1_500_000)),
        ("500 MILLISECONDS", TimeWindow(500_000)),
        ("500ms", TimeWindow(500_000)),
        ("1 HOUR 30 MINUTES", TimeWindow(5400 * SECOND)),
        ("'1 hour 30 minutes'", TimeWindow(5400 * SECOND)),
        ("INTERVAL '5' SECOND", TimeWindow(5 * SECOND)),
        ("INTERVAL 5 SECOND", TimeWindow(5 * SECOND)),
        ("INTERVAL '5 seconds'", TimeWindow(5 * SECOND)),
        ("+2 DAYS", TimeWindow(172_800 * SECOND)),
        ("100 ROWS", RowsWindow(100)),
        ("1 row", RowsWindow(1)),
        ("1_000 ROWS", RowsWindow(1000)),
    ],
)
def test_extents(text: str, window: TimeWindow | RowsWindow) -> None:
    cursor = Cursor(tokenize(text))
    assert read_extent(cursor, "the window").window == window
    cursor.end()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "0 SECONDS",
            (
                "line 1, column 1: the window must be longer than nothing, not 0 SECONDS. Give "
                "a positive interval"
            ),
        ),
        ("-5 SECONDS", "line 1, column 1: the window must be longer than nothing, not -5 SECONDS"),
        ("'-1 hour'", "line 1, column 1: the window must be longer than nothing, not -1 hour"),
        ("0.0000001 SECONDS", "line 1, column 1: the window must be longer than nothing"),
        (
            "0 ROWS",
            (
                "line 1, column 1: a window must hold at least one row, not 0. Give a positive "
                "number of rows"
            ),
        ),
        ("-3 ROWS", "line 1, column 1: a window must hold at least one row, not -3"),
        ("1.5 ROWS", "line 1, column 1: a number of rows must be a whole number, not 1.5"),
        (
            "99999999999999999999 ROWS",
            "line 1, column 1: a window of 99999999999999999999 rows is too large",
        ),
        ("5", "line 1, column 2: a unit of time is missing here. Write a number and a unit"),
        (
            "5 PARSECS",
            "line 1, column 1: '5 PARSECS' is not an interval. Write a number and a unit",
        ),
        ("1 MONTH", "line 1, column 1: '1 MONTH' is not an interval"),
        ("9999999999999 DAYS", "line 1, column 1: the interval '9999999999999 DAYS' is too long"),
        ("soon", "line 1, column 1: unexpected 'soon', expected an interval for the window"),
        ("", "line 1, column 1: an interval for the window is missing here"),
    ],
)
def test_empty_and_meaningless_extents_are_refused(text: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        read_extent(Cursor(tokenize(text)), "the window")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("[RANGE 10 MINUTES]", TimeWindow(600 * SECOND)),
        ("[range '90 seconds']", TimeWindow(90 * SECOND)),
        ("[ROWS 5000]", RowsWindow(5000)),
        ('[PARTITION BY a, "b c" ROWS 3]', PartitionedWindow(("a", "b c"), 3)),
        ("[PARTITION /* x */ BY a ROWS 3]", PartitionedWindow(("a",), 3)),
    ],
)
def test_brackets(text: str, window: TimeWindow | RowsWindow | PartitionedWindow) -> None:
    assert read_bracket(tokenize(text))[0] == window


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ROWS 0]", "line 1, column 7: a window must hold at least one row, not 0"),
        (
            "[PARTITION BY a ROWS -1]",
            "line 1, column 22: a window must hold at least one row, not -1",
        ),
        ("[RANGE 0 SECONDS]", "line 1, column 8: the window must be longer than nothing"),
        ("[]", "line 1, column 2: ROWS is missing here. A window is written [RANGE 5 SECONDS]"),
        ("[5 ROWS]", "line 1, column 2: unexpected '5', expected ROWS. A window is written"),
        ("[ROWS 5 SECONDS]", "line 1, column 9: unexpected 'SECONDS'. A window is written"),
        ("[PARTITION BY ROWS 5]", "line 1, column 20: unexpected '5', expected ROWS"),
    ],
)
def test_brackets_without_a_window_are_refused(text: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        read_bracket(tokenize(text))
    assert str(caught.value).startswith(message)
