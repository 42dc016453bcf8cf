from __future__ import annotations

import pytest

from muntin.errors import SqlError
from muntin.sql.lexer import tokenize
from muntin.sql.refusals import refuse

NESTED = [
    ("SELECT DISTINCT ON (a) a FROM A", "line 1, column 8: DISTINCT ON is not supported."),
    ("SELECT a FROM (FROM A)", "line 1, column 16: FROM cannot begin a sub-select."),
    ("SELECT a FROM (VALUES (1)) t(a)", "line 1, column 16: VALUES cannot begin a sub-select."),
    ("SELECT a FROM A WHERE a = SELECT 1", "line 1, column 27: a sub-select needs parentheses."),
    ("SELECT a FROM A WHERE EXISTS (FROM B)", "line 1, column 31: FROM cannot begin"),
    ("SELECT a FROM A, LATERAL (SELECT 1)", "line 1, column 18: LATERAL is not supported."),
]
NEVER = [
    ("SELECT a FROM A FETCH FIRST 3 ROWS ONLY", "line 1, column 17: FETCH is not supported."),
    (
        "SELECT lag(a) FROM A",
        "line 1, column 8: the function lag is a window function.",
    ),
    (
        "SELECT lower(a) OVER w FROM A",
        "line 1, column 8: lower is not supported as a window function.",
    ),
    ("SELECT a FROM A PIVOT (x)", "line 1, column 17: PIVOT is not supported."),
    ("SELECT a FROM A TABLESAMPLE 10%", "line 1, column 17: TABLESAMPLE is not supported."),
    ("SELECT a FROM A USING SAMPLE 10%", "line 1, column 17: USING SAMPLE is not supported."),
    ("SELECT COLUMNS('a') FROM A", "line 1, column 8: COLUMNS(...) is not supported."),
    ("SELECT #1 FROM A", "line 1, column 8: columns cannot be named by their position."),
    (
        "SELECT a FROM A WHERE a = ?",
        "line 1, column 27: parameters are not supported. Write the value itself",
    ),
    ("SELECT a FROM A WHERE a = $1", "line 1, column 27: parameters are not supported."),
    ("SELECT a FROM A WHERE a = $name", "line 1, column 27: parameters are not supported."),
    ("SELECT unnest(a) FROM A", "line 1, column 8: the function unnest makes rows."),
]
JOINS = [
    (
        "SELECT a FROM A POSITIONAL JOIN B ON TRUE",
        "line 1, column 17: POSITIONAL JOIN is not supported. Write INNER, LEFT",
    ),
]
OUTSIDE = [
    (
        "SELECT now() FROM A",
        (
            "line 1, column 8: the function now does not depend on the rows alone. A row must "
            "give the same result"
        ),
    ),
    (
        "SELECT random() FROM A",
        "line 1, column 8: the function random does not depend on the rows alone.",
    ),
    (
        "SELECT main.uuid() FROM A",
        "line 1, column 13: the function uuid does not depend on the rows alone.",
    ),
    (
        "SELECT current_date FROM A",
        "line 1, column 8: current_date does not depend on the rows alone.",
    ),
    (
        "SELECT current_timestamp FROM A",
        "line 1, column 8: current_timestamp does not depend on the rows alone.",
    ),
    (
        "SELECT age(a) FROM A",
        "line 1, column 8: the function age does not depend on the rows alone.",
    ),
    (
        "SELECT getenv('HOME') FROM A",
        (
            "line 1, column 8: the function getenv looks outside the rows. Expressions cannot "
            "read files"
        ),
    ),
    (
        "SELECT current_setting('threads') FROM A",
        "line 1, column 8: the function current_setting looks outside the rows.",
    ),
    (
        "SELECT a FROM read_csv('/etc/passwd')",
        "line 1, column 15: the function read_csv looks outside the rows.",
    ),
    (
        "SELECT a FROM query('SELECT 1')",
        "line 1, column 15: the function query looks outside the rows.",
    ),
    (
        "SELECT a FROM A WHERE a IN read_text('/etc/passwd')",
        "line 1, column 28: the function read_text looks outside the rows.",
    ),
]


@pytest.mark.parametrize(("text", "message"), NESTED + NEVER + JOINS + OUTSIDE)
def test_unsupported_syntax_is_refused_at_its_place(text: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        refuse(tokenize(text))
    assert str(caught.value).startswith(message)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        'SELECT a.limit, a.group, A.left AS offset, "order by" FROM A',
        "SELECT a IS DISTINCT FROM b FROM A",
        "SELECT left(a, 1), age(a, b), a GLOB ('x'), a IN (1, 2) FROM A",
        "SELECT minus, count, sum FROM A",
        (
            "SELECT 'SELECT now()' "
            "FROM A JOIN B ON left(a, 1) = 'x' INNER JOIN C USING (a) CROSS JOIN D"
        ),
        'SELECT "current_date", A.current_timestamp FROM A',
        (
            "SELECT DISTINCT a, COUNT(*) FROM (SELECT a FROM A) x GROUP BY a "
            "HAVING COUNT(*) > 1 UNION ALL (SELECT b, c FROM B)"
        ),
        (
            "SELECT a FROM A MINUS SELECT b FROM B INTERSECT ALL SELECT c FROM C EXCEPT "
            "SELECT d FROM D"
        ),
        "SELECT @a, a @> b, list_sum(l), extract(year FROM ts) FROM A",
    ],
)
def test_text_that_only_resembles_it_passes(text: str) -> None:
    refuse(tokenize(text))
