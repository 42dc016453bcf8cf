"""Levels of a shared join and their MaxQT; see :mod:`muntin.testing.schedules`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from muntin.testing.schedule_trace import Number, Ratio, Viewer, Windows


def max_throughput(edges: Sequence[Number], queries: Sequence[Number]) -> list[list[Ratio | None]]:
    """Return the matrix MaxQT.

    Entry ``[i][j - 1]`` is for a row that has finished ``i`` levels behind one that has finished
    ``j``.

    Parameters
    ----------
    edges : Sequence of numbers
        How far each level reaches, not decreasing.
    queries : Sequence of numbers
        How much the queries of each level count.

    Examples
    --------
    >>> [[str(ratio) for ratio in row] for row in max_throughput([2, 3, 6], [1, 1, 1])]
    [['1/2', '2/3', '2/3'], ['None', '1', '1'], ['None', 'None', '1/3']]
    """
    return [
        [_largest(edges, queries, done, limit) for limit in range(1, len(edges) + 1)]
        for done in range(len(edges))
    ]


def _largest(
    edges: Sequence[Number], queries: Sequence[Number], done: int, limit: int
) -> Ratio | None:
    start = edges[done - 1] if done else 0
    ratios = [
        _ratio(sum(queries[done:until]), edges[until - 1] - start)
        for until in range(done + 1, limit + 1)
    ]
    return max(ratios, default=None)


def _ratio(queries: Number, width: Number) -> Ratio:
    return Fraction(queries) / width if width else math.inf


@dataclass
class ActiveQuery:
    """A registered query: its first new row, its oldest visible partners, its front, held pairs."""

    viewer: Viewer
    since: int
    floors: tuple[int, int]
    front: int
    held: dict[int, list[int]] = field(default_factory=dict)


@dataclass
class QueryLevels:
    """The queries by their windows, the levels in order."""

    queries: list[ActiveQuery] = field(default_factory=list)

    @property
    def windows(self) -> list[Windows]:
        """Return the windows of each level, smallest first."""
        return sorted(
            {query.viewer.windows for query in self.queries},
            key=lambda windows: (sum(windows), windows),
        )

    def of(self, windows: Windows) -> list[ActiveQuery]:
        """Return the queries of a level."""
        return [query for query in self.queries if query.viewer.windows == windows]

    def wanted(self, outer: int) -> list[int]:
        """Return the levels that apply to an outer row."""
        return [
            level
            for level, windows in enumerate(self.windows)
            if any(query.since <= outer for query in self.of(windows))
        ]

    def edge(self, outer: int, level: int, stream: int) -> int:
        """Return the distance that an outer row has to scan in a stream to finish a level."""
        return max(
            (self.windows[each][stream] for each in self.wanted(outer) if each <= level), default=0
        )

    def largest(self, stream: int) -> int:
        """Return the largest window over a stream."""
        return max((windows[stream] for windows in self.windows), default=0)

    def matrix(self, stream: int, rate: Number) -> list[list[Ratio | None]]:
        """Return MaxQT for scans of a stream."""
        windows = self.windows
        edges = [
            rate * max(each[stream] for each in windows[: level + 1])
            for level in range(len(windows))
        ]
        counts = [sum(query.viewer.weight for query in self.of(each)) for each in windows]
        return max_throughput(edges, counts)
