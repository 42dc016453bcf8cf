"""Bounds on how far a micro-batch may advance the time of each stream.

Invariant: all partitions decide alike without communicating, because each gets the segments of the
times of all tasks. See :mod:`muntin.state.advance_limit` for the rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from muntin.model.clock import BEFORE_ALL
from muntin.spark.exchange.controls import ControlRow
from muntin.spark.exchange.messages import PartitionBatch
from muntin.spark.exchange.source_times import SourceTimes
from muntin.state.advance_limit import AdvanceLimit
from muntin.state.batch import times_of


@dataclass(frozen=True)
class TimeBounds:
    """The effect of a batch on time: newest time, consecutive rows ahead and last time in range.

    All are by stream. Streams whose rows are all in range have no bound. The newest time of a
    stream with several sources is that of the slowest active one.
    """

    newest: Mapping[str, int]
    ahead: Mapping[str, int]
    bounds: Mapping[str, int]
    sources: SourceTimes = field(default_factory=SourceTimes)

    def split(self, rows: pa.Table, stream: str, time: str) -> tuple[pa.Table, pa.Table | None]:
        """Return the rows of a stream in range, and those too far ahead, if any."""
        bound = self.bounds.get(stream)
        if bound is None:
            return rows, None
        beyond = times_of(rows, time) > bound
        if not np.any(beyond):
            return rows, None
        return rows.filter(pa.array(~beyond)), rows.filter(pa.array(beyond))


def bounds_after(before: TimeBounds, moment: int, batch: PartitionBatch) -> TimeBounds:
    """Return the bounds of a batch, given those before it; ``moment`` is the last heartbeat."""
    newest, ahead, sources = before.newest, before.ahead, before.sources
    after, waiting, bounds = dict(newest), dict(ahead), {}
    for stream, last in batch.newest.items():
        peak = sources.peak(stream)
        known = newest.get(stream, BEFORE_ALL) if peak is None else peak
        state = AdvanceLimit(known, ahead.get(stream, 0))
        bound = state.take_batch(
            batch.segments.get(stream, ((last, last, 1),)), batch.max_advance, moment
        )
        after[stream] = state.newest
        waiting[stream] = state.ahead
        if bound is not None:
            bounds[stream] = bound
    for stream, instant in batch.stamps.items():
        after[stream] = max(after.get(stream, BEFORE_ALL), instant)
    idle = [source for text in batch.controls for source in ControlRow.from_text(text).idle]
    sources = sources.after(batch.sources, idle, bounds)
    for stream in sources.newest:
        reached = sources.reached(stream)
        if reached is not None:  # it never moves back, whatever sources come
            after[stream] = max(newest.get(stream, BEFORE_ALL), reached)
    waiting = {stream: rows for stream, rows in waiting.items() if rows}
    return TimeBounds(after, waiting, bounds, sources)
