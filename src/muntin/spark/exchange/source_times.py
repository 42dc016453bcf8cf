"""Event time by source: each partition of a topic has a newest time of its own.

The time of a stream is the least newest time of its active sources. So rows of a slow source are
not late because another one is ahead; rows of the others wait for it. A source counts from its
first row on, until a control row declares it idle, and again from its next row on.

All partitions of the engine decide alike: the newest times of all tasks come with every batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.model.clock import AFTER_ALL, BEFORE_ALL

Source: TypeAlias = tuple[str, str]
"""A stream and one of its sources, such as ``topic/partition``."""


@dataclass(frozen=True)
class SourceTimes:
    """The newest time of each source by stream, and the sources that are idle."""

    newest: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    idle: tuple[Source, ...] = ()

    def after(
        self,
        came: Mapping[str, Mapping[str, int]],
        idle: Iterable[Source],
        bounds: Mapping[str, int],
    ) -> SourceTimes:
        """Return the times after a batch in which rows ``came`` and sources were found ``idle``.

        Times beyond the bound of a stream are those of rows that are set aside; they do not count.
        """
        newest = {stream: dict(times) for stream, times in self.newest.items()}
        active = set()
        for stream, times in came.items():
            known = newest.setdefault(stream, {})
            for source, time in times.items():
                active.add((stream, source))
                if stream not in bounds or time <= bounds[stream]:
                    known[source] = max(known.get(source, BEFORE_ALL), time)
        now_idle = {*self.idle, *idle} - active
        return SourceTimes(newest, tuple(sorted(now_idle)))

    def peak(self, stream: str) -> int | None:
        """Return the newest time of any source of a stream; None if it has none."""
        return max(self.newest.get(stream, {}).values(), default=None)

    def reached(self, stream: str) -> int | None:
        """Return the least newest time of the active sources; the newest one if all are idle."""
        times = self.newest.get(stream, {})
        active = [time for source, time in times.items() if (stream, source) not in self.idle]
        return min(active, default=self.peak(stream))


def merge_newest(into: dict[str, int], times: Mapping[str, int]) -> None:
    """Raise the newest times of sources to those of further rows."""
    for source, time in times.items():
        into[source] = max(into.get(source, BEFORE_ALL), time)


def newest_by_source(sources: pa.ChunkedArray, times: npt.NDArray[np.int64]) -> dict[str, int]:
    """Return the newest valid time of the rows of each source."""
    table = pa.table({"source": sources, "time": times})
    valid = (times > BEFORE_ALL) & (times < AFTER_ALL)
    found = table.filter(pa.array(valid)).group_by("source").aggregate([("time", "max")])
    names, newest = found.column("source").to_pylist(), found.column("time_max").to_pylist()
    return dict(zip(names, newest, strict=True))
