"""Sub-selects in expressions: the plan means what DuckDB makes of the user's text, and errors."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from muntin.errors import SqlError
from muntin.model.catalog import Catalog
from muntin.plan.query import Emit, Query
from muntin.plan.semi_join import SemiJoin
from muntin.sql.script import read_query
from muntin.sql.streams import make_stream, make_table
from muntin.sql.types import build_schema
from muntin.testing.connection import run_sql
from muntin.testing.pipeline_oracle import PipelineOracle

SECOND = 1_000_000
FIELDS = {"k": "bigint", "v": "bigint", "ts": "timestamp"}
Row = tuple[int | None, int | None]
ROWS: dict[str, list[Row]] = {
    "A": [(1, 1), (2, 2), (None, 3), (3, 4), (1, 1), (2, None)],
    "B": [(1, 1), (1, 5), (2, 7), (None, 2)],
    "C": [(1, 4), (2, 6)],
}
STORED: dict[str, list[Row]] = {"T": [(1, 10), (2, 20), (None, 30)], "N": [(2, 5), (3, 4)]}


@pytest.fixture
def known() -> Catalog:
    catalog = Catalog()
    for name in ROWS:
        catalog.add(make_stream(name, build_schema(FIELDS)))
    for name in STORED:
        catalog.add(make_table(name, build_schema({"k": "bigint", "v": "bigint"})))
    return catalog


def read(text: str, catalog: Catalog) -> Query:
    return read_query(f"{text} WINDOW 1 MINUTE", "q", catalog)


def table_of(rows: list[Row], *, timed: bool) -> pa.Table:
    columns: list[list[int | None]] = [[row[0] for row in rows], [row[1] for row in rows]]
    if timed:
        columns.append([SECOND] * len(rows))
    names = list(FIELDS)[: len(columns)]
    schema = build_schema({name: FIELDS[name] for name in names})
    arrays = [
        pa.array(column, pa.int64()).cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.table(arrays, schema=schema)


def counted(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


MEANT = [
    "SELECT k, v FROM A WHERE k IN (SELECT k FROM B)",
    "SELECT k, v FROM A WHERE A.k = ANY (SELECT k FROM B WHERE v > 2)",
    "SELECT k, v FROM A WHERE k NOT IN (SELECT k FROM B)",
    "SELECT k, v FROM A WHERE k NOT IN (SELECT k FROM C)",
    "SELECT k, v FROM A WHERE k <> ALL (SELECT k FROM C WHERE v > 5)",
    "SELECT k, v FROM A WHERE k NOT IN (SELECT k FROM C WHERE v > 100)",
    "SELECT k, v FROM A WHERE v NOT IN (SELECT v FROM B WHERE B.k = A.k)",
    "SELECT k, v FROM A WHERE NOT v IN (SELECT v FROM A y WHERE y.k = A.k AND y.v > 1)",
    "SELECT k, v FROM A WHERE k NOT IN (SELECT k FROM T)",
    "SELECT k, v FROM A WHERE k NOT IN (SELECT k FROM N) AND v IN (SELECT v FROM C)",
    "SELECT k, v FROM A WHERE (k + 1, v) IN (SELECT k, v FROM N)",
    "SELECT k, v FROM A WHERE (k, v) IN (SELECT k, v FROM B) AND v < 3",
    "SELECT k FROM A WHERE 2 IN (SELECT k FROM B)",
    "SELECT k FROM A WHERE 3 NOT IN (SELECT k FROM C)",
    "SELECT k, v FROM A WHERE EXISTS (SELECT 1 FROM B WHERE B.k = A.k AND B.v > 3)",
    "SELECT k, v FROM A x WHERE NOT EXISTS (SELECT * FROM B y WHERE y.k = x.k AND x.v > 1)",
    "SELECT k, v FROM A x WHERE EXISTS (SELECT * FROM B y WHERE y.k = x.k AND y.v > x.v)",
    "SELECT k, v FROM A x WHERE NOT (NOT EXISTS (SELECT 1 FROM B y WHERE y.v - 1 = x.v * 2))",
    "SELECT k FROM A WHERE EXISTS (SELECT 1 FROM B WHERE v > 6)",
    "SELECT k FROM A WHERE NOT EXISTS (SELECT 1 FROM B WHERE v > 7)",
    "SELECT k FROM A WHERE EXISTS (SELECT COUNT(*) FROM B WHERE v > 7)",
    "SELECT A.k, B.v FROM A, B WHERE A.v = B.v AND EXISTS (SELECT 1 FROM C WHERE C.k = A.k)",
    "SELECT A.k, B.v FROM A, B WHERE A.k IN (SELECT k FROM C WHERE C.v + 1 = B.v)",
    "SELECT A.k, w.v FROM A LEFT JOIN B w ON A.k = w.k WHERE A.v NOT IN (SELECT v FROM C)",
    "SELECT k FROM A WHERE k IN (SELECT k FROM B GROUP BY k HAVING COUNT(*) > 1)",
    "SELECT k FROM A WHERE v IN (SELECT MAX(v) FROM B WHERE B.k = A.k GROUP BY v % 2)",
    "SELECT k FROM A WHERE EXISTS (SELECT k FROM B WHERE B.k = A.k GROUP BY k HAVING SUM(v) > 6)",
    "SELECT k FROM A WHERE k IN (SELECT k FROM B UNION SELECT k FROM C)",
    "SELECT k FROM A WHERE k IN ((SELECT k FROM B) EXCEPT (SELECT k FROM C WHERE v = 4))",
    "SELECT k FROM A WHERE k IN (SELECT k FROM B ORDER BY v DESC LIMIT 1)",
    "SELECT k FROM A WHERE k IN (SELECT DISTINCT k FROM B WHERE B.v > A.v)",
    "SELECT k FROM A WHERE k IN (WITH b AS (SELECT k FROM B WHERE v < 2) SELECT k FROM b)",
    "SELECT k FROM A WHERE k IN (SELECT k FROM B WHERE v IN (SELECT v FROM A))",
    "SELECT k FROM A WHERE k IN (SELECT k FROM B WHERE v > (SELECT AVG(v) FROM B))",
    "SELECT k FROM A WHERE k IN (SELECT x.k FROM B x LEFT JOIN C y ON x.k = y.k WHERE y.v = A.v)",
    "SELECT k FROM A WHERE k IN (SELECT x.k FROM (SELECT k, MAX(v) AS m FROM B GROUP BY k) x)",
    "SELECT k, v FROM A WHERE v > (SELECT AVG(v) FROM A)",
    "SELECT k, v FROM A WHERE v = (SELECT MAX(v) FROM A)",
    "SELECT k, v FROM A WHERE v < (SELECT MAX(v) FROM B WHERE B.k = A.k)",
    "SELECT k, v FROM A WHERE 0 = (SELECT COUNT(*) FROM B WHERE B.k = A.k)",
    "SELECT k, v FROM A WHERE 0 = (SELECT COUNT(*) FROM B WHERE B.k = A.k) OR v > 3",
    "SELECT k, (SELECT COUNT(*) FROM B WHERE B.k = A.k) AS n FROM A",
    "SELECT k, (SELECT COUNT(v) * 2 + 1 FROM B WHERE B.k = A.k AND v > 1) AS n FROM A",
    "SELECT k, (SELECT MAX(v) FROM B WHERE B.k = A.k) - v AS n FROM A",
    "SELECT k, (SELECT COALESCE(SUM(v), -1) FROM B WHERE B.k = A.k) AS n FROM A",
    "SELECT k, (SELECT COUNT(*) FROM B WHERE B.k = A.k HAVING COUNT(*) < 2) AS n FROM A",
    "SELECT k, (SELECT SUM(v) FROM B WHERE B.k = A.k GROUP BY k) AS n FROM A",
    "SELECT k, (SELECT COUNT(*) FROM B WHERE A.v > 2) AS n FROM A",
    "SELECT k, (SELECT COUNT(*) FROM B WHERE B.k = A.k AND B.v = A.v) AS n FROM A",
    "SELECT k, (SELECT MAX(v) FROM B HAVING COUNT(*) > 5) AS n FROM A",
    "SELECT k, (SELECT v FROM B ORDER BY v DESC LIMIT 1) AS n FROM A",
    "SELECT k, (SELECT v FROM T ORDER BY v LIMIT 1) + (SELECT COUNT(*) FROM T) AS n FROM A",
    "SELECT k, CASE WHEN v > (SELECT AVG(v) FROM B) THEN 'more' ELSE 'less' END AS c FROM A",
    "SELECT k FROM A WHERE v BETWEEN (SELECT MIN(v) FROM B) AND (SELECT MAX(v) FROM C)",
    "SELECT T.k, T.v FROM T WHERE T.k IN (SELECT k FROM A)",
    "SELECT T.k, (SELECT COUNT(*) FROM A WHERE A.k = T.k) AS n FROM T",
    "SELECT k, COUNT(*) AS n FROM A WHERE k IN (SELECT k FROM B) GROUP BY k",
    "SELECT COUNT(*) AS n, SUM(v) AS s FROM A WHERE NOT EXISTS (SELECT 1 FROM B WHERE B.k = A.k)",
    "SELECT SUM(v - (SELECT MIN(v) FROM B)) AS s FROM A",
    "SELECT k, SUM((SELECT COUNT(*) FROM B WHERE B.k = A.k)) AS s FROM A GROUP BY k",
    "SELECT k, COUNT(*) AS n, (SELECT MAX(v) FROM B) AS m FROM A GROUP BY k",
    "SELECT k, COUNT(*) + (SELECT COUNT(*) FROM B WHERE B.k = A.k) AS n FROM A GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM A GROUP BY k HAVING COUNT(*) > (SELECT COUNT(*) FROM C) - 1",
    "SELECT k, COUNT(*) AS n FROM A GROUP BY k HAVING k IN (SELECT k FROM B) AND COUNT(*) > 1",
    "SELECT k FROM A GROUP BY k HAVING COUNT(*) NOT IN (SELECT v FROM B WHERE B.k = A.k)",
    "SELECT k FROM A GROUP BY k HAVING COUNT(*) IN (SELECT v FROM C) OR MAX(v) > 3",
    "SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM B) AS m FROM A HAVING MAX(v) > 1",
    "SELECT k FROM A GROUP BY k HAVING NOT EXISTS (SELECT 1 FROM B WHERE B.k = A.k) OR k = 2",
    "SELECT k, COUNT(*) NOT IN (SELECT v FROM C) AS t, k IS NULL AS n FROM A GROUP BY k",
    "SELECT k, v FROM A WHERE k IN (SELECT k FROM B) OR v > 3",
    "SELECT k, v FROM A WHERE v > 3 OR NOT k NOT IN (SELECT k FROM C) AND v < 2",
    "SELECT k, EXISTS (SELECT 1 FROM B WHERE B.k = A.k AND v > 1) AS e FROM A",
    "SELECT k, v, k IN (SELECT k FROM B) AS i, v + 1 NOT IN (SELECT v FROM C) AS n FROM A",
    "SELECT k, v IN (SELECT v FROM B WHERE B.k = A.k) AS i, v IS NULL AS n FROM A",
    "SELECT k, CASE WHEN EXISTS (SELECT 1 FROM C) AND k IN (SELECT k FROM T) THEN 1 END FROM A",
    "SELECT k, NOT EXISTS (SELECT COUNT(*) FROM B) AS e FROM A",
    "SELECT k, v = 1 OR k IN (SELECT k FROM N) AS e, GREATEST(v, 2) IN (SELECT v FROM B) FROM A",
    "SELECT SUM(CASE WHEN k IN (SELECT k FROM C) THEN 1 ELSE 0 END) AS s FROM A",
    "SELECT DISTINCT v FROM A WHERE k IN (SELECT k FROM B)",
    "SELECT k FROM A WHERE k IN (SELECT k FROM B) UNION ALL SELECT k FROM C",
    "SELECT x.k, x.n FROM (SELECT k, (SELECT MAX(v) FROM B) AS n FROM A) x WHERE x.n > 1",
    "WITH w AS (SELECT k FROM B WHERE v > 1) SELECT k FROM A WHERE k NOT IN (SELECT k FROM w)",
]


@pytest.mark.parametrize("text", MEANT)
def test_the_plan_means_what_duckdb_makes_of_the_text(known: Catalog, text: str) -> None:
    query = read(text, known)
    streams = {name: table_of(rows, timed=True) for name, rows in ROWS.items()}
    stored = {name: table_of(rows, timed=False) for name, rows in STORED.items()}
    found = PipelineOracle(query, streams, stored, known).answer(2 * SECOND)
    assert counted(found) == counted(run_sql(text, {**streams, **stored}))


def test_sub_selects_emit_changes_by_default(known: Catalog) -> None:
    assert read("SELECT k FROM A WHERE k IN (SELECT k FROM B)", known).emit is Emit.CHANGES
    view = "WITH w AS (SELECT k FROM A WHERE k IN (SELECT k FROM B)) SELECT k FROM w"
    assert read(view, known).emit is Emit.CHANGES


def test_exists_becomes_a_semi_join_by_the_columns_that_it_reads(known: Catalog) -> None:
    root = read("SELECT v FROM A WHERE EXISTS (SELECT * FROM B WHERE B.k = A.k)", known).root
    (semi,) = [node for node in root.dataflow() if isinstance(node, SemiJoin)]
    assert [(key.left.sql, key.right.sql) for key in semi.keys] == [('"0.A.k"', '"1.#1.#k0"')]
    assert not semi.anti


def test_not_in_keeps_rows_by_three_anti_joins(known: Catalog) -> None:
    root = read("SELECT v FROM A WHERE k NOT IN (SELECT k FROM B)", known).root
    joins = [node for node in root.dataflow() if isinstance(node, SemiJoin)]
    assert all(node.anti for node in joins)
    assert [[one.sql for one in node.conditions] for node in joins] == [
        [],
        [],
        ['("0.A.k") IS NULL'],
    ]


WRONG = [
    ("SELECT k FROM A WHERE v > (SELECT v FROM B)", "column 28: a sub-select that is a value must"),
    ("SELECT (SELECT MAX(w.k) FROM B) FROM A", "column 20: there is no 'w' in FROM."),
    ("SELECT k FROM A WHERE (k, v) IN (SELECT * FROM N) OR v > 3", "column 23: IN is not"),
    (
        "SELECT EXISTS (SELECT 1 FROM B WHERE B.v > A.v) FROM A",
        "column 38: B.v > A.v is no equality with the query around the sub-select.",
    ),
    ("SELECT k FROM A WHERE v > (SELECT SUM(v) FROM B WHERE B.v > A.v)", "column 55: B.v > A.v is"),
    ("SELECT k FROM A WHERE k IN (SELECT A.k FROM B)", "column 36: A.k is a column of the query"),
    (
        "SELECT k FROM A WHERE (SELECT MAX(k) FROM B) IN (SELECT k FROM B)",
        "column 23: a sub-select",
    ),
    ("SELECT T.k FROM T WHERE T.k IN (SELECT k FROM N)", "column 1: a select reads no stream."),
    (
        "SELECT k FROM A WHERE k IN (SELECT x.k FROM B x LEFT JOIN C y ON x.k = y.k AND y.v = A.v)",
        "column 80: y.v = A.v reads the query around this select.",
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_errors_are_reported_at_their_place(known: Catalog, text: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        read(text, known)
    assert str(caught.value).startswith(f"query q, line 1, {message}")
    assert caught.value.hint
