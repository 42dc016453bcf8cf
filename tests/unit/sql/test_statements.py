from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import Place, SqlError
from muntin.model.catalog import Catalog
from muntin.plan.statement import (
    CreateQuery,
    CreateStream,
    CreateTable,
    DropStatement,
    Set,
    Statement,
)
from muntin.sql.lexer import tokenize
from muntin.sql.statements import read_statement


def read(text: str, catalog: Catalog | None = None) -> Statement:
    return read_statement(tokenize(text), catalog or Catalog())


def test_create_stream() -> None:
    statement = read(
        '\nCREATE STREAM Temperature (LocationId INT, "größe m" DECIMAL(10, 2), l '
        "INTEGER[], ts TIMESTAMP)"
        " WITH (format = 'parquet', TIME = 'TS', slack = '2 seconds', path = 'data/t')"
    )
    assert isinstance(statement, CreateStream)
    stream = statement.stream
    assert (stream.name, stream.time, stream.slack) == ("Temperature", "ts", 2_000_000)
    assert stream.options == (("format", "parquet"), ("path", "data/t"))
    assert stream.schema.names == ["LocationId", "größe m", "l", "ts"]
    assert stream.schema.field("größe m").type == pa.decimal128(10, 2)
    assert statement.place == Place(2, 1)


def test_create_table() -> None:
    statement = read("create table Favorites (ItemID INT) with (format = 'csv', header = true)")
    assert isinstance(statement, CreateTable)
    assert (statement.table.name, statement.table.options) == (
        "Favorites",
        (("format", "csv"), ("header", "true")),
    )


def test_create_query(catalog: Catalog) -> None:
    statement = read('CREATE QUERY "my q" AS\n SELECT Value FROM Temperature WINDOW 1 ROW', catalog)
    assert isinstance(statement, CreateQuery)
    assert (statement.query.name, statement.query.text) == (
        "my q",
        "SELECT Value FROM Temperature WINDOW 1 ROW",
    )
    assert (statement.place, statement.query.place) == (Place(1, 1), Place(2, 2, "my q"))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("DROP QUERY hot", DropStatement("query", "hot", if_exists=False, place=Place(1, 1))),
        (
            'drop stream if exists "a b"',
            DropStatement("stream", "a b", if_exists=True, place=Place(1, 1)),
        ),
        ("DROP TABLE T", DropStatement("table", "T", if_exists=False, place=Place(1, 1))),
        ("SET scheduler = 'mqt'", Set("scheduler", "mqt", Place(1, 1))),
        ("SET a TO -1.5", Set("a", "-1.5", Place(1, 1))),
        ("SET expiry.Interval = 5", Set("expiry.interval", "5", Place(1, 1))),
        ("SET a = on", Set("a", "on", Place(1, 1))),
        ("SET a = TRUE", Set("a", "true", Place(1, 1))),
    ],
)
def test_drop_and_set(text: str, statement: Statement) -> None:
    assert read(text) == statement


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT 1",
            (
                "line 1, column 1: a script has no place for a bare SELECT. Give it a name: "
                "CREATE QUERY name AS SELECT ..."
            ),
        ),
        (
            "INSERT INTO A VALUES (1)",
            "line 1, column 1: 'INSERT' does not begin a statement. Statements are CREATE STREAM",
        ),
        ("ATTACH 'x.db'", "line 1, column 1: 'ATTACH' does not begin a statement."),
        (
            "CREATE INDEX i ON A (k)",
            "line 1, column 8: unexpected 'INDEX', expected STREAM, TABLE, VIEW or QUERY.",
        ),
        (
            "CREATE OR REPLACE TABLE t (a INT)",
            "line 1, column 1: only queries can be replaced. Drop the table first",
        ),
        ("CREATE STREAM", "line 1, column 14: a name for the stream is missing here."),
        (
            "CREATE STREAM select (a INT)",
            (
                "line 1, column 15: unexpected 'select', expected a name for the stream. Put "
                "names that are keywords"
            ),
        ),
        (
            "CREATE STREAM A",
            "line 1, column 16: ( is missing here. Columns are written (name TYPE, ...)",
        ),
        (
            "CREATE STREAM A (k INT, ts TIMESTAMP",
            "line 1, column 17: the list of columns is not closed.",
        ),
        ("CREATE STREAM A ()", "line 1, column 18: the name of a column is missing here."),
        ("CREATE STREAM A (k)", "line 1, column 19: the type of column k is missing here."),
        (
            "CREATE STREAM A (k INT,\n ts TIMESTMP)",
            "line 2, column 5: 'TIMESTMP' is not a type. Did you mean",
        ),
        (
            "CREATE STREAM A (k INT NOT NULL)",
            "line 1, column 20: NOT in 'INT NOT NULL' is not part of a type.",
        ),
        (
            "CREATE STREAM A (k INT, ts TIMESTAMP, K INT)",
            "line 1, column 39: the columns 'k' and 'K' have the same name.",
        ),
        ("CREATE STREAM A (_ts TIMESTAMP)", "line 1, column 18: a column cannot be called '_ts'."),
        (
            "CREATE STREAM A (k INT)",
            (
                "line 1, column 1: stream A has no time column. Every stream needs a column of "
                "type TIMESTAMP"
            ),
        ),
        (
            "CREATE STREAM A (a TIMESTAMP, b TIMESTAMP)",
            "line 1, column 1: stream A has several columns that could be its time: a, b.",
        ),
        (
            "CREATE STREAM A (a TIMESTAMP) WITH (time = 'b')",
            "line 1, column 44: stream A has no column 'b' to take the time from. It has a",
        ),
        (
            "CREATE STREAM A (a TIMESTAMP, k INT) WITH (time = 'k')",
            "line 1, column 51: the time column k of stream A has type int32.",
        ),
        (
            "CREATE STREAM A (a TIMESTAMP) WITH (slack = 'soon')",
            "line 1, column 45: 'soon' is not an interval.",
        ),
        (
            "CREATE STREAM A (a TIMESTAMP) WITH (slack = '-1 second')",
            "line 1, column 45: the slack cannot be negative.",
        ),
        (
            "CREATE STREAM A (a TIMESTAMP) PARTITIONED",
            "line 1, column 31: unexpected 'PARTITIONED'. After the columns only WITH (...)",
        ),
        (
            "CREATE QUERY q SELECT 1",
            (
                "line 1, column 16: unexpected 'SELECT', expected AS. Write "
                "CREATE QUERY name AS SELECT ..."
            ),
        ),
        ("CREATE QUERY q AS", "query q, line 1, column 18: a query begins with SELECT."),
        (
            "CREATE QUERY q AS\nSELECT a FROM A LIMIT 1",
            "query q, line 2, column 23: LIMIT without ORDER BY",
        ),
        (
            "DROP INDEX i",
            "line 1, column 6: unexpected 'INDEX', expected STREAM, TABLE, VIEW, QUERY or",
        ),
        ("DROP QUERY a, b", "line 1, column 13: unexpected ','. Drop one thing at a time"),
        (
            "SET = 1",
            (
                "line 1, column 5: unexpected '=', expected the name of a setting. Write SET "
                "name = value"
            ),
        ),
        ("SET a", "line 1, column 6: = is missing here. Write SET name = value"),
        ("SET a =", "line 1, column 8: a string, a number, true or false is missing here"),
        ("SET a = 1 2", "line 1, column 11: unexpected '2'. Write SET name = value"),
    ],
)
def test_wrong_statements_are_refused(text: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        read(text)
    assert str(caught.value).startswith(message)
