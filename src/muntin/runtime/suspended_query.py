"""Queries that failed while running: they hold no state, but answer for what happened.

A suspended query keeps its name, the results that were not polled yet, its last plan and its last
counts. For streams, joins and event time it is as if it had been dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from muntin.errors import MuntinError, QuerySuspendedError
from muntin.expressions.salvage import first_line
from muntin.plan.description import Description, Fact
from muntin.plan.query import Query
from muntin.runtime.metrics import ResponseTimes
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.runtime.running_query import RunningQuery


class SuspendedQuery:
    """A query in the place of the running one that failed; made while that one can still be read."""

    def __init__(
        self,
        running: RunningQuery | RunningPipeline,
        described: Description,
        stats: Mapping[str, object],
    ) -> None:
        failure = running.failure
        assert failure is not None, "only queries that failed are suspended"
        self.query: Query = running.query
        self.keeps = True
        self.reason = reason_of(failure)
        """Why the query failed, in one line; the failure itself would keep the query's state alive."""
        suspended = Fact("suspended", self.reason, f"suspended: {self.reason}")
        self.described = replace(described, facts=(*described.facts, suspended))
        self._stats = {**stats, "suspended": self.reason}
        self._buffers = dict.fromkeys(running.buffers(), 0)
        self._results = running.poll()

    @property
    def error(self) -> QuerySuspendedError:
        """The failure as users see it."""
        return QuerySuspendedError(self.query.name, self.reason)

    def poll(self) -> pa.Table:
        """Return the results from before the failure; once they are taken, raise the failure."""
        results, self._results = self._results, self._results.slice(0, 0)
        if not len(results):
            raise self.error
        return results

    def put_back(self, results: pa.Table) -> None:
        """Take results back that nobody got."""
        self._results = results

    def answer(self) -> pa.Table:
        """Raise the failure: there are no windows any more."""
        raise self.error

    def stats(self) -> dict[str, object]:
        """Return the counts at the time of the failure."""
        waiting = {"rows_waiting_for_poll": len(self._results), "buffers": self.buffers()}
        return {
            **self._stats,
            **{name: value for name, value in waiting.items() if name in self._stats},
        }

    def buffers(self) -> dict[str, int]:
        """Return the sizes of buffers: only results that were not polled yet remain."""
        return {**self._buffers, "output": len(self._results)}

    def take_response_times(self) -> ResponseTimes:
        """Return no response times: it responds to nothing."""
        return ResponseTimes()

    def came_before(self) -> dict[str, int]:
        """Return zero for each stream: no row belongs to it."""
        return {source.relation: 0 for source in self.query.sources if not source.stored}

    def let_come_before(self, counts: Mapping[str, int]) -> None:
        """Do nothing: it takes no rows."""


def reason_of(failure: BaseException) -> str:
    """Return a failure in one line; the type of an unexpected one is part of it."""
    if isinstance(failure, MuntinError):
        return failure.fact
    return f"{type(failure).__name__}: {first_line(failure)}"
