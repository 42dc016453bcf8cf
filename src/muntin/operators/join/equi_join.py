"""Eager evaluation of two windows joined by one equality: the common case, with its own kernel.

Cost per row: one probe of a hash chain and the matches on it.
"""

from __future__ import annotations

from muntin.kernels.equi_join import join_pair
from muntin.model.settings import Algorithm, Expiry
from muntin.model.window import PartitionedWindow
from muntin.operators.join.tactic import JoinTactic, KernelRun
from muntin.plan.join import JoinPlan

_TWO = 2


def is_equi_join(plan: JoinPlan) -> bool:
    """Return whether the kernel for two windows and one equality can run a plan."""
    return (
        plan.algorithm is Algorithm.EAGER
        and plan.tree is None
        and plan.expiry is Expiry.OWN
        and len(plan.sources) == _TWO
        and all(
            len(source.codes) == 1
            and [(index.codes, index.buckets) for index in source.indexes] == [((0,), None)]
            for source in plan.sources
        )
        and all(
            len(step.checks) == 1 and step.checks[0].operator == "="
            for order in plan.orders
            for step in order
        )
        and not any(isinstance(source.window, PartitionedWindow) for source in plan.query.sources)
    )


class EquiJoinTactic(JoinTactic):
    """Joins rows of two sources as they arrive."""

    def call(self, run: KernelRun) -> None:
        """Join the next rows."""
        span = run.span(self.buffer.enough)
        run.stopped(join_pair(self.windows.state.arena, run.events.arrays, span, self.output))
