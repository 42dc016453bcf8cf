"""The state of a declared stream: its clock, counts and late rows, shared by all readers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.model.catalog import Stream
from muntin.model.clock import BEFORE_ALL
from muntin.runtime.time_warnings import warn_of_epoch, warn_of_rows_ahead
from muntin.state.advance_limit import AdvanceLimit
from muntin.state.batch import Batch

Times = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Place = tuple[int, int]
"""A place in the total order of all rows: time, then order of declaration of the stream."""


class StreamState:
    """The clock, counts and late rows of a declared stream.

    ``now`` is the current time, to which the first time of the stream is compared; ``last_row`` is
    when the last row arrived, by the driver's clock.
    """

    def __init__(self, stream: Stream, now: int | None = None) -> None:
        self.stream = stream
        self._now = now
        self.rows_in = 0
        self.newest = BEFORE_ALL
        self.last_row: float | None = None
        self._late: list[pa.Table] = []
        self.rows_late = 0
        self.rows_ahead = 0
        self._limit = AdvanceLimit()

    @property
    def watermark(self) -> int:
        """The newest time seen minus the slack; no earlier row is expected."""
        return self.newest - self.stream.slack if self.newest > BEFORE_ALL else BEFORE_ALL

    @property
    def place(self) -> Place:
        """The place up to which this stream is final in the total order."""
        return self.watermark, self.stream.order

    def set_aside(self, batch: Batch, limit: int | None, reached: int) -> Batch:
        """Keep the rows too far ahead of the stream with the late ones, and return the others.

        ``limit`` is the setting ``max_advance``, ``reached`` the instant to which time was
        advanced.
        """
        first = self._limit.newest == BEFORE_ALL
        inside = self._limit.take(batch.times, limit, reached)
        if first and len(batch) and self._now is not None:
            warn_of_epoch(self.stream.name, int(batch.times[0]), self._now)
        if inside is None:
            return batch
        self.rows_in += int((~inside).sum())
        self._late.append(batch.rows.filter(pa.array(~inside)))
        if not self.rows_ahead:
            warn_of_rows_ahead(self.stream.name, int(batch.times[~inside][0]))
        self.rows_ahead += len(self._late[-1])
        return batch.take(np.flatnonzero(inside))

    def arrive(self, batch: Batch) -> Times:
        """Note rows in order of arrival, and return the stream's watermark at the arrival of each.

        The watermark moves with every row, so nothing depends on how rows are cut into batches.
        """
        newest = np.maximum.accumulate(batch.times)
        before = np.maximum(np.concatenate(([self.newest], newest[:-1])), self.newest)
        self.newest = max(self.newest, int(newest[-1]))
        self.rows_in += len(batch)
        return np.where(before > BEFORE_ALL, before - self.stream.slack, BEFORE_ALL)

    def keep_late(self, late: pa.Table) -> None:
        """Keep late rows."""
        self._late.append(late)
        self.rows_late += len(late)

    def late(self) -> pa.Table:
        """Return all rows so far that were late or too far ahead."""
        return pa.concat_tables([self.stream.schema.empty_table(), *self._late])

    def take_late(self) -> pa.Table:
        """Return the rows that were late or too far ahead since the last call."""
        taken, self._late = self.late(), []
        return taken


def least_watermark(states: Iterable[StreamState]) -> Place:
    """Return the last place of the total order that is final: (time, order of the stream)."""
    return min((state.place for state in states), default=(BEFORE_ALL, 0))
