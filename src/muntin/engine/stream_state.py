"""One stream of a running engine: its clock, the rows that wait, the log, the late rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.model.catalog import Stream
from muntin.model.clock import BEFORE_ALL
from muntin.state.batch import Batch
from muntin.state.inbox import Inbox
from muntin.state.stream_log import StreamLog

Times = npt.NDArray[np.int64]
Place = tuple[int, int]
"""A place in the total order of all rows: time, then order of declaration of the stream."""


class StreamState:
    """What the engine remembers of a declared stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.log = StreamLog(stream.schema)
        self.rows_in = 0
        self._inbox = Inbox(stream.schema)
        self.newest = BEFORE_ALL
        self._late: list[pa.Table] = []

    @property
    def watermark(self) -> int:
        """Nothing earlier is expected: the newest time seen minus the slack."""
        return self.newest - self.stream.slack if self.newest > BEFORE_ALL else BEFORE_ALL

    @property
    def accepted(self) -> int:
        """How many rows have come that were not late."""
        return self.log.next + self._inbox.waiting()

    def take(self, batch: Batch, others: Place, floor: Place) -> None:
        """Sort rows in order of arrival into waiting and late ones.

        A row is late iff its place in the total order is before the frontier when it comes: the least of this
        stream's own and the ``others``', never less than the ``floor`` already reached. The own one moves with
        every row, so the result does not depend on how rows are cut into batches.
        """
        if not len(batch):
            return
        newest = np.maximum.accumulate(batch.times)
        before = np.maximum(np.concatenate(([self.newest], newest[:-1])), self.newest)
        own = np.where(before > BEFORE_ALL, before - self.stream.slack, BEFORE_ALL)
        late = ((batch.times < own) & self._is_before(batch.times, others)) | self._is_before(batch.times, floor)
        self.newest = max(self.newest, int(newest[-1]))
        self.rows_in += len(batch)
        if late.any():
            self._late.append(batch.rows.filter(pa.array(late)))
            batch = batch.take(np.flatnonzero(~late))
        self._inbox.add(batch)

    def take_final(self, batch: Batch, floor: Place) -> pa.Table:
        """Take rows whose stream is watched elsewhere, and return the late ones: those before the ``floor`` already reached."""
        late = self._is_before(batch.times, floor)
        self.rows_in += len(batch)
        if not late.any():
            self._inbox.add(batch)
            return self.stream.schema.empty_table()
        self._inbox.add(batch.take(np.flatnonzero(~late)))
        return batch.rows.filter(pa.array(late))

    def _is_before(self, times: Times, place: Place) -> npt.NDArray[np.bool_]:
        """Whether rows of this stream at such times stand before a place in the total order."""
        time, order = place
        return times < (time + 1 if self.stream.order < order else time)

    def release(self, until: int) -> None:
        """Move rows of times up to ``until`` to the log; their place in the order is final."""
        self.log.append(self._inbox.release(until))

    def oldest_waiting(self) -> int | None:
        """Return the time of the oldest row that waits, or None."""
        return self._inbox.oldest()

    def held(self) -> pa.Table:
        """The rows in the log and those that wait, in order."""
        _, logged = self.log.between(0, self.log.next)
        return pa.concat_tables([logged.rows, self._inbox.rows()]).combine_chunks()

    def late(self) -> pa.Table:
        """All late rows so far."""
        return pa.concat_tables([self.stream.schema.empty_table(), *self._late])

    def stats(self) -> dict[str, int]:
        """Counts of the stream."""
        return {
            "rows_in": self.rows_in,
            "rows_late": sum(len(rows) for rows in self._late),
            "rows_waiting": self._inbox.waiting(),
            "rows_logged": self.log.held(),
            "log_bytes": self.log.nbytes(),
        }


def least_watermark(states: list[StreamState]) -> Place:
    """How far the total order is final: (time, order of the stream); rows up to there, that pair included."""
    return min(((state.watermark, state.stream.order) for state in states), default=(BEFORE_ALL, 0))
