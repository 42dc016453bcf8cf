"""A join that retracts its matches when one of their rows leaves its window ([HammadTR]).

Each match comes out twice: with sign +1 when its newest row arrives, with sign -1 at the instant at
which its first row leaves. Between batches nothing is expired that has not been retracted.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.changelog_join import join_signed
from muntin.operators.join.driver import JoinTactic, KernelRun
from muntin.operators.join.matches import Matches


class ChangelogTactic(JoinTactic):
    """Joins rows as they arrive and retracts matches as rows leave, up to the frontier."""

    def call(self, run: KernelRun) -> None:
        """Join the next rows and retract what ends before each."""
        run.stopped(
            join_signed(
                self.windows.state.arena, self.windows.program, run.events.arrays,
                run.span(self.buffer.enough), run.now, self.output,
            )
        )  # fmt: skip

    def collect(self, run: KernelRun) -> Matches:
        """Return the matches of the last call with their signs; a negative tag retracts."""
        out = self.buffer.out[:, : run.count]
        signs = np.where(out[0] < 0, -1, 1).astype(np.int8)
        tags = np.where(out[0] < 0, ~out[0], out[0])
        return Matches(out[1], signs, out[2:], run.events.arrived(tags))
