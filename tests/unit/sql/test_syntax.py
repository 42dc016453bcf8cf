from __future__ import annotations

import pytest

from muntin.errors import SqlError
from muntin.sql.lexer import tokenize
from muntin.sql.syntax import find_columns, parse_select


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        ("a + A.b", "a A.b"),
        ("date, timestamp, A.year, value", "date timestamp A.year value"),
        ('"select", "a""b", ü', 'select a"b ü'),
        ("s.f.g, A.s.f.g.h.i", "s.f.g A.s.f.g.h.i"),
        ("list_transform(l, lambda x: x + y + x.z)", "l y"),
        ("[x + y for x in l if x > z]", "y l z"),
        ("a.lower(), A.b.upper(), c.f().d.g().e", "a A.b c"),
        ("{p: k}.p, struct_pack(q := l).q, (m).n", "k l m"),
        ("{'a': b}, {c: d}, struct_pack(e := f)", "b d f"),
        ("extract(year FROM ts), INTERVAL (h) MINUTE, a::DATE, CAST(b AS mood)", "ts h a b"),
        ("CASE WHEN a THEN b ELSE c END, d IN (e, 1), f BETWEEN g AND h", "a b c d e f g h"),
        ("l[i], m[j:k]", "l i m j k"),
        ("a COLLATE nocase, b AT TIME ZONE 'UTC'", "a b"),
    ],
)
def test_columns_are_found(expression: str, columns: str) -> None:
    uses = find_columns(parse_select(tokenize(f"SELECT {expression} FROM A")))
    assert [".".join(use.names) for _, use in sorted(uses.items())] == columns.split()


def test_columns_of_on_and_where_are_found_and_those_of_using_are_not() -> None:
    tree = parse_select(tokenize("SELECT 1 FROM A JOIN B ON a = b JOIN C USING (c) WHERE d"))
    assert sorted(use.names[0] for use in find_columns(tree).values()) == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT a FROM A\nWHERE", "line 2, column 1: something is missing after 'WHERE'."),
        ("SELECT a\nFROM A WHERE (a > 1", "line 2, column 19: a ) is missing at '1'."),
        ("SELECT a b c FROM A", "line 1, column 12: unexpected 'c'."),
        ("SELECT a FROM A WHERE a >", "line 1, column 25: something is missing after '>'."),
        ("SELECT a FROM A WHERE )", "line 1, column 23: something is missing after ')'."),
        ("SELECT a INTO b FROM A", "line 1, column 1: INTO is not supported."),
        (
            "SELECT a FROM A WHERE " + "(" * 3000 + "a" + ")" * 3000,
            "line 1, column 1: the query is nested too deeply.",
        ),
    ],
)
def test_mistakes_of_syntax_have_a_place(query: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_select(tokenize(query))
    assert str(caught.value).startswith(message)
