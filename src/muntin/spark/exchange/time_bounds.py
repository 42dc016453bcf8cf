"""How far a micro-batch may move the time of each stream: decided in every partition alike.

Tasks report the segments of their times; all partitions hear of all of them, so each comes to the
same decision without asking another. See :mod:`muntin.state.advance_limit` for the rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.model.clock import BEFORE_ALL
from muntin.spark.exchange.messages import PartitionBatch
from muntin.state.advance_limit import AdvanceLimit


@dataclass(frozen=True)
class TimeBounds:
    """What a batch makes of time: the newest time of each stream, rows ahead in a row, and the last time in range.

    Streams of which all rows are in range have no bound.
    """

    newest: Mapping[str, int]
    ahead: Mapping[str, int]
    bounds: Mapping[str, int]

    def split(self, rows: pa.Table, stream: str, time: str) -> tuple[pa.Table, pa.Table | None]:
        """Return the rows of a stream in range, and those too far ahead, if there are any."""
        bound = self.bounds.get(stream)
        if bound is None:
            return rows, None
        column = rows.column(time)
        beyond = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_numpy() > bound
        if not np.any(beyond):
            return rows, None
        return rows.filter(pa.array(~beyond)), rows.filter(pa.array(beyond))


def bounds_after(
    newest: Mapping[str, int], ahead: Mapping[str, int], moment: int, share: PartitionBatch
) -> TimeBounds:
    """Decide on a share, given the newest time of each stream and the rows ahead before it, and the last heartbeat."""
    after, waiting, bounds = dict(newest), dict(ahead), {}
    for stream, last in share.newest.items():
        state = AdvanceLimit(newest.get(stream, BEFORE_ALL), ahead.get(stream, 0))
        bound = state.take_batch(
            share.segments.get(stream, ((last, last, 1),)), share.max_advance, moment
        )
        after[stream] = state.newest
        waiting[stream] = state.ahead
        if bound is not None:
            bounds[stream] = bound
    return TimeBounds(after, {stream: rows for stream, rows in waiting.items() if rows}, bounds)
