from __future__ import annotations

import pytest

from muntin.errors import SqlError
from muntin.model.window import RowsWindow, TimeWindow
from muntin.plan.query import Emit
from muntin.sql.clauses import cut_clauses
from muntin.sql.cursor import plain_options
from muntin.sql.lexer import tokenize


def test_no_clauses() -> None:
    select, clauses = cut_clauses(tokenize("SELECT a FROM A WHERE b"))
    assert select.original == "SELECT a FROM A WHERE b"
    assert (clauses.window, clauses.every, clauses.emit, clauses.freshness, clauses.options) == (
        None,
        None,
        None,
        [],
        [],
    )


@pytest.mark.parametrize(
    "text",
    [
        (
            "WINDOW 1 MINUTE EVERY 5 SECONDS EMIT CHANGES FRESHNESS A 2 MINUTES, B 9 ROWS "
            "WITH (sink = 'x')"
        ),
        (
            "WITH (sink = 'x') FRESHNESS A 2 MINUTES, B 9 ROWS EMIT CHANGES EVERY 5 SECONDS "
            "WINDOW 1 MINUTE"
        ),
    ],
)
def test_clauses_come_in_any_order(text: str) -> None:
    select, clauses = cut_clauses(tokenize(f"SELECT a FROM A, B WHERE a > 1 {text}"))
    assert select.original == "SELECT a FROM A, B WHERE a > 1"
    assert clauses.window is not None
    assert clauses.window.window == TimeWindow(60_000_000)
    assert (clauses.every, clauses.emit, plain_options(clauses.options)) == (
        5_000_000,
        Emit.CHANGES,
        (("sink", "x"),),
    )
    assert [(alias and alias.text, extent.window) for alias, extent in clauses.freshness] == [
        ("A", TimeWindow(120_000_000)),
        ("B", RowsWindow(9)),
    ]


def test_freshness_of_all_streams_has_no_alias() -> None:
    _, clauses = cut_clauses(tokenize("SELECT a FROM A FRESHNESS '2 minutes'"))
    assert [(alias, extent.window) for alias, extent in clauses.freshness] == [
        (None, TimeWindow(120_000_000))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT window, every AS emit FROM A",
        "SELECT a FROM window WHERE every = 1 AND freshness.x > window.y",
        "SELECT a FROM A AS window WHERE (a WINDOW)",
        "SELECT a FROM A WHERE a = ts::TIMESTAMP WITH TIME ZONE",
        "SELECT a FROM A [WINDOW 1]",
    ],
)
def test_words_of_clauses_can_be_names(text: str) -> None:
    assert cut_clauses(tokenize(text))[0].original == text


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        (
            "WINDOW 1 MINUTE\nWINDOW 2 MINUTES",
            "line 2, column 1: WINDOW is given twice. After the select come WINDOW, EVERY, EMIT",
        ),
        ("WINDOW 1 MINUTE WHERE a > 1", "line 1, column 33: WHERE must stand before WINDOW."),
        ("WINDOW 1 MINUTE AND b", "line 1, column 33: AND must stand before WINDOW."),
        (
            "WINDOW 1 MINUTE huh",
            "line 1, column 33: unexpected 'huh' after the clauses of the query.",
        ),
        ("WINDOW", "line 1, column 23: an interval for the window is missing here."),
        (
            "WINDOW w AS (PARTITION BY a)",
            "line 1, column 24: named windows are not supported. WINDOW takes an interval",
        ),
        (
            "EVERY 0 SECONDS",
            (
                "line 1, column 23: EVERY must be longer than nothing, not 0 SECONDS. Give a "
                "positive interval"
            ),
        ),
        ("EVERY -1 SECOND", "line 1, column 23: EVERY must be longer than nothing, not -1 SECOND."),
        ("EVERY 5 ROWS", "line 1, column 23: '5 ROWS' is not an interval."),
        (
            "EMIT EVERYTHING",
            (
                "line 1, column 22: unexpected 'EVERYTHING', "
                "expected INSERTS, CHANGES, SNAPSHOT or FINAL."
            ),
        ),
        ("EMIT", "line 1, column 21: INSERTS, CHANGES, SNAPSHOT or FINAL is missing here."),
        ("FRESHNESS", "line 1, column 26: an interval or the name of a stream is missing here."),
        ("FRESHNESS A", "line 1, column 28: an interval for FRESHNESS is missing here."),
        ("WITH (sink = 'x'", "line 1, column 33: ) is missing here."),
    ],
)
def test_wrong_clauses_are_refused(clauses: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        cut_clauses(tokenize(f"SELECT a FROM A {clauses}"))
    assert str(caught.value).startswith(message)
