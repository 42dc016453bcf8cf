"""Lazy and general lazy evaluation ([Golab03, section 3]): join at intervals, not per row.

Rows are stored as they arrive. At each multiple of the reevaluation interval, and at the end of a
batch, the new rows of each source are joined with the windows as they were when each row arrived.
Under GENERAL LAZY the plan may place new rows anywhere in the order; the kernel is the same. Cost:
as eager, but the first step looks at new rows only once per interval.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from muntin.kernels import layout
from muntin.kernels.nway_join import join_intervals
from muntin.kernels.result_order import sort_matches
from muntin.operators.join.driver import JoinTactic, KernelRun
from muntin.operators.join.events import Events
from muntin.operators.join.matches import Matches


class LazyTactic(JoinTactic):
    """Joins what has arrived at each multiple of an interval, and at the end of each batch.

    One kernel call joins all intervals of a batch, so an evaluation costs no more than its rows.
    """

    def join(self, events: Events, now: int) -> Iterator[Matches]:
        """Yield the matches of the intervals; rows that have left by the end of one expire."""
        if not len(events):
            return iter(())
        self._stops = np.array([len(events)], np.int64)
        self._instants = events.times[-1:].copy()
        interval = self.windows.plan.reevaluation
        first, last = events.times[0], events.times[-1]
        if interval and -(-first // interval) != -(-last // interval):
            evaluations = -(-events.times // interval)
            inner = np.flatnonzero(np.diff(evaluations))
            self._stops = np.append(inner + 1, self._stops)
            self._instants = np.append(evaluations[inner] * interval, self._instants)
        self._order = np.empty(int(np.diff(self._stops, prepend=0).max()), np.int64)
        return self.finish(KernelRun(events, 0, len(events), now))

    def call(self, run: KernelRun) -> None:
        """Join intervals; after an overflow the rows of the first are stored already."""
        windows = self.windows
        run.stopped(
            join_intervals(
                windows.state.arena, windows.program, run.events.arrays, self._stops,
                self._instants, windows.expiry.code, windows.expiry.timer,
                run.span(self.buffer.enough), self._order, self.output,
            )
        )  # fmt: skip

    def make_room(self, run: KernelRun) -> None:
        """Provide room for the rows of the next interval if the last call lacked it."""
        if run.status != layout.GROW:
            super().make_room(run)
            return
        stop = int(self._stops[np.searchsorted(self._stops, run.event, side="right")])
        self.windows.reserve(run.events, run.event, stop)

    def collect(self, run: KernelRun) -> Matches:
        """Return the matches in order; the kernel joins source by source."""
        out = self.buffer.out[:, : run.count]
        out = out[:, np.argsort(out[0], kind="stable")]
        sort_matches(out, np.empty(run.count, np.int64), np.empty(run.count, np.int64))
        return Matches(out[1], None, out[2:], run.events.arrived(out[0]))
