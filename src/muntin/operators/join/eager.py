"""Eager evaluation of a join over any number of windows ([Golab03, section 3.1]).

Each new row looks into the windows of the other sources in the order of the plan, then enters its
own. Cost per row: the rows that its steps look at.
"""

from __future__ import annotations

from typing import ClassVar

from muntin.kernels.nway_join import join_arrivals
from muntin.operators.join.tactic import JoinTactic, KernelRun


class EagerTactic(JoinTactic):
    """Joins rows as they arrive, a row after the other."""

    is_naive: ClassVar[bool] = False

    def call(self, run: KernelRun) -> None:
        """Join the next rows."""
        expiry = self.windows.expiry
        run.stopped(
            join_arrivals(
                self.windows.state.arena,
                self.windows.program,
                run.events.arrays,
                int(self.is_naive),
                expiry.code,
                expiry.timer,
                run.span(self.buffer.enough),
                self.output,
            )
        )
