"""Plan trees: traversal is generic, and every node class is in all four registries."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from muntin.model.window import TimeWindow, Unbounded
from muntin.operators.registry import OPERATORS
from muntin.plan.expression import select_all
from muntin.plan.node import Node
from muntin.plan.nodes import Distinct, Join, Project, Scan, SetOperation, SetOperator
from muntin.plan.query import Query
from muntin.planner.node_costs import OPERATOR_COSTS
from muntin.planner.partitioning_rules import PARTITIONING_RULES
from muntin.testing.oracle_clauses import ORACLE_CLAUSES

SCHEMA = pa.schema([("k", pa.int64())])
STREAM = Scan("a", "A", stored=False, window=TimeWindow(1), schema=SCHEMA)
TABLE = Scan("t", "T", stored=True, window=Unbounded(), schema=SCHEMA)
ROWS = Join((STREAM, TABLE), (), (), select_all(SCHEMA), name="q/1")
TREE = SetOperation(
    SetOperator.UNION,
    Distinct(ROWS),
    Join((Project(ROWS, (), select_all(SCHEMA)), TABLE), (), (), select_all(SCHEMA)),
)


@pytest.mark.parametrize(
    "registry", [OPERATORS, PARTITIONING_RULES, OPERATOR_COSTS, ORACLE_CLAUSES]
)
def test_every_node_class_is_in_every_registry(registry: Mapping[type[Node], object]) -> None:
    assert set(registry) == set(Node.__subclasses__())


def test_children_come_before_the_nodes_over_them() -> None:
    names = [type(node).__name__ for node in TREE.walk()]
    assert names == [
        *("Scan", "Scan", "Join", "Distinct"),
        *("Scan", "Scan", "Join", "Project", "Scan", "Join", "SetOperation"),
    ]


def test_changes_flow_from_window_joins_on() -> None:
    names = [type(node).__name__ for node in TREE.dataflow()]
    assert names == ["Join", "Distinct", "Join", "Project", "Scan", "Join", "SetOperation"]


def test_a_transformed_tree_differs_only_where_the_rule_applies() -> None:
    assert TREE.transform(lambda node: node) is TREE
    other = Scan("t", "U", stored=True, window=Unbounded(), schema=SCHEMA)
    changed = TREE.transform(lambda node: other if node == TABLE else node)
    relations = [node.relation for node in changed.walk() if isinstance(node, Scan)]
    assert relations == ["A", "U", "A", "U", "U"]
    assert changed.transform(lambda node: TABLE if node == other else node) == TREE


def test_nodes_are_values() -> None:
    assert hash(TREE) == hash(TREE.with_children((Distinct(ROWS), TREE.right)))
    assert TREE.parameters == (SetOperation, SetOperator.UNION)


def test_a_window_join_with_a_name_is_below_operators() -> None:
    query = Query("q", "", TREE)
    assert [join.name for join in query.joins] == ["q/1", "q/1"]
    assert [join.is_join for join in query.joins] == [True, True]
    assert not query.is_join
    assert query.has_beginning
    assert not Query("q", "", ROWS).has_beginning
