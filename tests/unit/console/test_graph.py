"""The graph of the plans of queries that share, and of operators above joins."""

from __future__ import annotations

from typing import Any

import muntin
from muntin.console.graph import Graph
from muntin.console.hub import order_of


def graph_of(*queries: str) -> dict[str, Any]:
    engine = muntin.Engine()
    for name in "ABC":
        engine.stream(name, {"k": "bigint", "v": "double", "ts": "timestamp"}, time="ts")
    engine.table("T", [{"k": 1}], {"k": "bigint"})
    for number, sql in enumerate(queries):
        engine.query(sql, name=f"q{number}")
    return Graph(query.plan() for query in engine.queries()).to_dict()


def shape(graph: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (each["kind"], each["label"], each["layer"], each["queries"]) for each in graph["nodes"]
    ]


def test_a_shared_join_is_one_node() -> None:
    join = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW {} SECONDS"
    graph = graph_of(join.format(10), join.format(60))
    assert shape(graph) == [
        ("stream", "A", 0, ["q0", "q1"]),
        ("stream", "B", 0, ["q0", "q1"]),
        ("join", "A ⋈ B", 1, ["q0", "q1"]),
        ("query", "q0", 2, ["q0"]),
        ("query", "q1", 2, ["q1"]),
    ]
    assert len(graph["edges"]) == 4


def test_operators_stand_between_joins_and_queries() -> None:
    graph = graph_of(
        "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW 9 ROWS"
    )
    kinds = [(kind, layer) for kind, _, layer, _ in shape(graph)]
    assert kinds == [("stream", 0), ("stream", 0), ("join", 1), ("operator", 2), ("query", 3)]


def test_one_stream_has_a_window_and_tables_are_told_apart() -> None:
    graph = graph_of(
        "SELECT k FROM C WHERE v > 1 WINDOW 1 MINUTE",
        "SELECT A.k FROM A, T WHERE A.k = T.k WINDOW 1 MINUTE",
    )
    kinds = {label: kind for kind, label, _, _ in shape(graph)}
    assert kinds["T"] == "table"
    assert kinds["window of C"] == "window"
    window = next(each for each in graph["nodes"] if each["kind"] == "window")
    assert any("filter" in line for line in window["lines"])


def test_every_edge_leads_to_a_later_column() -> None:
    graph = graph_of(
        "SELECT k FROM A UNION SELECT k FROM B WINDOW 1 MINUTE",
        "SELECT DISTINCT A.k FROM A, B WHERE A.k = B.k WINDOW 1 MINUTE",
        "SELECT A.k FROM A LEFT JOIN B ON A.k = B.k WINDOW 1 MINUTE",
    )
    layer = {each["id"]: each["layer"] for each in graph["nodes"]}
    assert graph["edges"]
    assert all(layer[one] < layer[other] for one, other in graph["edges"])


def test_the_order_of_a_join_says_where_new_rows_look_also_in_a_tree() -> None:
    join = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 4 SECONDS"
    found = []
    for settings in ({}, {"overload": "adapt", "resources": 1_000}):
        engine = muntin.Engine(**settings)
        for name in "ABC":
            engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
        engine.query(join, name="q")
        (order,) = order_of(engine.handle("q").plan())["joins"]
        found.append(order["orders"])
    assert found[0] == {"A": ["B", "C"], "B": ["A", "C"], "C": ["A", "B"]}
    assert found[1] == {"A": ["B", "C"], "B": ["A", "C"], "C": ["A with B"]}
