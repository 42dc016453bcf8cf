"""Where rows of sessions keep their ends: the forms of queries that avoid changes of all rows."""

from __future__ import annotations

import pytest

from muntin.errors import SqlError
from muntin.model.catalog import Catalog
from muntin.plan.nodes import GroupBy, Project
from muntin.plan.sessions import SessionEnds, SessionWindows
from muntin.planner.distribution import distribution_of
from muntin.planner.rewrite import rewrite
from muntin.sql.script import read_query
from muntin.sql.streams import make_stream
from muntin.sql.types import build_schema


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog()
    for name in "AB":
        columns = {"k": "int", "j": "int", "v": "int", "ts": "timestamp"}
        catalog.add(make_stream(name, build_schema(columns)))
    return catalog


@pytest.mark.parametrize(
    ("sql", "ends"),
    [
        ("SELECT k, window_end, COUNT(*) AS n FROM SESSION(A, 5 s, k) GROUP BY ALL", "steady"),
        (
            (
                "SELECT k, window_start, MAX(v) AS m FROM SESSION(A, 5 s, k)"
                " GROUP BY k, window_start, window_end HAVING epoch(window_end) > 9"
            ),
            "steady",
        ),
        ("SELECT COUNT(*) AS n, window_end FROM SESSION(A, 5 s) GROUP BY window_end", "steady"),
        ("SELECT k, v, window_start FROM SESSION(A, 5 s, k)", "steady"),
        ("SELECT v, window_start FROM SESSION(A, 5 s, k) WHERE v > 3", "steady"),
        ("SELECT k, v, window_end FROM SESSION(A, 5 s, k)", "each"),
        ("SELECT k FROM SESSION(A, 5 s, k) WHERE epoch(window_end) > 9", "each"),
        ("SELECT window_end, COUNT(*) AS n FROM SESSION(A, 5 s, k) GROUP BY ALL", "each"),
        ("SELECT k, v, window_end, COUNT(*) AS n FROM SESSION(A, 5 s, k) GROUP BY ALL", "each"),
        (
            "SELECT k, window_end, COUNT(*) AS n FROM SESSION(A, 5 s, k) WHERE v > 3 GROUP BY ALL",
            "each",
        ),
        (
            (
                "SELECT k, window_end, MIN(window_end) AS m FROM SESSION(A, 5 s, k)"
                " GROUP BY k, window_end"
            ),
            "each",
        ),
        ("SELECT k, window_end FROM SESSION(A, 5 s, k) EMIT FINAL", "final"),
    ],
)
def test_rows_are_steady_where_their_end_is_not_read(sql: str, ends: str, catalog: Catalog) -> None:
    query = read_query(sql, "q", catalog)
    root = rewrite(query).root
    (found,) = [node for node in root.walk() if isinstance(node, SessionWindows)]
    assert found.ends is SessionEnds(ends)
    assert root.schema.equals(query.root.schema)


def test_the_end_of_a_group_is_an_aggregate(catalog: Catalog) -> None:
    sql = "SELECT k, window_end, COUNT(*) AS n FROM SESSION(A, 5 s, k) GROUP BY k, window_end"
    (group,) = [
        node
        for node in rewrite(read_query(sql, "q", catalog)).root.walk()
        if isinstance(node, GroupBy)
    ]
    assert [one.text for one in group.aggregates][-1] == "max(window_end)"
    assert isinstance(group.input, Project)
    assert [column.expression.sql for column in group.input.select][group.keys - 1] == (
        '"0.window_start"'
    )


def test_sessions_of_one_stream_by_two_keys_are_refused_where_both_are_in_parts(
    catalog: Catalog,
) -> None:
    both = "SELECT v FROM SESSION(A, 5 s, k) UNION ALL SELECT v FROM SESSION({}, 5 s, j)"
    joined = "SELECT x.v FROM SESSION(A, 5 s, k) x JOIN SESSION(A, 5 s, j) y ON x.k = y.k"
    assert distribution_of(read_query(both.format("B"), "q", catalog)).routes
    assert distribution_of(read_query(joined, "q", catalog)).routes
    with pytest.raises(SqlError, match="sessions of one stream by keys that differ"):
        distribution_of(read_query(both.format("A"), "q", catalog))
