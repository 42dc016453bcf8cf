"""A stream: its clock and late rows, and the rows of it that each group of queries holds."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.model.catalog import Stream
from muntin.model.clock import AFTER_ALL, BEFORE_ALL
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow, Window
from muntin.runtime.time_warnings import warn_of_epoch, warn_of_rows_ahead
from muntin.state.advance_limit import AdvanceLimit
from muntin.state.batch import Batch
from muntin.state.inbox import Inbox
from muntin.state.stream_log import StreamLog

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
        self.low_mark = BEFORE_ALL
        """No earlier row is expected, by a clock."""
        self.last_row: float | None = None
        self._late: list[pa.Table] = []
        self.rows_late = 0
        self.rows_ahead = 0
        self.limit = AdvanceLimit()

    @property
    def watermark(self) -> int:
        """Return the newest time minus the slack, or the low mark; no earlier row is expected."""
        by_rows = self.newest - self.stream.slack if self.newest > BEFORE_ALL else BEFORE_ALL
        return max(by_rows, self.low_mark)

    @property
    def place(self) -> Place:
        """Return the place up to which this stream is final in the total order."""
        return self.watermark, self.stream.order

    def raise_low_mark(self, instant: int) -> None:
        """Expect no row before an instant; it never moves back."""
        self.low_mark = max(self.low_mark, instant)

    def set_aside(self, batch: Batch, limit: int | None, reached: int) -> Batch:
        """Keep the rows too far ahead of the stream with the late ones, and return the others.

        ``limit`` is the setting ``max_advance``, ``reached`` the instant to which time was
        advanced.
        """
        first = self.limit.newest == BEFORE_ALL
        inside = self.limit.take(batch.times, limit, max(reached, self.low_mark))
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

    def arrive(self, batch: Batch, *, ordered: bool = True) -> Times | None:
        """Count rows; in order of arrival they move the clock, otherwise it is kept elsewhere.

        Returns the stream's watermark at the arrival of each row, or None. The watermark moves with
        every row, so nothing depends on how rows are cut into batches.
        """
        self.rows_in += len(batch)
        if not ordered:
            return None
        newest = np.maximum.accumulate(batch.times)
        before = np.maximum(np.concatenate(([self.newest], newest[:-1])), self.newest)
        self.newest = max(self.newest, int(newest[-1]))
        by_rows = np.where(before > BEFORE_ALL, before - self.stream.slack, BEFORE_ALL)
        return np.maximum(by_rows, self.low_mark)

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
        """Return the newest time of the stream."""
        return self.source.newest

    @property
    def accepted(self) -> int:
        """Return the number of rows that have arrived and were not late."""
        return self.log.next + self._inbox.waiting()

    def take(
        self, batch: Batch, floor: Place, own: Times | None = None, others: Place = (AFTER_ALL, 0)
    ) -> Mask | None:
        """Take rows in order of arrival; return a mask of the late ones, None if none is late.

        A row is late iff its place in the total order is before the frontier when it arrives: the
        least of the ``own`` watermark of its stream at that time and the watermark of the
        ``others``, and at least the ``floor`` already reached. Without ``own``, watermarks are kept
        elsewhere and only the floor counts.
        """
        late = self._is_before(batch.times, floor)
        if own is not None:
            late |= (batch.times < own) & self._is_before(batch.times, others)
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

    def held(self) -> tuple[Times, pa.Table]:
        """Return the rows in the log and those that wait, and the positions of the former."""
        positions, logged = self.log.between(0, self.log.next)
        return positions, pa.concat_tables([logged.rows, self._inbox.rows()])

    def wait(self, batch: Batch) -> None:
        """Take rows of which none is late; they wait for :meth:`release`."""
        self._inbox.add(batch)

    def waiting(self) -> int:
        """Return the number of rows that wait."""
        return self._inbox.waiting()

    def bytes_waiting(self) -> int:
        """Return the bytes of the rows that wait."""
        return self._inbox.nbytes()

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

    def lacks(self, other: StreamInput, window: Window, now: int) -> bool:
        """Return whether another group holds more of the rows that a window reaches at ``now``."""
        if isinstance(window, TimeWindow):
            return self.held_after(now - window.micros) < other.held_after(now - window.micros)
        if isinstance(window, RowsWindow):
            return self.held_after() < min(window.rows, other.held_after())
        assert isinstance(window, PartitionedWindow), "a stream has one of three windows"
        return self.held_after() < other.held_after()
