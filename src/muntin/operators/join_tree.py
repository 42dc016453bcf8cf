"""The n-way window join as a binary tree with stored intermediate results: the same matches as the join without.

State beyond the windows: partial matches (:mod:`muntin.state.partial_matches`). Cost of a row: the partial matches it makes and the rows
and partial matches it looks at. It pays where a join result changes slowly and is looked at often (``planner/tree_choice.py``).
"""

from __future__ import annotations

import numpy as np

from muntin.kernels import layout
from muntin.kernels.arrays import Program
from muntin.operators.join_program import OPERATORS
from muntin.plan.join import TreePlan
from muntin.state.join_state import JoinState
from muntin.state.partial_matches import NodeSpec, PartialMatches


class Tree:
    """The partial matches of a tree plan and its ways up as the integers that the kernel reads."""

    def __init__(self, plan: TreePlan, state: JoinState) -> None:
        self.partial_matches = PartialMatches(
            state, [NodeSpec(node.sources, node.key) for node in plan.nodes]
        )
        stores = len(state.specs)
        climbs = [climb for path in plan.climbs for climb in path]
        arguments = max(2 * len(climb.keys) + 5 * len(climb.checks) for climb in climbs)
        stride = layout.CLIMB_ARGUMENTS + arguments
        table = np.zeros((stores, stores - 1, stride), np.int64)
        for leaf, path in enumerate(plan.climbs):
            for level, climb in enumerate(path):
                sibling = climb.source if climb.source is not None else stores + (climb.node or 0)
                index = -1
                if climb.source is not None and climb.index is not None:
                    index = int(state.first_index[climb.source]) + climb.index
                numbers = [
                    sibling,
                    index,
                    len(climb.keys),
                    len(climb.checks),
                    -1 if climb.parent is None else climb.parent,
                ]
                for source, code in climb.keys:
                    numbers += [source, layout.CODES + code]
                for check in climb.checks:
                    numbers += [
                        OPERATORS[check.operator], check.own[0], layout.CODES + check.own[1], check.other[0], layout.CODES + check.other[1],
                    ]  # fmt: skip
                table[leaf, level, : len(numbers)] = numbers
        self.climbs = Program(table.reshape(-1), stride)
