"""The operator of every node above window joins.

A node without an operator brings its rows: a stored table, a window join, or an exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from muntin.expressions.evaluator import Evaluator
from muntin.operators.asof_join import AsofJoinOperator
from muntin.operators.combine import CombineOperator, ProjectOperator
from muntin.operators.group_by import GroupByOperator
from muntin.operators.operator import Operator
from muntin.operators.outer_inserts import CurrentMatchesOperator, OuterInsertsOperator
from muntin.operators.semi_join import SemiJoinOperator
from muntin.operators.sessions import SessionOperator
from muntin.operators.set_operation import CountingOperator, UnionAllOperator
from muntin.operators.top_n import TopNOperator
from muntin.operators.window_functions import WindowFunctionsOperator
from muntin.operators.windowed import OnceOperator, has_ends
from muntin.plan.asof_join import AsofJoin
from muntin.plan.node import Node
from muntin.plan.nodes import (
    Distinct,
    Exchange,
    GroupBy,
    Join,
    Project,
    Scan,
    SetOperation,
    SetOperator,
)
from muntin.plan.outer_inserts import OuterInserts
from muntin.plan.semi_join import SemiJoin
from muntin.plan.sessions import SessionWindows
from muntin.plan.top_n import TopN
from muntin.plan.window_functions import WindowFunctions


class Build(NamedTuple):
    """What operators are made with; ``windowed``: rows may come with their ends.

    ``answers``: they run once, over the rows that are there now. ``every`` is that of the query.
    """

    evaluator: Evaluator
    windowed: bool
    answers: bool = False
    every: int | None = None


MakeOperator: TypeAlias = Callable[[Any, Build], Operator | None]


def make_operator(node: Node, build: Build) -> Operator | None:
    """Return the operator of a node."""
    return OPERATORS[type(node)](node, build)


def _distinct(node: SetOperation | Distinct, build: Build) -> Operator:
    make = OnceOperator if build.windowed and has_ends(node) else CountingOperator
    return make(node, build.evaluator)


def _set_operation(node: SetOperation, build: Build) -> Operator:
    if node.operator is SetOperator.UNION_ALL:
        return UnionAllOperator(node)
    return _distinct(node, build)


def _outer_inserts(node: OuterInserts, build: Build) -> Operator:
    make = CurrentMatchesOperator if build.answers else OuterInsertsOperator
    return make(node, build.evaluator)


OPERATORS: Mapping[type[Node], MakeOperator] = {
    Scan: lambda _node, _build: None,
    Exchange: lambda _node, _build: None,
    Join: lambda node, build: (
        None if node.is_leaf else CombineOperator(node, build.evaluator, ending=build.windowed)
    ),
    Project: lambda node, build: ProjectOperator(node, build.evaluator),
    GroupBy: lambda node, build: GroupByOperator(node, build.evaluator),
    Distinct: _distinct,
    SetOperation: _set_operation,
    TopN: lambda node, build: TopNOperator(node, build.evaluator),
    WindowFunctions: lambda node, build: WindowFunctionsOperator(node, build.evaluator),
    SemiJoin: lambda node, build: SemiJoinOperator(node, build.evaluator),
    OuterInserts: _outer_inserts,
    SessionWindows: lambda node, build: SessionOperator(node, build.evaluator, build.every),
    AsofJoin: lambda node, build: AsofJoinOperator(node, build.evaluator, answers=build.answers),
}
"""How the operator of every node class is made."""
