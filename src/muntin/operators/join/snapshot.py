"""The answer of a join now: all combinations of the rows inside their windows, from one origin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from muntin.kernels import layout
from muntin.kernels.nway_join import join_snapshot
from muntin.operators.join.driver import JoinOperator, JoinTactic, KernelRun
from muntin.operators.join.events import NO_EVENTS
from muntin.operators.join.matches import Matches
from muntin.operators.join.program import make_program
from muntin.operators.join.windows import JoinWindows
from muntin.operators.workspace import ResultBuffer


class SnapshotTactic(JoinTactic):
    """Joins the rows that the origin of the plan's snapshot holds; nothing is stored or counted."""

    def __init__(self, windows: JoinWindows, buffer: ResultBuffer) -> None:
        super().__init__(windows, buffer)
        plan = windows.plan
        self._origin, steps = plan.snapshot
        orders = [steps if source == self._origin else () for source in range(len(plan.sources))]
        self._program = make_program(plan, orders, windows.state.first_index)
        self._limits = windows.limits()
        self._uncounted = np.zeros(layout.COUNTERS, np.int64)

    def call(self, run: KernelRun) -> None:
        """Join the next rows of the origin."""
        output = self.output._replace(counters=self._uncounted)
        run.stopped(
            join_snapshot(
                self.windows.state.arena, self._program, self._origin, self._limits,
                run.span(), output,
            )
        )  # fmt: skip

    def make_room(self, run: KernelRun) -> None:
        """Make room for the matches of one row."""
        self.buffer.grow(run.need)

    def collect(self, run: KernelRun) -> Matches:
        """Return the matches of the last call, in no particular order."""
        out = self.buffer.out[:, : run.count]
        return Matches(out[1], None, out[2:], 0.0)

    def answer(self) -> Iterator[Matches]:
        """Yield the combinations of all rows of the origin's store."""
        store = self.windows.state.stores[self._origin]
        first, stop = int(store[layout.TAIL]), int(store[layout.NEXT])
        return self.finish(KernelRun(NO_EVENTS, first, stop, self.windows.now))


def answer_of(join: JoinOperator) -> Iterator[Matches]:
    """Yield all combinations of rows inside their windows now, in no particular order."""
    return SnapshotTactic(join.windows, join.tactic.buffer).answer()
