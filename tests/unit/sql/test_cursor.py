from __future__ import annotations

import pytest

from muntin.errors import SqlError
from muntin.sql.cursor import Cursor, plain_options, read_options, read_value
from muntin.sql.lexer import tokenize


def test_match_steps_over_words_and_symbols() -> None:
    cursor = Cursor(tokenize("if EXISTS = x"))
    assert cursor.match("IF", "EXISTS")
    assert not cursor.match("x")
    assert cursor.match_symbol("=")
    assert cursor.name("a name").text == "x"
    cursor.end()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: a name is missing here"),
        ("1", "line 1, column 1: unexpected '1', expected a name"),
        ("select", "line 1, column 1: unexpected 'select', expected a name"),
        ('""', "line 1, column 1: unexpected '\"\"', expected a name"),
    ],
)
def test_an_invalid_name_is_refused(text: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        Cursor(tokenize(text)).name("a name")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "name",
    [
        "time",
        "date",
        "window",
        "rows",
        "range",
        "every",
        "value",
        "überall",
        "名前",
        '"select"',
        '"a b"',
    ],
)
def test_words_that_sql_uses_elsewhere_are_names(name: str) -> None:
    assert Cursor(tokenize(name)).name("a name").text == name.strip('"')


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a''b'", "a'b"),
        ("12", "12"),
        ("-1.5", "-1.5"),
        ("+3", "3"),
        ("TRUE", "true"),
        ("False", "false"),
        ("mqt", "mqt"),
        ("on", "on"),
    ],
)
def test_values_become_text(text: str, value: str) -> None:
    assert read_value(Cursor(tokenize(text)), bare=True)[0] == value


def test_options_keep_order_and_fold_unquoted_names() -> None:
    options = read_options(
        Cursor(
            tokenize("(FORMAT = 'csv', \"Max\" = 5, kafka.bootstrap.servers = 'x', header = true)")
        )
    )
    assert plain_options(options) == (
        ("format", "csv"),
        ("Max", "5"),
        ("kafka.bootstrap.servers", "x"),
        ("header", "true"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(a = 1, A = 2)", "line 1, column 9: the option a is given twice"),
        ("(a)", "line 1, column 3: unexpected ')', expected ="),
        (
            "(a = b)",
            (
                "line 1, column 6: unexpected 'b', expected a string, a number, true or false. "
                "Put other values in quotes"
            ),
        ),
        (
            "(a = 1",
            "line 1, column 7: ) is missing here. Options are written WITH (name = 'value', ...)",
        ),
        ("(= 1)", "line 1, column 2: unexpected '=', expected the name of an option"),
        ("a = 1", "line 1, column 1: unexpected 'a', expected ("),
    ],
)
def test_invalid_options_are_refused(text: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        read_options(Cursor(tokenize(text)))
    assert str(caught.value).startswith(message)
