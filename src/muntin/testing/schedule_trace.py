"""The input and the trace of a simulated scheduler; see :mod:`muntin.testing.schedules`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

Number: TypeAlias = int | Fraction
Ratio: TypeAlias = Fraction | float
"""Queries for candidates; a float only where it is infinite."""
Windows: TypeAlias = tuple[int, int]
"""The length of a query's window over each stream."""


@dataclass(frozen=True)
class ScheduleRow:
    """A row of stream 0 or 1; ``arrival`` is on the clock of the simulation, None for history."""

    stream: int
    time: int
    key: int | None
    arrival: Number | None = None


@dataclass(frozen=True)
class Viewer:
    """A query over the shared join; ``weight`` is how much it counts in MaxQT."""

    name: str
    windows: Windows
    weight: Number = 1


@dataclass(frozen=True)
class ViewerChange:
    """A query added or dropped just before row number ``before``, or after the last row."""

    before: int
    add: Viewer | None = None
    drop: str | None = None


@dataclass(frozen=True)
class Setup:
    """What is simulated.

    Parameters
    ----------
    rows : tuple of ScheduleRow
        In their total order, history first; arrivals do not decrease.
    queries : tuple of Viewer
        The queries at the start.
    changes : tuple of ViewerChange
        Queries that come and go, in order.
    counted : tuple of bool
        For each stream whether its windows count rows.
    buckets : int, optional
        Into how many buckets the hash tables spread keys; None is a nested-loop join.
    probe, result : int or Fraction
        What it costs to look at a candidate, and to make a result.
    slice : int, optional
        After how many candidates arrivals are looked at again in the middle of a scan.
    rates : tuple of int or Fraction
        For each stream, how many candidates a unit of its windows stands for in MaxQT.
    """

    rows: tuple[ScheduleRow, ...]
    queries: tuple[Viewer, ...]
    changes: tuple[ViewerChange, ...] = ()
    counted: tuple[bool, bool] = (False, False)
    buckets: int | None = None
    probe: Number = 1
    result: Number = 0
    slice: int | None = None
    rates: tuple[Number, Number] = (1, 1)

    @property
    def first(self) -> int:
        """Return the number of the first outer row."""
        return next(
            (number for number, row in enumerate(self.rows) if row.arrival is not None),
            len(self.rows),
        )

    def distance(self, outer: int, partner: int) -> int:
        """Return the distance of a row from an outer row, in the unit of its stream's windows."""
        return self.distance_at(outer, self.rows[outer].time, partner)

    def distance_at(self, before: int, time: int, partner: int) -> int:
        """Return the distance as of ``time``, when the rows numbered up to ``before`` are there."""
        stream = self.rows[partner].stream
        if self.counted[stream]:
            return sum(row.stream == stream for row in self.rows[partner + 1 : before])
        return time - self.rows[partner].time

    def floors(self, since: int, present: Sequence[tuple[Windows, Windows]]) -> tuple[int, int]:
        """Return for each stream the oldest row that a query still sees as of row ``since``.

        Queries are given by windows and floors.
        """
        floors = []
        for stream in (0, 1):
            time = self.rows[since - 1].time if since else 0
            seen = (
                number
                for number in range(since)
                for windows, before in present
                if self.rows[number].stream == stream
                and number >= before[stream]
                and self.distance_at(since, time, number) < windows[stream]
            )
            floors.append(next(seen, since))
        return floors[0], floors[1]

    def matches(self, outer: int, partner: int) -> bool:
        """Return whether two rows satisfy the join condition."""
        return self.rows[outer].key is not None and self.rows[outer].key == self.rows[partner].key


@dataclass(frozen=True)
class FoundPair:
    """The join part found a pair."""

    time: Number
    outer: int
    partner: int


@dataclass(frozen=True)
class ReleasedPair:
    """The router gave a pair to a query."""

    time: Number
    query: str
    outer: int
    partner: int


@dataclass(frozen=True)
class ScanStep:
    """A scan of candidates for a level.

    Begin and end, how many, where it continues, and whether the level is finished.
    """

    begin: Number
    time: Number
    outer: int
    windows: Windows
    candidates: int
    resume: int | None
    finished: bool
    held: tuple[tuple[str, int, int], ...]
    """What the router holds afterwards: (query, outer, partner)."""
    waiting: tuple[tuple[int, ...], ...]
    """The rows in each queue afterwards."""


TraceStep: TypeAlias = FoundPair | ReleasedPair | ScanStep


@dataclass
class Trace:
    """All events in order, and the largest numbers of stored rows, waiting rows and held pairs."""

    setup: Setup
    steps: list[TraceStep] = field(default_factory=list)
    most_stored: int = 0
    most_waiting: int = 0
    most_held: int = 0

    @property
    def schedule(self) -> list[tuple[int, Windows]]:
        """Return which row scanned for which windows, in order."""
        return [(step.outer, step.windows) for step in self.steps if isinstance(step, ScanStep)]

    def output(self, query: str) -> list[tuple[int, int]]:
        """Return the pairs that a query got, in order."""
        return [(step.outer, step.partner) for step in self.released(query)]

    def released(self, query: str) -> list[ReleasedPair]:
        """Return the pairs released to a query, in order."""
        return [
            step for step in self.steps if isinstance(step, ReleasedPair) and step.query == query
        ]

    def response_times(self, query: str) -> list[Number]:
        """For each result of a query the time from the arrival of its newer row to its release."""
        arrivals = [row.arrival or 0 for row in self.setup.rows]
        return [step.time - arrivals[step.outer] for step in self.released(query)]
