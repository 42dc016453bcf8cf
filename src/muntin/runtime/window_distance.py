"""The distances of the rows of a match: which smaller windows contain it, and when it ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from muntin.model.window import TimeWindow
from muntin.operators.join import Matches
from muntin.plan.query import Query
from muntin.runtime.log_cursors import LogCursors

Integers = npt.NDArray[np.int64]
NarrowWindows = tuple[tuple[int, int], ...]
"""Windows that are smaller than the join's, as pairs of source and size."""


class WindowDistances:
    """Measures distances in microseconds or in rows of a stream, as the window of each source does.

    A window contains the rows whose distance is less than its size.
    """

    def __init__(self, query: Query, cursors: LogCursors) -> None:
        self._cursors = cursors
        self._in_time = [isinstance(source.window, TimeWindow) for source in query.sources]

    def ends(self, matches: Matches, sizes: Sequence[int]) -> Integers:
        """Return when matches end under time windows of these sizes: when their first row leaves.

        Rows of stored tables never leave.
        """
        streams = [
            (source, size)
            for source, size in enumerate(sizes)
            if self._cursors.stream_of[source] is not None
        ]
        # With one stream the time of a match is that of its row.
        times = (
            [matches.times]
            if len(streams) == 1
            else [self.times(source, matches.positions[source]) for source, _ in streams]
        )
        found: Integers = np.minimum.reduce(
            [own + size for own, (_, size) in zip(times, streams, strict=True)]
        )
        return found

    def narrowing(self, now: int | None = None) -> Narrowing:
        """Return a filter of matches by smaller windows.

        Windows end with the newest row of each match; with ``now``, at that instant.
        """
        return Narrowing(self, now)

    def distance(self, matches: Matches, now: int | None, source: int) -> Integers:
        """Return how far each row of a source is behind the newest row of its match, or ``now``."""
        positions = matches.positions[source]
        stream = self._cursors.stream_of[source]
        assert stream is not None, "stored tables have no windows"
        if self._in_time[source]:
            instants = matches.times if now is None else np.full(len(matches), now)
            age: Integers = np.subtract(instants, self.times(source, positions))
            return age
        there = (
            self._counted(matches, stream)
            if now is None
            else np.full(len(matches), self._cursors.read[stream])
        )
        behind: Integers = np.subtract(there, positions + 1)
        return behind

    def fresh(self, matches: Matches, ages: NarrowWindows, present: Sequence[int]) -> Matches:
        """Return the matches whose rows are younger than an age at the present of their source."""
        masks = []
        for source, age in ages:
            own, limit = matches.positions[source], present[source] - age
            if self._in_time[source]:
                masks.append(self.times(source, own) > limit)
            else:
                masks.append(own >= limit)
        keep = np.logical_and.reduce(masks)
        return matches if keep.all() else matches.where(keep)

    def times(self, source: int, positions: Integers) -> Integers:
        """Return the times of rows of a source that is a stream."""
        return self._cursors.streams[self._cursors.stream_of[source] or 0].log.times(positions)

    def _counted(self, matches: Matches, stream: int) -> Integers:
        """Return how many rows of a stream there were when the newest row of each match came.

        That row counts. Streams are numbered in the order in which rows of one instant stand.
        """
        newest = np.full(len(matches), -1, np.int64)
        place = np.full(len(matches), -1, np.int64)
        for source, number in enumerate(self._cursors.stream_of):
            if number is None:
                continue
            own = matches.positions[source]
            latest = (self.times(source, own) == matches.times) & (number >= newest)
            place = np.where(latest, np.where(number > newest, own, np.maximum(place, own)), place)
            newest = np.where(latest, number, newest)
        log = self._cursors.streams[stream].log
        there = np.where(
            newest > stream, log.count_until(matches.times), log.count_until(matches.times - 1)
        )
        return np.where(newest == stream, place + 1, there)


class Narrowing:
    """Filters one batch of matches by smaller windows; computes each source's distances once."""

    def __init__(self, distances: WindowDistances, now: int | None) -> None:
        self._distances = distances
        self._now = now
        self._known: dict[int, Integers] = {}

    def apply(self, narrow: NarrowWindows, matches: Matches) -> Matches:
        """Return the matches whose rows are inside smaller windows."""
        if not narrow:
            return matches
        for source, _ in narrow:
            if source not in self._known:
                self._known[source] = self._distances.distance(matches, self._now, source)
        return matches.where(
            np.logical_and.reduce([self._known[source] < size for source, size in narrow])
        )
