"""The cursors of a join in the logs of its streams.

Invariant: the positions that were read form a prefix of the total order, cut only where times
change. So every slice that is taken contains all rows of its instants that are final.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from muntin.model.clock import BEFORE_ALL
from muntin.plan.query import Query
from muntin.runtime.stream_input import StreamInput

Slices = Iterator[tuple[list[int], int]]
"""Up to which position of each stream to read, and the time that this leads to."""


class LogCursors:
    """One cursor per stream that a query's join reads, in the order of declaration."""

    def __init__(self, query: Query, streams: Sequence[StreamInput]) -> None:
        self.streams = sorted(streams, key=lambda state: state.stream.order)
        self.read = [state.log.next for state in self.streams]
        """The position of the next row of each stream."""
        self.rows_in = 0
        numbers = {name: number for number, name in enumerate(self.names())}
        self.stream_of = [
            None if source.stored else numbers[source.relation] for source in query.sources
        ]
        """The number of the stream of each source; None for a stored table."""

    def names(self) -> list[str]:
        """Return the names of the streams."""
        return [state.stream.name for state in self.streams]

    def newest(self) -> int:
        """Return the newest time that has come on any of the streams."""
        return max((state.newest for state in self.streams), default=BEFORE_ALL)

    def counts(self) -> list[int]:
        """Return how many rows of each stream are final."""
        return [state.log.next for state in self.streams]

    def positions(self) -> list[tuple[StreamInput, int]]:
        """Return the streams, and up to which position each was read."""
        return list(zip(self.streams, self.read, strict=True))

    def slices(self, since: int, now: int, most: int) -> Slices:
        """Yield up to which positions to read, and the time that this leads to, up to ``now``.

        ``since`` is the time that was reached. Of no stream more than about ``most`` rows come at
        once. Slices follow each other, so one must be taken before the next is asked for.
        """
        ends = [state.log.position_after(now, read) for state, read in self.positions()]
        return self._slices_to(ends, since, now, most)

    def slices_of_all(self, since: int, now: int, most: int) -> Slices:
        """Yield the same for all rows that are final, which is more than those up to ``now``."""
        return self._slices_to(self.counts(), since, now, most)

    def _slices_to(self, ends: list[int], since: int, now: int, most: int) -> Slices:
        if now <= since and ends == self.read:
            return
        while True:
            left = [end - read for end, read in zip(ends, self.read, strict=True)]
            widest = int(np.argmax(left))
            if left[widest] <= most:
                yield ends, max(now, since)
                return
            until = self.streams[widest].log.time_at(self.read[widest] + most - 1)
            cut = [state.log.position_after(until, read) for state, read in self.positions()]
            yield [min(stop, end) for stop, end in zip(cut, ends, strict=True)], until
            since = max(since, until)

    def move(self, stops: Sequence[int]) -> None:
        """Note that all rows up to some positions were read."""
        self.rows_in += sum(stops) - sum(self.read)
        self.read = list(stops)
