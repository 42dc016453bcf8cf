"""The next instant at which time alone can change a result; heartbeats before it need no batch.

Three things happen although no row arrives: rows that wait become final, rows leave their time
windows, and queries with EVERY report at the next multiple. The instants returned here are never
too late, so skipping the moments before them loses nothing. They may be too early, which costs a
batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from muntin.model.settings import Settings
from muntin.model.window import TimeWindow, has_own_ends
from muntin.plan.query import Emit, Query
from muntin.planner.overload_plan import is_adapting
from muntin.runtime.dataflow import Dataflow
from muntin.runtime.holdings import closed, oldest_logged, oldest_waiting


def next_due(
    dataflow: Dataflow, queries: Iterable[tuple[Query, Settings]], newest: Mapping[str, int]
) -> int | None:
    """Return the first instant at which time alone can change results, or None.

    ``newest`` maps streams to the time of their newest row; streams without rows are absent.
    """
    waiting = oldest_waiting(dataflow)
    found = [] if waiting is None else [waiting]
    for query, settings in queries:
        due = _due_of(dataflow, query, settings, newest)
        if due is not None:
            found.append(due)
    return min(found, default=None)


def _due_of(
    dataflow: Dataflow, query: Query, settings: Settings, newest: Mapping[str, int]
) -> int | None:
    now = closed(dataflow)
    every = max(query.every or 0, settings.join.reevaluation or 0)
    windows = [
        (source.relation, _expiry(query, source.window))
        for source in query.sources
        if source.relation in newest
    ]
    if every:
        reported = query.emit is Emit.SNAPSHOT and bool(windows)
        pending = any(now <= newest[stream] + micros + every for stream, micros in windows)
        return (now // every + 1) * every if reported or pending else None
    own_ends = any(has_own_ends(source.window) for source in query.sources)
    if not query.is_join or is_adapting(settings) or (own_ends and query.emit is Emit.CHANGES):
        return (
            now + 1 if any(now <= newest[stream] + micros for stream, micros in windows) else None
        )
    if query.emit is Emit.INSERTS:
        return None
    instants = []
    for stream, micros in windows:
        # The first row that leaves, and the first one whose instant is not closed.
        arrived, left = (
            oldest_logged(dataflow, stream, now + 1),
            oldest_logged(dataflow, stream, now - micros),
        )
        instants += [] if arrived is None else [arrived]
        instants += [] if left is None or not micros else [left + micros]
    return min(instants, default=None)


def _expiry(query: Query, window: object) -> int:
    """Return the microseconds after which a row leaves its window with an effect on results.

    0 if it never has one.
    """
    plain = query.is_join and query.emit is Emit.INSERTS
    leaves = isinstance(window, TimeWindow) and (not window.is_landmark or window.until is not None)
    return window.micros if isinstance(window, TimeWindow) and leaves and not plain else 0
