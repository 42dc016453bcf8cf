"""Partitioning of queries: hash by an owner key, broadcast, or counted only."""

from __future__ import annotations

import pytest

from muntin.model.catalog import Catalog, Table
from muntin.planner.distribution import distribution_of
from muntin.planner.partitioning import OWN
from muntin.planner.partitioning_rules import ways
from muntin.sql.script import read_query
from muntin.sql.streams import make_stream
from muntin.sql.types import build_schema

COLUMNS = {"k": "bigint", "j": "integer", "s": "varchar", "ts": "timestamp"}


def catalog() -> Catalog:
    known = Catalog()
    for name in "ABC":
        known.add(make_stream(name, build_schema(COLUMNS), "ts", 0))
    known.add(Table("T", build_schema({"k": "bigint"})))
    return known


@pytest.mark.parametrize(
    ("sql", "routes", "spread"),
    [
        ("SELECT A.k FROM A WINDOW 1 SECOND", ["by the time of A"], {0}),
        ("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", ["by A.k", "by B.k"], {0, 1}),
        (
            "SELECT A.k FROM A, B WHERE A.k + 1 = B.j WINDOW 1 SECOND",
            ["by A.k + 1", "by B.j"],
            {0, 1},
        ),
        ("SELECT A.k FROM A, T WHERE A.k = T.k WINDOW 1 SECOND", ["by A.k"], {0}),
        (
            "SELECT A.k FROM A, B WHERE A.k < B.k WINDOW 1 SECOND",
            ["by the time of A", "B sent everywhere, owner by the time of B"],
            {0},
        ),
        (
            "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.j = C.j WINDOW 1 SECOND",
            ["by A.k", "by B.k", "C sent everywhere, owner by the time of C"],
            {0, 1},
        ),
        (
            "SELECT A.k FROM A [ROWS 3], B [RANGE 1 SECOND] WHERE A.k = B.k",
            ["A counted everywhere, owner by A.k", "by B.k"],
            {0, 1},
        ),
        (
            "SELECT A.k FROM A [PARTITION BY k ROWS 3], B [RANGE 1 SECOND] WHERE A.k = B.k",
            ["by A.k", "by B.k"],
            {0, 1},
        ),
        (
            "SELECT A.k FROM A [PARTITION BY j ROWS 3], B [RANGE 1 SECOND] WHERE A.k = B.k",
            ["A sent everywhere, owner by A.k", "by B.k"],
            {0, 1},
        ),
        ("SELECT a.k FROM A a, A b WHERE a.k = b.k WINDOW 1 SECOND", ["by A.k"], {0, 1}),
        (
            "SELECT a.k FROM A a, A b WHERE a.k = b.j WINDOW 1 SECOND",
            ["A sent everywhere, owner by A.k"],
            {0},
        ),
    ],
)
def test_partitioning_of_each_query(sql: str, routes: list[str], spread: set[int]) -> None:
    query = read_query(sql, "q", catalog())
    assert [str(route) for route in distribution_of(query).routes] == routes
    best = max(ways(query.root), key=lambda way: len(way.keys))
    assert {place for _, place in best.keys} == spread


def test_a_partition_keeps_only_rows_it_owns_where_a_partitioned_stream_is_broadcast() -> None:
    query = read_query(
        "SELECT A.k FROM A [ROWS 3], B [RANGE 1 SECOND] WHERE A.k = B.k", "q", catalog()
    )
    (local,) = distribution_of(query).parts
    assert [OWN in source.schema.names for source in local.sources] == [True, False]
    assert [
        predicate.expression.sql for predicate in local.predicates[len(query.predicates) :]
    ] == [f'"0.{OWN}"']
