"""Queries that failed while running: they hold no state, but their failure can be read.

A suspended query keeps its name, the results that were not polled yet, its last plan and its last
counts. For streams, joins and event time it is as if it had been dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from muntin.engine.figures import query_counts
from muntin.engine.inspector import Inspector
from muntin.engine.query_registry import QueryRegistry
from muntin.errors import MuntinError, QuerySuspendedError
from muntin.metrics.figures import QueryCounts
from muntin.plan.description import Description, Fact
from muntin.runtime.dataflow import Dataflow
from muntin.runtime.query_group import Running, reason_of

_log = logging.getLogger("muntin")


@dataclass(frozen=True)
class SuspendedQuery:
    """A query in the place of the running one that failed.

    ``reason`` is the failure in one line; the exception would keep the query's state alive.
    """

    name: str
    reason: str
    described: Description
    stats: Mapping[str, Any]
    counts: QueryCounts

    @classmethod
    def of(
        cls,
        running: Running,
        described: Description,
        stats: Mapping[str, object],
        counts: QueryCounts,
    ) -> SuspendedQuery:
        """Return a query that failed, with its last plan and counts."""
        failure = running.failure
        assert failure is not None, "only queries that failed are suspended"
        reason = reason_of(failure)
        suspended = Fact("suspended", reason, f"suspended: {reason}")
        buffers = dict.fromkeys(running.buffers(), 0)
        return cls(
            running.query.name,
            reason,
            replace(described, facts=(*described.facts, suspended)),
            {**stats, "suspended": reason, "buffers": buffers},
            counts,
        )

    @property
    def error(self) -> QuerySuspendedError:
        """Return the failure as users see it."""
        return QuerySuspendedError(self.name, self.reason)


class Suspender:
    """Suspends the queries of an engine that failed, and keeps their last plans and counts."""

    def __init__(self, dataflow: Dataflow, registry: QueryRegistry, inspector: Inspector) -> None:
        self._dataflow = dataflow
        self._registry = registry
        self._inspector = inspector

    def run(self) -> None:
        """Suspend failed queries: everything else continues as if they had been dropped."""
        while failed := self._dataflow.take_failed():
            for running in failed:
                entry = self._registry.find(running.query.name)
                described = self._inspector.describe(entry)
                stats = self._inspector.entry_stats(entry)
                counts = query_counts(self._dataflow, entry)
                suspended = SuspendedQuery.of(running, described, stats, counts)
                entry.suspended = suspended
                expected = isinstance(running.failure, MuntinError)
                _log.warning("%s", suspended.error, exc_info=None if expected else running.failure)
                self._dataflow.drop(running.query.name)
                self._registry.deliveries.end(running.query.name, suspended.error)
