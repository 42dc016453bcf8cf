from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import SqlError
from muntin.model.catalog import Catalog, Table
from muntin.sql.script import read_query


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("k + 1", pa.int64()),
        ("k / 2", pa.float64()),
        ("n", pa.string()),
        ("d * 2", pa.decimal128(18, 2)),
        ("t::DATE", pa.date32()),
        ("k > 1", pa.bool_()),
        ("COALESCE(n, 'x')::INT", pa.int32()),
    ],
)
def test_types(catalog: Catalog, expression: str, kind: pa.DataType) -> None:
    query = read_query(f"SELECT {expression} FROM Reading WINDOW 1 ROW", "q", catalog)
    assert query.select[0].expression.type == kind


def test_a_plain_column_has_the_type_it_is_stored_in(catalog: Catalog) -> None:
    catalog.add(Table("Large", pa.schema([("big", pa.large_string())])))
    query = read_query("SELECT big, big || 'x' FROM Large, Reading WINDOW 1 ROW", "q", catalog)
    assert [column.expression.type for column in query.select] == [pa.large_string(), pa.string()]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT k,\n  lower(k) FROM Reading r",
            (
                "query q, line 2, column 3: no function matches the given name and argument "
                "types 'lower(BIGINT)'. Check the types"
            ),
        ),
        (
            "SELECT lowr(n) FROM Reading r",
            'query q, line 1, column 8: there is no function lowr. Did you mean "lower"?',
        ),
        (
            "SELECT k.x FROM Reading r",
            (
                "query q, line 1, column 8: cannot extract field 'x' from expression r.k "
                "because it is not a struct"
            ),
        ),
        (
            "SELECT k FROM Reading r WHERE t > k",
            "query q, line 1, column 31: cannot compare values of type TIMESTAMP and type BIGINT",
        ),
        (
            "SELECT k FROM Reading r WHERE t = k",
            (
                "query q, line 1, column 31: t = k compares timestamp[us] with int64. Make both "
                "sides times"
            ),
        ),
        (
            "SELECT k FROM Reading r WHERE k = 1 AND t > '2026-13-01'",
            "query q, line 1, column 41: timestamp field value out of range",
        ),
        (
            "SELECT k FROM Reading r WHERE k = 'abc'",
            "query q, line 1, column 31: could not convert string 'abc' to INT64",
        ),
        (
            "SELECT CAST('abc' AS INT) FROM Reading r",
            "query q, line 1, column 8: could not convert string 'abc' to INT32",
        ),
        (
            "SELECT k FROM Reading r WHERE n",
            "query q, line 1, column 31: the condition n has type string, not boolean. Compare it",
        ),
        (
            "SELECT k FROM Reading r WHERE k > 1 AND t",
            "query q, line 1, column 41: the condition t has type timestamp[us], not boolean.",
        ),
        (
            "SELECT list_transform(l, x -> x + 1) FROM Reading",
            "query q, line 1, column 8: the arrow of a lambda is out of use. Write lambda",
        ),
    ],
)
def test_what_duckdb_refuses_is_blamed_on_its_expression(
    catalog: Catalog, query: str, message: str
) -> None:
    with pytest.raises(SqlError) as caught:
        read_query(f"{query} WINDOW 1 ROW", "q", catalog)
    assert str(caught.value).startswith(message)
    assert caught.value.hint
    assert "LINE 1" not in str(caught.value)


@pytest.mark.parametrize(
    "condition", ["COALESCE(n, 'x')::INT > 1", "t = NULL", "COALESCE(n, 'x') = k"]
)
def test_what_fails_for_null_only_is_allowed(catalog: Catalog, condition: str) -> None:
    query = read_query(f"SELECT k FROM Reading WHERE {condition} WINDOW 1 ROW", "q", catalog)
    (predicate,) = query.predicates
    assert predicate.expression.type == pa.bool_()


def test_numbers_are_conditions_as_in_duckdb(catalog: Catalog) -> None:
    query = read_query("SELECT k FROM Reading WHERE k AND 1 AND d WINDOW 1 ROW", "q", catalog)
    assert [predicate.expression.sql for predicate in query.predicates] == [
        'CAST("0.k" AS BOOLEAN)',
        "CAST(1 AS BOOLEAN)",
        'CAST("0.d" AS BOOLEAN)',
    ]
    assert {predicate.expression.type for predicate in query.predicates} == {pa.bool_()}
