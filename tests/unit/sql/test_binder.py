from __future__ import annotations

import pytest

from muntin.errors import Place, SqlError
from muntin.model.catalog import Catalog
from muntin.plan.expression import ColumnRef, Comparison
from muntin.plan.query import Emit, Query
from muntin.sql.script import read_query


def outputs(query: Query) -> list[tuple[str, str]]:
    return [(column.name, column.expression.sql) for column in query.select]


def test_a_complete_query(catalog: Catalog) -> None:
    text = """
      SELECT A.LocationId, B.Value - A.Value AS rise -- the difference
      FROM Temperature A, Humidity B
      WHERE A.LocationId = B.LocationId AND (A.Value > 30 AND B.Value BETWEEN 80 AND 90)
      WINDOW 1 MINUTE EVERY 5 SECONDS EMIT CHANGES WITH (sink = 'console');
    """
    query = read_query(text, "hot", catalog)
    assert query.name == "hot"
    assert query.text == text.strip().rstrip(";")
    assert query.place == Place(2, 7, "hot")
    assert outputs(query) == [("LocationId", '"0.LocationId"'), ("rise", '"1.Value" - "0.Value"')]
    assert query.select[1].expression.references == (ColumnRef(1, "Value"), ColumnRef(0, "Value"))
    assert [predicate.expression.sql for predicate in query.predicates] == [
        '"0.LocationId" = "1.LocationId"',
        '"0.Value" > 30',
        '"1.Value" >= 80',
        '"1.Value" <= 90',
    ]
    assert (query.emit, query.every, query.options) == (
        Emit.CHANGES,
        5_000_000,
        (("sink", "console"),),
    )


def test_comparisons_have_two_sides_without_parentheses(catalog: Catalog) -> None:
    query = read_query(
        "SELECT 1 FROM Reading a, Reading b WHERE (a.k) != ((b.k) + 1) WINDOW 1 ROW", "q", catalog
    )
    assert query.predicates[0].expression.sql == '("0.k") <> (("1.k") + 1)'
    comparison = query.predicates[0].comparison
    assert isinstance(comparison, Comparison)
    assert (comparison.operator, comparison.left.sql, comparison.right.sql) == (
        "<>",
        '"0.k"',
        '("1.k") + 1',
    )
    assert comparison.left.column == ColumnRef(0, "k")


def test_conditions_of_on_using_and_where_are_all_there(catalog: Catalog) -> None:
    query = read_query(
        "SELECT 1 FROM Temperature A JOIN Reading B ON A.LocationId = k AND k > 1 JOIN "
        "Temperature C USING (LocationId) "
        "WHERE A.ts = C.ts OR A.Value IS NULL WINDOW 1 ROW",
        "q",
        catalog,
    )
    assert [
        (predicate.expression.sql, predicate.comparison is not None)
        for predicate in (*query.join.on, *query.join.where)
    ] == [
        ('"0.LocationId" = "2.LocationId"', True),
        ('"0.LocationId" = "1.k"', True),
        ('"1.k" > 1', True),
        ('"0.ts" = "2.ts" OR "0.Value" IS NULL', False),
    ]


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("*", "LocationId Value ts ItemID Label"),
        ("f.*, A.*", "ItemID Label LocationId Value ts"),
        ("A.VALUE", "Value"),
        ("A.Value v, value AS w, x: value, value AS 'y z'", "v w x y z"),
        ("Value, Value, value + 1 AS VALUE, 1 AS value_1", "Value Value_1 VALUE_2 value_1_1"),
        ("A.Value+1", "A.Value + 1"),
        ("lower( Label )", "lower(Label)"),
        ("(Value)", "Value"),
        ("1 AS größe", "größe"),
    ],
)
def test_names_of_results(catalog: Catalog, items: str, names: str) -> None:
    query = read_query(f"SELECT {items} FROM Temperature A, Favorites F WINDOW 1 ROW", "q", catalog)
    assert " ".join(column.name for column in query.select) == names
    assert query.output_schema.names == ["_op", "_ts", *(column.name for column in query.select)]


def test_star_lists_the_columns_of_using_once(catalog: Catalog) -> None:
    query = read_query(
        "SELECT * FROM Temperature A JOIN Humidity B USING (locationid, ts) WINDOW 1 ROW",
        "q",
        catalog,
    )
    assert outputs(query) == [
        ("LocationId", '"0.LocationId"'),
        ("Value", '"0.Value"'),
        ("ts", '"0.ts"'),
        ("Value_1", '"1.Value"'),
    ]
    chain = read_query(
        "SELECT LocationId FROM Temperature A JOIN Humidity B USING (LocationId) JOIN "
        "Temperature C USING (LocationId) WINDOW 1 ROW",
        "q",
        catalog,
    )
    assert [predicate.expression.sql for predicate in chain.join.on] == [
        '"0.LocationId" = "1.LocationId"',
        '"0.LocationId" = "2.LocationId"',
    ]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (
            "Value AS _op",
            "query q, line 1, column 17: a column of the result cannot be called '_op'.",
        ),
        (
            "Value AS _TS",
            "query q, line 1, column 17: a column of the result cannot be called '_TS'.",
        ),
        (
            "* EXCLUDE (Value)",
            "query q, line 1, column 8: * cannot be changed by EXCLUDE, REPLACE or RENAME.",
        ),
        (
            "A.* REPLACE (1 AS Value)",
            "query q, line 1, column 8: * cannot be changed by EXCLUDE, REPLACE or RENAME.",
        ),
        ("C.*", "query q, line 1, column 8: there is no 'C' in FROM. FROM has A"),
        ("row(*)", "query q, line 1, column 8: * can only stand alone."),
    ],
)
def test_invalid_select_items_are_refused(catalog: Catalog, items: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        read_query(f"SELECT {items} FROM Temperature A WINDOW 1 ROW", "q", catalog)
    assert str(caught.value).startswith(message)
