from __future__ import annotations

import pytest

from muntin.errors import SqlError
from muntin.sql.lexer import Tokens, tokenize
from muntin.sql.shape import read_shape


def text(tokens: Tokens | None) -> str:
    return "" if tokens is None else " ".join(token.text for token in tokens)


def test_a_select_in_its_parts() -> None:
    shape = read_shape(
        tokenize(
            "SELECT a, f(b, c) d FROM A x [ROWS 5], B [RANGE 1 HOUR] y JOIN C ON a = b "
            "INNER JOIN D USING (a, b) CROSS JOIN E WHERE a AND c"
        )
    )
    assert [text(item) for item in shape.items] == ["a", "f ( b , c ) d"]
    assert [
        (text(entry.tokens), entry.join, text(entry.window), text(entry.on), text(entry.using))
        for entry in shape.entries
    ] == [
        ("A x", "", "[ ROWS 5 ]", "", ""),
        ("B y", ",", "[ RANGE 1 HOUR ]", "", ""),
        ("C", "JOIN", "", "a = b", ""),
        ("D", "INNER JOIN", "", "", "a , b"),
        ("E", "CROSS JOIN", "", "", ""),
    ]
    assert text(shape.where) == "a AND c"
    assert "ROWS" not in text(shape.plain)


def test_brackets_in_conditions_are_lists() -> None:
    shape = read_shape(
        tokenize("SELECT l[1] FROM A [ROWS 1] JOIN B [ROWS 2] ON A.l[1] = [b][2], C WHERE [1] = l")
    )
    assert [text(entry.window) for entry in shape.entries] == ["[ ROWS 1 ]", "[ ROWS 2 ]", ""]
    assert text(shape.entries[1].on) == "A . l [ 1 ] = [ b ] [ 2 ]"


def test_a_comma_may_follow_the_last_item() -> None:
    assert [text(item) for item in read_shape(tokenize("SELECT ALL a, FROM A")).items] == ["a"]


def test_distinct_from_is_not_from() -> None:
    assert [
        text(item) for item in read_shape(tokenize("SELECT a IS DISTINCT FROM b, c FROM A")).items
    ] == ["a IS DISTINCT FROM b", "c"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "line 1, column 1: a query begins with SELECT."),
        ("FROM A", "line 1, column 1: a query begins with SELECT."),
        ("SELECT 1", "line 1, column 1: the query has no FROM."),
        ("SELECT FROM A", "line 1, column 8: an expression is missing here."),
        ("SELECT a,, b FROM A", "line 1, column 10: an expression is missing here."),
        ("SELECT a FROM A [ROWS 1] [ROWS 2]", "line 1, column 26: this stream has two windows."),
        ("SELECT a FROM A [ROWS 1", "line 1, column 17: the bracket of the window is not closed."),
        ("SELECT a FROM A JOIN B USING a", "line 1, column 24: USING needs a list of columns."),
    ],
)
def test_invalid_shapes_are_refused(query: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        read_shape(tokenize(query))
    assert str(caught.value).startswith(message)
