"""The join as a binary tree that keeps its intermediate results ([Mukherji11, section 2]).

Finds the same matches as the eager tactic. State beyond the windows: partial matches
(:mod:`muntin.state.partial_matches`). Cost per row: the partial matches that it makes, and the rows
and partial matches that it looks at. A tree pays where an intermediate result changes slowly and is
probed often (``planner/tree_choice.py``).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.kernels.arrays import Program
from muntin.kernels.tree_join import join_tree
from muntin.operators.join.driver import JoinTactic, KernelRun, TacticStats
from muntin.operators.join.events import Events
from muntin.operators.join.program import OPERATORS
from muntin.operators.join.windows import JoinWindows
from muntin.operators.workspace import ResultBuffer
from muntin.plan.join import TreePlan, TreeStep
from muntin.state.join_state import JoinState
from muntin.state.partial_matches import NodeSpec, PartialMatches

Integers = npt.NDArray[np.int64]


class JoinTree:
    """The partial matches of a tree plan, and its ways to the root as integers for the kernel."""

    def __init__(self, plan: TreePlan, state: JoinState) -> None:
        self.partial_matches = PartialMatches(
            state, [NodeSpec(node.sources, node.key) for node in plan.nodes]
        )
        stores = len(state.specs)
        numbers = [[_numbers(climb, state) for climb in path] for path in plan.climbs]
        stride = max(len(climb) for path in numbers for climb in path)
        table = np.zeros((stores, stores - 1, stride), np.int64)
        for leaf, path in enumerate(numbers):
            for level, climb in enumerate(path):
                table[leaf, level, : len(climb)] = climb
        self.climbs = Program(table.reshape(-1), stride)


def _numbers(climb: TreeStep, state: JoinState) -> list[int]:
    """Return one level of the way to the root as integers."""
    sibling, index = climb.source, -1
    if sibling is None:
        sibling = len(state.specs) + (climb.node or 0)
    elif climb.index is not None:
        index = int(state.first_index[sibling]) + climb.index
    parent = -1 if climb.parent is None else climb.parent
    numbers = [sibling, index, len(climb.keys), len(climb.checks), parent]
    for source, code in climb.keys:
        numbers += [source, layout.CODES + code]
    for check in climb.checks:
        numbers.append(OPERATORS[check.operator])
        for source, code in (check.own, check.other):
            numbers += [source, layout.CODES + code]
    return numbers


class TreeTactic(JoinTactic):
    """Joins rows as they arrive, from their leaf to the root of a tree."""

    def __init__(self, windows: JoinWindows, buffer: ResultBuffer, tree: JoinTree) -> None:
        super().__init__(windows, buffer)
        self.tree = tree

    def call(self, run: KernelRun) -> None:
        """Join the next rows."""
        run.stopped(
            join_tree(
                self.windows.state.arena, self.tree.climbs, self.tree.partial_matches.arrays,
                run.events.arrays, run.span(self.buffer.enough), run.count, int(run.silent),
                self.output,
            )
        )  # fmt: skip

    def continues(self, run: KernelRun) -> bool:
        """Return whether the kernel can be called again before its matches are handed out.

        Matches stay in the buffer where a node is full, which is too often to hand out a few.
        """
        return run.status == layout.WIDEN or super().continues(run)

    def make_room(self, run: KernelRun) -> None:
        """Provide what the last call lacked, if anything."""
        if run.status == layout.WIDEN:
            limits = self.windows.limits_before(run.events, run.event)
            self.tree.partial_matches.make_room(run.need, limits)
        else:
            super().make_room(run)

    def insert(self, events: Events, *, repeated: bool = False) -> None:  # noqa: ARG002
        """Store rows whose matches are not needed, and the partial matches that they make."""
        for _ in self.finish(KernelRun(events, 0, len(events), self.windows.now, silent=True)):
            raise AssertionError("a silent run makes no matches")

    def fit(self, limits: Integers) -> None:
        """Return unused memory."""
        self.tree.partial_matches.fit(limits)

    def stats(self) -> TacticStats:
        """Return the state it holds beyond the windows."""
        kept = self.tree.partial_matches
        return TacticStats(kept.nbytes(), kept.rows())
