"""Partitioning of a view's streams, what partitions compute, and what the global stage does."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.model.catalog import Catalog, Stream, Table
from muntin.plan.node import Node
from muntin.plan.nodes import Distinct, Exchange, GroupBy, Project, Scan, SetOperation
from muntin.plan.query import Emit
from muntin.planner.distribution import Distribution, distribution_of
from muntin.planner.partitioning import OWN
from muntin.sql.script import read_query

COLUMNS = [
    ("k", pa.int64()),
    ("j", pa.int32()),
    ("v", pa.float64()),
    ("s", pa.string()),
    ("ts", pa.timestamp("us")),
]
SHORT = {
    Exchange: "sent",
    Scan: "table",
    Project: "select",
    GroupBy: "group",
    Distinct: "distinct",
    SetOperation: "set",
}


def distributed(sql: str) -> Distribution:
    catalog = Catalog()
    for name in "AB":
        catalog.add(Stream(name, pa.schema(COLUMNS), "ts", 0))
    catalog.add(Table("T", pa.schema([("k", pa.int64()), ("w", pa.int64())])))
    return distribution_of(read_query(sql + " WINDOW 1 MINUTE", "q", catalog))


def drawn(node: Node) -> str:
    """Return a tree in one line."""
    name = SHORT.get(type(node), "rows" if node.is_leaf else "select")
    return f"{name}({', '.join(map(drawn, node.inputs))})" if node.inputs else name


LOCAL = [
    ("SELECT k, COUNT(*) AS n FROM A GROUP BY k", ["by A.k"]),
    ("SELECT COUNT(*) AS n FROM A GROUP BY s, k", ["by A.s"]),
    ("SELECT COUNT(*) AS n FROM A GROUP BY k % 10", ["by A.k % 10"]),
    ("SELECT B.k, SUM(A.v) AS n FROM A, B WHERE A.k = B.k GROUP BY B.k", ["by A.k", "by B.k"]),
    (
        "SELECT A.s, SUM(A.v) AS n FROM A, B WHERE A.k = B.k GROUP BY A.s",
        ["by A.s", "B sent everywhere, owner by the time of B"],
    ),
    ("SELECT DISTINCT k, s FROM A", ["by A.k"]),
    ("SELECT k FROM A INTERSECT SELECT k FROM B", ["by A.k", "by B.k"]),
    ("SELECT k FROM A EXCEPT SELECT j FROM B", ["by A.k", "by CAST(B.j AS BIGINT)"]),
    ("SELECT k FROM A UNION ALL SELECT j FROM B", ["by the time of A", "by the time of B"]),
    ("SELECT n FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k) c", ["by A.k"]),
    (
        "SELECT x, COUNT(*) AS n FROM (SELECT DISTINCT k + 1 AS x, j AS y FROM A) c GROUP BY x",
        ["by A.k + 1"],
    ),
    (
        "SELECT c.n, B.v FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k) c, B WHERE c.k = B.k",
        ["by A.k", "by B.k"],
    ),
    (
        "SELECT c.n, T.w FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k) c, T WHERE c.k = T.k",
        ["by A.k"],
    ),
]


@pytest.mark.parametrize(("sql", "routes"), LOCAL)
def test_partitions_compute_all_where_a_column_can_be_traced_to_the_streams(
    sql: str, routes: list[str]
) -> None:
    how = distributed(sql)
    assert [str(route) for route in how.routes] == routes
    assert how.last is None
    assert [part.name for part in how.parts] == ["q"]


ABOVE = [
    ("SELECT MEDIAN(v) AS m FROM A", ["by the time of A"], ["rows"], "group(sent)"),
    (
        "SELECT COUNT(*) AS n, AVG(k) AS a FROM A",
        ["by the time of A"],
        ["group(rows)"],
        "select(group(sent))",
    ),
    (
        "SELECT COUNT(DISTINCT k) AS n, MIN(v) AS least FROM A",
        ["by A.k"],
        ["group(rows)"],
        "select(group(sent))",
    ),
    (
        "SELECT COUNT(DISTINCT k) AS n, COUNT(DISTINCT s) AS m FROM A",
        ["by the time of A"],
        ["rows"],
        "group(sent)",
    ),
    ("SELECT MIN(k) AS a0 FROM A", ["by the time of A"], ["group(rows)"], "select(group(sent))"),
    (
        "SELECT n AS c0 FROM (SELECT COUNT(*) AS n FROM A GROUP BY k) c GROUP BY n",
        ["by A.k"],
        ["group(select(group(rows)))"],
        "select(group(sent))",
    ),
    (
        "SELECT SUM(A.v) AS n FROM A, B WHERE A.k = B.k",
        ["by A.k", "by B.k"],
        ["rows"],
        "group(sent)",
    ),
    (
        "SELECT n, COUNT(*) AS g FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k) c GROUP BY n",
        ["by A.k"],
        ["group(select(group(rows)))"],
        "select(group(sent))",
    ),
    (
        "SELECT k FROM A UNION SELECT COUNT(*) AS k FROM A GROUP BY j",
        ["by A.j"],
        ["rows", "group(rows)"],
        "set(sent, sent)",
    ),
    (
        "SELECT T.w FROM (SELECT MAX(k) AS k FROM A) c, T WHERE c.k = T.k",
        ["by the time of A"],
        ["group(rows)"],
        "select(select(group(sent)), table)",
    ),
]


@pytest.mark.parametrize(("sql", "routes", "parts", "last"), ABOVE)
def test_what_partitions_cannot_compute_is_left_to_the_global_stage(
    sql: str, routes: list[str], parts: list[str], last: str
) -> None:
    how = distributed(sql)
    assert [str(route) for route in how.routes] == routes
    assert [drawn(part.root) for part in how.parts] == parts
    assert {part.emit for part in how.parts} == {Emit.CHANGES}
    assert how.last is not None
    assert drawn(how.last.root) == last


def test_a_stream_has_one_key_and_other_leaves_use_it() -> None:
    how = distributed(
        "SELECT k FROM A GROUP BY k EXCEPT ALL SELECT k FROM A, (SELECT MAX(j) AS j FROM A "
        "GROUP BY j) c WHERE c.j = A.v"
    )
    assert [route.stream for route in how.routes] == ["A"]
    assert how.routes[0].key is not None


def test_marks_are_required_in_partitioned_leaves() -> None:
    how = distributed("SELECT x.s, COUNT(*) AS n FROM A x, A y WHERE x.k > y.k GROUP BY x.s")
    assert [str(route) for route in how.routes] == ["A sent everywhere, owner by A.s"]
    (part,) = how.parts
    (leaf,) = part.joins
    assert [OWN in source.schema.names for source in leaf.sources] == [True, True]
    assert [predicate.expression.sql for predicate in leaf.predicates][-1] == f'"0.{OWN}"'


@pytest.mark.parametrize(
    ("sql", "apart"),
    [
        ("SELECT k, COUNT(*) AS n FROM A GROUP BY k", True),
        ("SELECT COUNT(*) AS n FROM A GROUP BY k", False),
        ("SELECT DISTINCT s FROM A", True),
        ("SELECT k FROM A UNION ALL SELECT k FROM B", False),
        ("SELECT COUNT(*) AS n FROM A", False),
    ],
)
def test_rows_of_partitions_are_disjoint_where_they_contain_the_partition_key(
    sql: str,
    apart: bool,  # noqa: FBT001 (a parameter of the test)
) -> None:
    assert distributed(sql).apart is apart
