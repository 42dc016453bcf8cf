from __future__ import annotations

import pytest

from muntin.errors import Place, SqlError
from muntin.sql.lexer import closing, split_commas, split_statements, tokenize, top_level, word


def test_comments_vanish_and_positions_stay() -> None:
    tokens = tokenize("SELECT /* a */ x -- b\n  FROM A")
    assert [token.text for token in tokens] == ["SELECT", "x", "FROM", "A"]
    assert tokens.place(tokens[2].start) == Place(2, 3)


def test_lines_and_columns_count_characters_of_any_alphabet() -> None:
    tokens = tokenize("\"日本\" , '😀'\r\n\tü")
    assert [str(tokens.place(token.start)) for token in tokens] == [
        "line 1, column 1",
        "line 1, column 6",
        "line 1, column 8",
        "line 2, column 2",
    ]


def test_a_byte_order_mark_is_ignored() -> None:
    assert [token.text for token in tokenize("\ufeffSELECT 1")] == ["SELECT", "1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT\n  'abc",
            "line 2, column 3: the string that begins here has no end. Close the string",
        ),
        (
            "SELECT 'it''s', \"abc",
            "line 1, column 17: the quoted name that begins here has no end. Close the quoted name",
        ),
        (
            "SELECT -- it's\n /* 'x'",
            "line 2, column 2: the comment that begins here has no end. Close the comment",
        ),
        (
            "SELECT $$abc",
            "line 1, column 8: the string that begins here has no end. Close the string",
        ),
        (
            "SELECT\n\0",
            (
                "line 2, column 1: the character '\\x00' cannot be part of a script. Remove it; "
                "scripts are Unicode text"
            ),
        ),
        (
            "a\ud800",
            (
                "line 1, column 2: the character '\\ud800' cannot be part of a script. Remove "
                "it; scripts are Unicode text"
            ),
        ),
    ],
)
def test_broken_text_is_blamed_where_it_breaks(text: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        tokenize(text)
    assert str(caught.value) == message


def test_statements_are_cut_at_semicolons() -> None:
    statements = split_statements(tokenize(";; SET a = ';' ;\n-- none\n; DROP QUERY b"))
    assert [statement.original for statement in statements] == ["SET a = ';'", "DROP QUERY b"]


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("a AND (b AND c) AND d", "a AND ( AND d"),
        ("a, [b, {c: d}], e", "a , [ , e"),
        ("CASE WHEN a AND b THEN c END AND d", "CASE AND d"),
        ("a.case AND a.end AND b", "a . case AND a . end AND b"),
        ("'(' AND \"[\" ) AND b", "( AND [ AND b"),
    ],
)
def test_top_level_yields_tokens_outside_parentheses(text: str, outside: str) -> None:
    tokens = tokenize(text)
    assert " ".join(tokens[index].text for index in top_level(tokens)) == outside


def test_commas_split_outside_parentheses_only() -> None:
    assert [part.original for part in split_commas(tokenize("a, f(b, c), [d, e]"))] == [
        "a",
        "f(b, c)",
        "[d, e]",
    ]


def test_closing_finds_the_partner() -> None:
    tokens = tokenize("( a [ b ] ) c")
    assert closing(tokens, 0) == 5
    assert closing(tokenize("( a"), 0) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select", "SELECT"),
        ("group  by", "GROUP BY"),
        ('"select"', ""),
        ("'select'", ""),
        ("1", ""),
        ("+", ""),
    ],
)
def test_words_are_unquoted(text: str, expected: str) -> None:
    assert word(tokenize(text)[0]) == expected
