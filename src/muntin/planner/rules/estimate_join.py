"""Rule: estimate rates, windows and selectivities, if something is known of every stream.

Measured statistics come before declared ones. Without either no choice is made by cost. Sound
because estimates decide only between plans with the same results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from muntin.model.clock import SECOND
from muntin.model.statistics import JoinStatistics, SourceStatistics, StreamStatistics
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow
from muntin.plan.query import Query
from muntin.planner.draft import JoinDraft
from muntin.planner.index_settings import given_buckets, indexed_sources
from muntin.planner.join_graph import JoinGraph
from muntin.planner.predicates import SortedPredicates

_UNKNOWN_TABLE = 1_000.0
"""Rows of a stored table, as far as a plan can know before there is data."""
_LANDMARK = 86_400 * SECOND
"""The length of a landmark window, whose rows never leave, before there is data: a day."""


def estimate_join(draft: JoinDraft) -> JoinDraft:
    """Build the join graph with its statistics."""
    statistics = draft.known.measured or _declared(
        draft.query, draft.parts, draft.known.declared or {}
    )
    if statistics is None:
        return draft
    indexed = indexed_sources(draft.query, draft.settings)
    buckets = tuple(
        (number or 0) if place in indexed else 1
        for place, number in enumerate(given_buckets(draft.query, draft.settings))
    )
    classes = tuple(sorted(set(draft.classes.values()), key=sorted))
    graph = JoinGraph(statistics, classes, tuple(draft.parts.comparisons), buckets)
    return replace(draft, graph=graph)


def _declared(
    query: Query, parts: SortedPredicates, declared: Mapping[str, StreamStatistics]
) -> JoinStatistics | None:
    """Return the declared statistics; None if a stream has none."""
    sources = []
    for place, source in enumerate(query.sources):
        codes = len(parts.codes.codes[place])
        stream = declared.get(source.relation)
        if source.stored:
            sources.append(SourceStatistics(0.0, _UNKNOWN_TABLE, (_UNKNOWN_TABLE,) * codes))
            continue
        if stream is None:
            return None
        if isinstance(source.window, TimeWindow):
            rows = stream.rate * min(source.window.micros, _LANDMARK) / SECOND
        elif isinstance(source.window, PartitionedWindow):
            rows = source.window.rows * stream.distinct
        else:
            assert isinstance(source.window, RowsWindow), "a stream has one of three windows"
            rows = float(source.window.rows)
        sources.append(SourceStatistics(stream.rate, rows, (stream.distinct,) * codes))
    return JoinStatistics(tuple(sources))
