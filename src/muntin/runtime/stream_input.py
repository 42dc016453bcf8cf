"""A stream as one group of queries reads it: waiting rows, and the log of final ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.runtime.stream_clock import Mask, Place, StreamState, Times
from muntin.state.batch import Batch
from muntin.state.inbox import Inbox
from muntin.state.stream_log import StreamLog


class StreamInput:
    """The rows of a stream that a group holds.

    Groups share the columns of the rows, but not the order in which they process them.
    """

    def __init__(self, source: StreamState) -> None:
        self.source = source
        self.stream = source.stream
        self.log = StreamLog(source.stream.schema)
        self.rows_late = 0
        self._inbox = Inbox(source.stream.schema)

    @property
    def newest(self) -> int:
        """The newest time of the stream."""
        return self.source.newest

    @property
    def accepted(self) -> int:
        """The number of rows that have arrived and were not late."""
        return self.log.next + self._inbox.waiting()

    def take(self, batch: Batch, own: Times, others: Place, floor: Place) -> Mask | None:
        """Take rows in order of arrival; return a mask of the late ones, None if none is late.

        A row is late iff its place in the total order is before the frontier when it arrives: the
        least of the ``own`` watermark of its stream at that time and the watermark of the
        ``others``, and at least the ``floor`` already reached.
        """
        late = ((batch.times < own) & self._is_before(batch.times, others)) | self._is_before(
            batch.times, floor
        )
        return self._accept(batch, late)

    def take_final(self, batch: Batch, floor: Place) -> Mask | None:
        """Take rows whose watermark is kept elsewhere; return a mask of the late ones, or None.

        Late are those before the ``floor`` already reached.
        """
        return self._accept(batch, self._is_before(batch.times, floor))

    def _accept(self, batch: Batch, late: Mask) -> Mask | None:
        if not late.any():
            self._inbox.add(batch)
            return None
        self.rows_late += int(late.sum())
        self._inbox.add(batch.take(np.flatnonzero(~late)))
        return late

    def _is_before(self, times: Times, place: Place) -> Mask:
        """Return which rows of this stream, by their times, are before a place."""
        time, order = place
        return times < (time + 1 if self.stream.order < order else time)

    def _last_time(self, frontier: Place) -> int:
        """Return the time up to which rows of this stream are final."""
        time, order = frontier
        return time if self.stream.order <= order else time - 1

    def release(self, frontier: Place) -> None:
        """Move rows up to the frontier to the log; their place in the order is final."""
        self.log.append(self._inbox.release(self._last_time(frontier)))

    def continued(self, frontier: Place) -> StreamInput:
        """Return the input of another group that starts with the rows of this one at a frontier.

        Rows that this group has processed and that are beyond that frontier wait again. No column
        is copied.
        """
        other = StreamInput(self.source)
        other.log, rest = self.log.split(self._last_time(frontier))
        other._inbox.add(rest)
        for batch in self._inbox.batches():
            other._inbox.add(batch)
        other.release(frontier)
        return other

    def held(self) -> pa.Table:
        """Return the rows in the log and those that wait, in order."""
        _, logged = self.log.between(0, self.log.next)
        return pa.concat_tables([logged.rows, self._inbox.rows()]).combine_chunks()

    def waiting(self) -> int:
        """Return the number of rows that wait."""
        return self._inbox.waiting()

    def oldest_waiting(self) -> int | None:
        """Return the time of the oldest row that waits, or None."""
        return self._inbox.oldest()

    def held_after(self, time: int | None = None) -> int:
        """Return the number of rows held, or of those later than a time."""
        batches = [*self.log.batches(), *self._inbox.batches()]
        if time is None:
            return sum(map(len, batches))
        return sum(
            len(batch) - int(np.searchsorted(batch.times, time, side="right")) for batch in batches
        )
