"""Limit how far one row may move event time ahead: the setting ``max_advance``.

A row further ahead of its stream than the limit is almost always garbage, and time that has moved
never moves back: taking it would make every later row late. Such rows are set aside. Because the
garbage may also be the *old* row that came first, the tenth of ten consecutive rows that are too
far ahead is taken, and the stream continues from there.

The decision depends on the order of rows alone, not on a clock or on how rows are cut into pushes.
On Spark no order exists between the tasks of a batch, so there a batch is decided as a unit, from
the segments of its times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from muntin.model.arrays import Mask
from muntin.model.clock import BEFORE_ALL

Times: TypeAlias = npt.NDArray[np.int64]
Segment: TypeAlias = tuple[int, int, int]
"""Times without a gap longer than the limit: the first, the last, and how many rows."""

PATIENCE = 10
"""The number of consecutive rows too far ahead of which the last is taken."""
_PIECE = 256


@dataclass
class AdvanceLimit:
    """The state of the decision for one stream.

    The newest time taken, and how many rows in a row were ahead.
    """

    newest: int = BEFORE_ALL
    ahead: int = 0

    def take(self, times: Times, limit: int | None, reached: int) -> Mask | None:
        """Take rows in order of arrival; return which of them are in range, or None if all are.

        ``reached`` is the instant to which event time was advanced; rows count from there if that
        is later than the newest row. The first row of a stream is always in range.
        """
        if not len(times):
            return None
        newest = int(times.max())
        first = self.newest == BEFORE_ALL
        reference = max(int(times[0]) if first else self.newest, reached)
        if limit is None or newest <= reference + limit:
            self.newest, self.ahead = max(self.newest, newest), 0
            return None
        inside = np.ones(len(times), bool)
        place = int(first)
        if first:
            self.newest = int(times[0])
        while place < len(times):
            place = self._take_run(times, place, limit, reached, inside)
        return None if inside.all() else inside

    def _take_run(self, times: Times, start: int, limit: int, reached: int, inside: Mask) -> int:
        """Take the rows in range from ``start`` on, and the run of rows ahead after them.

        Returns where that run ends.

        Pieces double, so a run costs as much as it is long.
        """
        size, place = _PIECE, start
        while place < len(times):
            piece = times[place : place + size]
            before = np.maximum.accumulate(np.append(max(self.newest, reached), piece[:-1]))
            beyond = piece > before + limit
            stop = int(beyond.argmax()) if beyond.any() else len(piece)
            if stop:
                self.newest, self.ahead = max(self.newest, int(piece[:stop].max())), 0
            place += stop
            if stop < len(piece):
                break
            size *= 2
        run = times[place : place + PATIENCE - self.ahead]
        back = run <= max(self.newest, reached) + limit
        stop = int(back.argmax()) if back.any() else len(run)
        inside[place : place + stop] = False
        self.ahead += stop
        place += stop
        if self.ahead == PATIENCE:
            inside[place - 1] = True
            self.newest, self.ahead = int(times[place - 1]), 0
        return place

    def take_batch(
        self, segments: Iterable[Segment], limit: int | None, reached: int
    ) -> int | None:
        """Take a batch as a unit; return the newest time that is in range, or None if all are.

        A segment is in range when it begins within the limit of all before it. A batch without
        any such rows counts as rows ahead; once there were enough, its lowest segment is taken.
        """
        found = merge_segments(segments, limit)
        if not found:
            return None
        if limit is None:
            self.newest = max(self.newest, found[-1][1])
            return None
        if self.newest == BEFORE_ALL:
            self.newest = found[0][0]
        if found[0][0] > max(self.newest, reached) + limit:
            self.ahead += sum(rows for _, _, rows in found)
            if self.ahead < PATIENCE:
                return max(self.newest, reached)
            self.newest = found[0][0]
        self.ahead = 0
        for first, last, _ in found:
            if first > max(self.newest, reached) + limit:
                return max(self.newest, reached)
            self.newest = max(self.newest, last)
        return None


def segments_of(times: Times, limit: int | None) -> list[Segment]:
    """Return the segments of times in any order; nearly always there is one."""
    if not len(times):
        return []
    first, last = int(times.min()), int(times.max())
    if limit is None or last - first <= limit:
        return [(first, last, len(times))]
    ordered = np.sort(times)
    starts = np.append(0, np.flatnonzero(ordered[1:] - ordered[:-1] > limit) + 1)
    stops = np.append(starts[1:], len(ordered))
    return [
        (int(ordered[start]), int(ordered[stop - 1]), int(stop - start))
        for start, stop in zip(starts, stops, strict=True)
    ]


def merge_segments(segments: Iterable[Segment], limit: int | None) -> list[Segment]:
    """Return the segments of all rows together, in order."""
    merged: list[Segment] = []
    for first, last, rows in sorted(segments):
        if merged and (limit is None or first - merged[-1][1] <= limit):
            start, stop, count = merged[-1]
            merged[-1] = (start, max(stop, last), count + rows)
        else:
            merged.append((first, last, rows))
    return merged


def pack_segments(segments: Sequence[Segment]) -> bytes:
    """Return segments as bytes."""
    return np.array(segments, np.int64).tobytes()


def unpack_segments(blob: bytes) -> list[Segment]:
    """Return the segments that :func:`pack_segments` was given."""
    return [
        (int(first), int(last), int(rows))
        for first, last, rows in np.frombuffer(blob, np.int64).reshape(-1, 3)
    ]
