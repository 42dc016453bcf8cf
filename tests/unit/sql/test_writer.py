from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

from muntin.expressions.duck import Duck
from muntin.model.catalog import Catalog
from muntin.sql.lexer import tokenize
from muntin.sql.script import read_query
from muntin.sql.writer import plain_text

ROWS = {
    "k": [1, -7, None],
    "n": ["Ab", "x'y", None],
    "l": [[1, 2, 3], [], None],
    "s": [{"a": 1, "b": "x"}, {"a": None, "b": None}, None],
    "d": [1, 2, None],
    # TIMESTAMP has no zone.
    "t": [datetime(2026, 1, 2, 3, 4, 5), datetime(1969, 12, 31), None],  # noqa: DTZ001
}


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        ("r.K+1", '"0.k" + 1'),
        ("k*-1 - - k", '"0.k" * -1 - - "0.k"'),
        ("-k", '-"0.k"'),
        ("( k /* one */ + -- two\n 2 )*3", '("0.k" + 2) * 3'),
        ("lower( n )", 'lower("0.n")'),
        ("concat(n ,n,'a')", 'concat("0.n", "0.n", \'a\')'),
        ("r.s.a + s.a", '("0.s").a + ("0.s").a'),
        ("n.upper()", '("0.n").upper()'),
        ("l[1]", '"0.l"[1]'),
        ("k<<2", '"0.k" << 2'),
        ("k ::DOUBLE", '"0.k" ::DOUBLE'),
        ("'r.k'", "'r.k'"),
        ("list_transform(l, lambda x: x + k)", 'list_transform("0.l", lambda x: x + "0.k")'),
        ("((k))", '"0.k"'),
    ],
)
def test_columns_get_flat_names_and_spaces_are_even(
    catalog: Catalog, expression: str, sql: str
) -> None:
    query = read_query(f"SELECT {expression} AS x FROM Reading r WINDOW 1 ROWS", "q", catalog)
    assert query.select[0].expression.sql == sql


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("A.x+1", "A.x + 1"),
        ("f( a,b )", "f(a, b)"),
        ("a\n  -- c\n AND b", "a AND b"),
        ("a<>-1", "a <> -1"),
    ],
)
def test_plain_text_is_the_users(text: str, plain: str) -> None:
    assert plain_text(tokenize(text)) == plain


EXPRESSIONS = """
    k / 2
    k // 2
    k % 3
    -k ** 2
    -k ^ 2 ^ 3
    2 - 3 - k
    abs(k) << 2 | 1 & 3
    ~k
    @k
    1e-3 + .5 + 2. + 1_000
    n || 'x' || k
    n || NULL
    'it''s' || e'a\\tb' || $$q$$
    CAST(k AS DOUBLE) / 3
    k::VARCHAR::INT + 1
    TRY_CAST(n AS INTEGER)
    CASE WHEN k > 0 THEN 'p' WHEN k < 0 THEN 'n' ELSE '?' END
    CASE k WHEN 1 THEN 2 END
    IF(k > 0, 1, 2)
    COALESCE(k, 0)
    k IS NULL
    k IS NOT NULL AND n NOTNULL
    k IS DISTINCT FROM 1
    k IN (1, 2, NULL)
    k NOT IN (1, 2)
    k BETWEEN 0 AND 2
    k NOT BETWEEN 0 AND 2
    n LIKE 'A%' OR n NOT ILIKE '%Y'
    n LIKE 'A!%' ESCAPE '!'
    n SIMILAR TO 'A.*'
    n ~ 'A.*'
    n !~ 'A.*'
    n GLOB 'A*'
    regexp_extract(n, '([A-Z])', 1)
    regexp_replace(n, '[a-z]', '-', 'g')
    substring(n FROM 1 FOR 1) || substr(n, 2)
    trim(BOTH 'A' FROM n)
    position('b' IN n)
    n[1] || n[-1:]
    n.lower().upper()
    length(n) + strlen(n)
    split_part(n, '''', 1)
    printf('%d-%s', k, n)
    l[1] + l[-1]
    l[2:]
    [x * 2 FOR x IN l IF x > 1]
    list_transform(l, lambda x: x + k)
    list_filter(l, lambda x: x > 1 AND x < 3)
    list_sum(l) + len(l)
    list_contains(l, 2)
    [k, 2] || l
    s.a + 1
    r.s.b
    s['a']
    {'p': k, 'q': n}
    {p: k}.p
    struct_pack(p := k).p
    row(k, n)
    (k, n) = (1, 'Ab')
    MAP {'p': k}['p']
    d * 1.5
    d / 3
    round(d, 1)
    t + INTERVAL 1 DAY
    t - INTERVAL '1' HOUR
    t + INTERVAL (k) MINUTE
    t > '2026-01-01'
    t > TIMESTAMP '2026-01-01 00:00:00' + INTERVAL '90 minutes'
    t::DATE - DATE '2020-01-01'
    extract(year FROM t) + date_part('month', t)
    date_trunc('hour', t)
    strftime(t, '%Y-%m-%d')
    epoch_us(t) // 1000
    t AT TIME ZONE 'UTC'
    age(t, TIMESTAMP '2020-01-01')
    hash(k) = hash(1)
    NOT k = 1
    k = 1 OR k = 2 AND n = 'x'
    to_json({'a': k}) ->> 'a'
    to_json({'a': k}) -> 'a'
    9223372036854775800 + abs(k)
    greatest(k, 0) ^ 2
    NULLIF(k, 1)
    typeof(k + 1) || typeof(d)
"""


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_an_expression_keeps_its_meaning(catalog: Catalog, expression: str) -> None:
    expression = expression.strip()
    query = read_query(f"SELECT {expression} AS x FROM Reading r WINDOW 1 ROWS", "q", catalog)
    rows = pa.table(ROWS, schema=query.sources[0].schema)
    flat = rows.rename_columns([f"0.{name}" for name in rows.column_names])
    duck = Duck()
    meant = duck.run(f"SELECT {expression} AS x FROM r", r=rows)
    bound = query.select[0].expression
    assert (
        duck.run(f"SELECT {bound.sql} AS x FROM batch", batch=flat).to_pylist() == meant.to_pylist()
    )
    assert bound.type == meant.schema.field(0).type
