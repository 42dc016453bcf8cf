"""A declared stream: its clock, what has come of it, and its late rows. There is one per stream, whoever reads it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.model.catalog import Stream
from muntin.model.clock import BEFORE_ALL
from muntin.state.batch import Batch

Times = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Place = tuple[int, int]
"""A place in the total order of all rows: time, then order of declaration of the stream."""


class StreamState:
    """What the engine remembers of a declared stream.

    ``last_row`` is the moment, by the driver's clock, at which the last row came.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.rows_in = 0
        self.newest = BEFORE_ALL
        self.last_row: float | None = None
        self._late: list[pa.Table] = []

    @property
    def watermark(self) -> int:
        """Nothing earlier is expected: the newest time seen minus the slack."""
        return self.newest - self.stream.slack if self.newest > BEFORE_ALL else BEFORE_ALL

    @property
    def place(self) -> Place:
        """How far the order is final as far as this stream goes."""
        return self.watermark, self.stream.order

    def arrive(self, batch: Batch) -> Times:
        """Note rows in order of arrival, and return the stream's watermark when each of them came.

        The watermark moves with every row, so nothing depends on how rows are cut into batches.
        """
        newest = np.maximum.accumulate(batch.times)
        before = np.maximum(np.concatenate(([self.newest], newest[:-1])), self.newest)
        self.newest = max(self.newest, int(newest[-1]))
        self.rows_in += len(batch)
        return np.where(before > BEFORE_ALL, before - self.stream.slack, BEFORE_ALL)

    def set_aside(self, late: pa.Table) -> None:
        """Keep late rows."""
        self._late.append(late)

    def late(self) -> pa.Table:
        """All late rows so far."""
        return pa.concat_tables([self.stream.schema.empty_table(), *self._late])

    def rows_late(self) -> int:
        """How many rows were late so far."""
        return sum(len(rows) for rows in self._late)


def least_watermark(states: Iterable[StreamState]) -> Place:
    """How far the total order is final: (time, order of the stream); rows up to there, that pair included."""
    return min((state.place for state in states), default=(BEFORE_ALL, 0))
