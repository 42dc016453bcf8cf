"""Lazy and general lazy evaluation ([Golab03, section 3]): join at intervals, not per row.

Rows are stored as they arrive. At each multiple of the reevaluation interval, and at the end of a
batch, the new rows of each source are joined with the windows as they were when each row arrived.
Under GENERAL LAZY the plan may place new rows anywhere in the order; the kernel is the same. Cost:
as eager, but the first step looks at new rows only once per interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from muntin.kernels.nway_join import join_interval
from muntin.kernels.result_order import sort_matches
from muntin.operators.join.driver import JoinTactic, KernelRun
from muntin.operators.join.events import Events
from muntin.operators.join.matches import Matches


class LazyTactic(JoinTactic):
    """Joins what has arrived at each multiple of an interval, and at the end of each batch."""

    def join(self, events: Events, now: int) -> Iterator[Matches]:
        """Yield the matches of each interval; rows that have left by its end expire after it."""
        if not len(events):
            return
        cuts, instants = [0, len(events)], [int(events.times[-1])]
        interval = self.windows.plan.reevaluation
        if interval:
            evaluations = -(-events.times // interval)
            inner = np.flatnonzero(np.diff(evaluations))
            cuts = [0, *(inner + 1).tolist(), len(events)]
            instants = [*(evaluations[inner] * interval).tolist(), *instants]
        limits = self.windows.limits()
        for (start, stop), instant in zip(pairwise(cuts), instants, strict=True):
            arrived = self.windows.reserve(events, start, stop, limits)
            self._order = np.empty(arrived, np.int64)
            yield from self.finish(KernelRun(events, start, stop, now))
            limits = self.windows.limits_at(int(events.times[stop - 1]), events.counts[stop - 1])
            self.windows.expire(limits, instant)

    def call(self, run: KernelRun) -> None:
        """Join all rows of the interval; after an overflow they are stored already."""
        run.stopped(
            join_interval(
                self.windows.state.arena, self.windows.program, run.events.arrays,
                run.span(), self._order, self.output,
            )
        )  # fmt: skip

    def collect(self, run: KernelRun) -> Matches:
        """Return the matches in order; the kernel joins source by source."""
        out = self.buffer.out[:, : run.count]
        out = out[:, np.argsort(out[0], kind="stable")]
        sort_matches(out, np.empty(run.count, np.int64), np.empty(run.count, np.int64))
        return Matches(out[1], None, out[2:], run.events.arrived(out[0]))
