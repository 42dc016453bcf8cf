from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from muntin.errors import SqlError
from muntin.model.catalog import Catalog
from muntin.plan.statement import CreateQuery, CreateStream, CreateTable, Statement
from muntin.sql.script import read_query, read_script

SCRIPT = """
-- The example of the interface, as far as it goes.
CREATE STREAM stocksNYC (symbol VARCHAR, price DOUBLE, volume BIGINT, ts TIMESTAMP)
  WITH (format = 'parquet', path = 'data/nyc', time = 'ts', slack = '2 seconds');
CREATE STREAM stocksTokyo (symbol VARCHAR, price DOUBLE, volume BIGINT, ts TIMESTAMP);

CREATE QUERY trades AS
  SELECT B.symbol, B.price
  FROM stocksNYC A [RANGE 10 MINUTES], stocksTokyo B [ROWS 5000]
  WHERE A.symbol = 'GOOG' AND B.volume > A.volume
  FRESHNESS A 12 MINUTES, B 6000 ROWS;

DROP QUERY trades;
SET scheduler = 'mqt'
"""


def apply(text: str, catalog: Catalog) -> list[Statement]:
    statements = []
    for statement in read_script(text, catalog):
        statements.append(statement)
        if isinstance(statement, CreateStream):
            catalog.add(statement.stream)
        elif isinstance(statement, CreateTable):
            catalog.add(statement.table)
    return statements


def test_later_statements_see_earlier_ones() -> None:
    statements = apply(SCRIPT, Catalog())
    assert [type(statement).__name__ for statement in statements] == [
        "CreateStream",
        "CreateStream",
        "CreateQuery",
        "DropStatement",
        "Set",
    ]
    assert [statement.place.line for statement in statements] == [3, 5, 7, 13, 14]
    assert isinstance(statements[2], CreateQuery)
    assert [source.relation for source in statements[2].query.sources] == [
        "stocksNYC",
        "stocksTokyo",
    ]


def test_an_error_is_raised_when_its_statement_is_reached() -> None:
    catalog = Catalog()
    script = (
        "CREATE TABLE T (a INT);\nSET x = 1;\nCREATE QUERY broken AS\n  SELECT a FROM T\n  WHERE;"
    )
    statements = read_script(script, catalog)
    assert isinstance(next(statements), CreateTable)
    next(statements)
    with pytest.raises(
        SqlError, match=r"^query broken, line 5, column 3: something is missing after 'WHERE'"
    ):
        next(statements)


def test_an_empty_script_has_no_statements() -> None:
    assert list(read_script(" ; -- x\n ;; /* y */", Catalog())) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "query q, line 1, column 1: the query is empty."),
        (" ; ", "query q, line 1, column 2: the query is empty."),
        (
            "SELECT 1 FROM A; SELECT 2",
            "query q, line 1, column 18: there is more than one statement.",
        ),
        (
            "CREATE QUERY q AS SELECT 1",
            "query q, line 1, column 1: CREATE is not part of a query. Pass the SELECT alone",
        ),
    ],
)
def test_a_query_is_one_select(catalog: Catalog, text: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        read_query(text, "q", catalog)
    assert str(caught.value).startswith(message)


def test_unicode_names_and_quotes(catalog: Catalog) -> None:
    script = '''
      CREATE STREAM "Größe.1" ("日本 ""x""" INT, zeit TIMESTAMP);
      CREATE QUERY 問い AS SELECT "日本 ""x""" + 1 AS "ä b", G."日本 ""X""" FROM "größe.1" G
        WINDOW 1 ROW;
    '''
    statement = apply(script, catalog)[1]
    assert isinstance(statement, CreateQuery)
    assert statement.query.name == "問い"
    assert [(column.name, column.expression.sql) for column in statement.query.select] == [
        ("ä b", '"0.日本 ""x""" + 1'),
        ('日本 "x"', '"0.日本 ""x"""'),
    ]


def test_many_threads_may_bind(catalog: Catalog) -> None:
    def bind(place: int) -> str:
        return read_query(
            f"SELECT Value + {place} FROM Temperature WHERE Value > {place} WINDOW 1 ROW",
            f"q{place}",
            catalog,
        ).name

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(bind, range(40))) == [f"q{place}" for place in range(40)]


def test_binding_is_quick_once_warm(catalog: Catalog) -> None:
    text = (
        "SELECT A.Value + 1, B.ts FROM Temperature A, Humidity B "
        "WHERE A.LocationId = B.LocationId AND A.Value > 30 WINDOW 1 MINUTE"
    )
    read_query(text, "q", catalog)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        read_query(text, "q", catalog)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.05  # about 0.004 on the machine this was written on
