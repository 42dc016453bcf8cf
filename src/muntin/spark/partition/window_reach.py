"""How far back the windows of queries reach, which decides how long batches are retained."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from muntin.engine.declaration_checks import SINK_OPTIONS
from muntin.model.settings import Settings
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow
from muntin.plan.query import Emit, Query
from muntin.planner.overload_plan import is_adapting
from muntin.spark.exchange.deployment import PlacedQuery

_CYCLES = 3
"""Cycles of event time that are replayed before those that count."""


@dataclass(frozen=True)
class WindowReach:
    """How far back windows reach into a stream: microseconds, rows, or without end.

    ``every`` is how long results may wait.
    """

    micros: int = 0
    rows: int = 0
    forever: bool = False
    every: int = 0

    def times(self, number: int) -> WindowReach:
        """Return a reach that is ``number`` times as far."""
        return replace(self, micros=number * self.micros, rows=number * self.rows)

    def with_window(self, window: object, every: int) -> WindowReach:
        """Return the reach with one more window, of a query with this EVERY."""
        known = replace(self, every=max(self.every, every))
        if isinstance(window, TimeWindow) and (window.is_landmark or window.session):
            return replace(known, forever=True)
        if isinstance(window, TimeWindow):
            return replace(known, micros=max(self.micros, window.micros))
        if isinstance(window, RowsWindow):
            return replace(known, rows=max(self.rows, window.rows))
        assert isinstance(window, PartitionedWindow), "a stream has one of three windows"
        return replace(known, forever=True)

    def joined(self, other: WindowReach) -> WindowReach:
        """Return the reach of both."""
        return WindowReach(
            max(self.micros, other.micros),
            max(self.rows, other.rows),
            self.forever or other.forever,
            max(self.every, other.every),
        )

    def covers(self, other: WindowReach) -> bool:
        """Return whether it reaches at least as far."""
        return self.forever or (
            not other.forever and self.micros >= other.micros and self.rows >= other.rows
        )


def reach_of(queries: Iterable[PlacedQuery]) -> dict[tuple[int, str], WindowReach]:
    """Return the reach of queries into every stream under every partitioning."""
    found: dict[tuple[int, str], WindowReach] = {}
    for placed in queries:
        for stream in placed.streams:
            key = (placed.partitioning_number, stream)
            found[key] = reach_into(stream, placed, found.get(key, WindowReach()))
    return found


def reach_into(stream: str, placed: PlacedQuery, known: WindowReach) -> WindowReach:
    """Return the reach into a stream with the windows of one more query."""
    settings = settings_of(placed)
    every = max(placed.query.every or 0, settings.join.reevaluation or 0)
    for join in placed.query.joins if is_adapting(settings) else ():
        known = known.joined(_limited_reach(stream, join, settings, every))
    for source in placed.query.sources:
        known = known.with_window(source.window, every) if source.relation == stream else known
    return known


def _limited_reach(stream: str, join: Query, settings: Settings, every: int) -> WindowReach:
    """Return the reach of a limited join into a stream.

    In a limited join of k streams, whether a partial match of n members may probe depends on those
    of n - 1 members that came in its cycle, and these on others up to a window before. So the
    choices are nearly the same when the rows of k - 1 windows are replayed. The number expected in
    a cycle, and the remainder of a limit, depend on the cycle before. Where matches are retracted
    later, choices have to be the same, so all batches since a snapshot are kept.
    """
    fresh, own = dict(join.freshness), WindowReach()
    for place, source in enumerate(join.sources):
        if source.relation == stream:
            own = own.with_window(fresh.get(place, source.window), every)
    if own == WindowReach():
        return own
    if join.emit is Emit.CHANGES:
        return replace(own, forever=True)
    own = own.times(max(len(join.sources) - 1, 1))
    return replace(own, micros=own.micros + _CYCLES * settings.overload.period)


def settings_of(placed: PlacedQuery) -> Settings:
    """Return the settings of a query: those at its registration, and its options."""
    return Settings.of(**placed.registered.settings).of_query(placed.query.options, SINK_OPTIONS)
