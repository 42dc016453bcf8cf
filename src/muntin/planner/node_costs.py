"""The cost of every node: work per row that comes in, to compare how a tree can be distributed.

Nothing is known of the rows above window joins before they exist, so all operators cost the same.
Window joins are compared by :mod:`muntin.planner.local_orders`, in the same unit.
"""

from __future__ import annotations

from collections.abc import Mapping

from muntin.plan.asof_join import AsofJoin
from muntin.plan.node import Node
from muntin.plan.nodes import Distinct, Exchange, GroupBy, Join, Project, Scan, SetOperation
from muntin.plan.outer_inserts import OuterInserts
from muntin.plan.semi_join import SemiJoin
from muntin.plan.sessions import SessionWindows
from muntin.plan.top_n import TopN
from muntin.plan.window_functions import WindowFunctions
from muntin.planner.unit_costs import DEFAULT_COSTS

OPERATOR_COSTS: Mapping[type[Node], float] = {
    Scan: 0.0,
    Exchange: 0.0,
    Join: DEFAULT_COSTS.operator,
    Project: DEFAULT_COSTS.operator,
    GroupBy: DEFAULT_COSTS.operator,
    Distinct: DEFAULT_COSTS.operator,
    SetOperation: DEFAULT_COSTS.operator,
    TopN: DEFAULT_COSTS.operator,
    WindowFunctions: DEFAULT_COSTS.operator,
    SemiJoin: DEFAULT_COSTS.operator,
    OuterInserts: DEFAULT_COSTS.operator,
    SessionWindows: DEFAULT_COSTS.operator,
    AsofJoin: DEFAULT_COSTS.operator,
}
"""Nanoseconds per row of the operator of every node class."""


def operator_work(root: Node) -> float:
    """Return the nanoseconds per row of all operators above the window joins of a tree."""
    operators = (node for node in root.dataflow() if not node.is_leaf)
    return sum(OPERATOR_COSTS[type(node)] for node in operators)
