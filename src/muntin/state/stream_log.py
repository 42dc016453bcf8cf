"""The rows of one stream that some query may still need, in order, as Arrow segments.

Invariant: positions count the accepted rows of the stream in their final order (time, then
arrival); times never decrease from one position to the next. Every position from the first dense
segment on is held, before it only those that partitioned windows keep. Rows are stored once for all
queries, as they came (appending a batch copies nothing); joins hold integers and gather from here,
late.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from operator import attrgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.state.batch import Batch, join_batches
from muntin.state.columns import empty_table, gather_numbers, take

Positions = npt.NDArray[np.int64]

_SMALL = 65_536
_FEW = 1_024
_NUMBERS = count()


@dataclass(frozen=True)
class Segment:
    """Rows at positions ``start`` onwards without a gap, or at the positions ``sparse``."""

    start: int
    batch: Batch
    sparse: Positions | None = None

    @cached_property
    def last(self) -> int:
        """Return the position of the last row."""
        return self.start + len(self.batch) - 1 if self.sparse is None else int(self.sparse[-1])

    @cached_property
    def newest(self) -> int:
        """Return the time of the last row."""
        return int(self.batch.times[-1])

    def positions(self) -> Positions:
        """Return the positions of all rows."""
        return (
            np.arange(self.start, self.start + len(self.batch))
            if self.sparse is None
            else self.sparse
        )

    def rank(self, position: int) -> int:
        """Return the number of rows before a position."""
        if self.sparse is None:
            return min(max(position - self.start, 0), len(self.batch))
        return int(np.searchsorted(self.sparse, position))


_LAST = attrgetter("last")
_NEWEST = attrgetter("newest")


class StreamLog:
    """An append-only log with a moving start."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.number = next(_NUMBERS)
        """Unique in this process: a position of this number always has the same row."""
        self.next = 0
        self._segments: list[Segment] = []
        self._kept = 0

    def append(self, batch: Batch) -> None:
        """Add rows whose times are not before any that is there."""
        if not len(batch):
            return
        self._segments.append(Segment(self.next, batch))
        self.next += len(batch)
        # Small batches are put together so that a long run of single rows does not make a long
        # list.
        while len(self._segments) > 1:
            before, last = self._segments[-2:]
            if (
                before.sparse is not None
                or len(before.batch) + len(last.batch) > _SMALL
                or 2 * len(last.batch) < len(before.batch)
            ):
                break
            joined = join_batches((before.batch, last.batch), self.schema)
            self._segments[-2:] = [
                Segment(
                    before.start, Batch(joined.rows.combine_chunks(), joined.times, joined.arrivals)
                )
            ]

    def between(self, start: int, stop: int) -> tuple[Positions, Batch]:
        """Return the held rows at positions ``start`` to ``stop - 1``."""
        positions, parts = [np.empty(0, np.int64)], []
        for segment in islice(self._segments, bisect_left(self._segments, start, key=_LAST), None):
            if segment.start >= stop:
                break
            low, high = segment.rank(start), segment.rank(stop)
            if low < high:
                positions.append(segment.positions()[low:high])
                parts.append(segment.batch.part(low, high))
        return np.concatenate(positions), join_batches(parts, self.schema)

    def batches(self) -> Iterator[Batch]:
        """Return the held rows, oldest first."""
        return (segment.batch for segment in self._segments)

    def split(self, time: int) -> tuple[StreamLog, Batch]:
        """Return another log with the rows up to a time, and the later rows.

        Positions stay the same, and both share columns.
        """
        log = StreamLog(self.schema)
        log.next = self.position_after(time)
        for segment in self._segments:
            count = segment.rank(log.next)
            if count:
                sparse = None if segment.sparse is None else segment.sparse[:count]
                log._segments.append(Segment(segment.start, segment.batch.part(0, count), sparse))
        return log, self.between(log.next, self.next)[1]

    def position_after(self, time: int, start: int = 0) -> int:
        """Return the least position from ``start`` on whose row is later than ``time``.

        ``next`` if there is none.
        """
        place = max(
            bisect_right(self._segments, time, key=_NEWEST),
            bisect_left(self._segments, start, key=_LAST),
        )
        if place == len(self._segments):
            return max(start, self.next)
        segment = self._segments[place]
        at = int(np.searchsorted(segment.batch.times, time, side="right"))
        return max(start, segment.start + at if segment.sparse is None else int(segment.sparse[at]))

    def count_until(self, times: Positions) -> Positions:
        """Return the number of rows up to each time, released rows included."""
        counts = np.full(
            len(times), self._segments[0].start if self._segments else self.next, np.int64
        )
        for segment in self._segments:
            at = np.searchsorted(segment.batch.times, times, side="right")
            counts = np.where(at > 0, segment.positions()[at - 1] + 1, counts)
        return counts

    def time_at(self, position: int) -> int:
        """Return the time of the held row at a position."""
        segment = self._segments[bisect_left(self._segments, position, key=_LAST)]
        return int(segment.batch.times[segment.rank(position)])

    def gather(self, positions: Positions, columns: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return the values of some columns at held positions, in the order asked for."""
        if not self._segments:
            assert not len(positions), "only held positions can be gathered"
            empty = empty_table(self.schema)
            return [empty.column(name) for name in columns]
        ranks = self.ranks(positions)
        whole = pa.concat_tables([segment.batch.rows for segment in self._segments])
        return [take(whole.column(name), ranks) for name in columns]

    def times(self, positions: Positions) -> Positions:
        """Return the times of the rows at held positions."""
        if not self._segments:
            assert not len(positions), "only held positions have times"
            return positions
        ranks = self.ranks(positions)
        if len(self._segments) == 1:
            found: Positions = self._segments[0].batch.times.take(ranks)
            return found
        return gather_numbers([segment.batch.times for segment in self._segments], ranks)

    def ranks(self, positions: Positions) -> Positions:
        """Return the number of held rows before each held position."""
        if not self._segments:
            assert not len(positions), "only held positions have ranks"
            return positions
        first = self._segments[0]
        if first.sparse is None:
            return positions - first.start
        return np.searchsorted(
            np.concatenate([segment.positions() for segment in self._segments]), positions
        )

    def trim(
        self, before: int, keep: Callable[[], Positions] | None = None, *, exactly: bool = False
    ) -> None:
        """Release rows before a position, except those at the positions of ``keep``.

        Segments go when all their rows may. Kept rows are copied together, and asked for, only once
        twice as many are held as were kept the last time, so trimming costs O(1) a row in all.
        ``exactly``: not a row more is held afterwards.
        """
        if exactly:
            self._cut(before)
        old = [segment for segment in self._segments if segment.last < before]
        if keep is None:
            del self._segments[: len(old)]
            self._kept = 0
            return
        if not exactly and sum(len(segment.batch) for segment in old) <= 2 * self._kept + _FEW:
            return
        positions = np.concatenate(
            [np.empty(0, np.int64), *(segment.positions() for segment in old)]
        )
        chosen = np.flatnonzero(np.isin(positions, keep()))
        kept = join_batches([segment.batch for segment in old], self.schema).take(chosen)
        del self._segments[: len(old)]
        self._kept = len(chosen)
        if len(chosen):
            self._segments.insert(0, Segment(int(positions[chosen[0]]), kept, positions[chosen]))

    def _cut(self, before: int) -> None:
        """Cut the segment in which a position lies in two."""
        for place, segment in enumerate(self._segments):
            if segment.sparse is None and segment.start < before <= segment.last:
                at = before - segment.start
                halves = (
                    Segment(segment.start, segment.batch.part(0, at)),
                    Segment(before, segment.batch.part(at, len(segment.batch))),
                )
                self._segments[place : place + 1] = halves
                return

    def rank(self, position: int) -> int:
        """Return the number of held rows before a position."""
        return sum(segment.rank(position) for segment in self._segments)

    def held(self) -> int:
        """Return the number of rows held."""
        return sum(len(segment.batch) for segment in self._segments)

    def nbytes(self) -> int:
        """Return the bytes of the held columns."""
        return sum(segment.batch.rows.nbytes for segment in self._segments)
