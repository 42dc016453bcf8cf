"""The state of a query on Spark: whether it runs, its ids, its recent progress and its results.

All queries of an engine run in one streaming query of Spark, whose progress covers all of them. The
progress of a single query has Spark's part as it is, and our counts of this query alone.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame

from muntin.errors import InputError, QuerySuspendedError
from muntin.spark.driver.output_writer import OutputWriter
from muntin.spark.driver.registry import RegisteredQuery, SparkRegistry
from muntin.spark.driver.run_state import RunState

_IDS = uuid.UUID("5b0f1a52-6f0e-4a53-9d1c-2f5a7c0e8b64")
"""The namespace of the ids of queries."""
_RECENT = 100
"""How many batches the recent progress covers at most, as in Spark."""


class QueryState:
    """The state of one registration: a name that is registered again has another one."""

    def __init__(
        self,
        registered: RegisteredQuery,
        run: RunState,
        registry: SparkRegistry,
        writer: OutputWriter,
    ) -> None:
        self.name = registered.query.name
        self._registered = registered
        self._run = run
        self._registry = registry
        self._writer = writer
        self._id: str | None = None
        self._run_id: str | None = None

    def is_registered(self) -> bool:
        """Return whether the query has not been dropped."""
        return self._registry.queries.get(self.name.casefold()) is self._registered

    def is_active(self) -> bool:
        """Return whether the engine runs and the query is neither dropped nor suspended."""
        return self.is_registered() and self._run.is_active and self.suspension() is None

    def id(self) -> str | None:
        """Return the id, which restarts from the same checkpoint keep.

        It is None before the first start, which finds out whether the checkpoint has the query.
        """
        if self.is_registered():
            self._id = query_ids(self._run, [self._registered]).get(self.name)
        return self._id

    def run_id(self) -> str | None:
        """Return the id of the query in the last run of the engine; None before the first start."""
        own, streaming = self.id(), self._run.streaming
        if self.is_registered() and own is not None and streaming is not None:
            self._run_id = query_run_id(str(streaming.runId), own)
        return self._run_id

    def suspension(self) -> QuerySuspendedError | None:
        """Return the error of a suspended query; None if it is not suspended."""
        if not self.is_registered():
            return None
        incarnation = _incarnations(self._run, [self._registered]).get(self.name)
        return None if incarnation is None else self._writer.suspension(incarnation)

    def status(self) -> dict[str, Any]:
        """Return what the query does now, in the form of Spark's status."""
        suspended, streaming = self.suspension(), self._run.streaming
        if not self.is_registered():
            message = "Dropped"
        elif suspended is not None:
            message = f"Suspended: {suspended.reason}"
        elif streaming is None:
            message = "Not started"
        else:
            return dict(streaming.status)
        return {"message": message, "isDataAvailable": False, "isTriggerActive": False}

    def check_registered(self) -> None:
        """Raise if the query has been dropped."""
        if not self.is_registered():
            raise self._registry.declared.unknown_query(self.name)

    def table(self) -> DataFrame:
        """Return all results so far; raise if the sink cannot be read back."""
        self.check_registered()
        sink, query = self._registered.sink, self._registered.query
        found = sink.read_back(self._registry.sinks.spark, query.output_schema)
        if found is None:
            raise InputError(
                f"the sink of query {self.name} ({self._registered.deployed.sink}) cannot be "
                "read back",
                hint="Use sink='memory' or a format that writes files, such as parquet",
            )
        return found

    # -- progress --------------------------------------------------------------------------------

    def last_progress(self) -> dict[str, Any] | None:
        """Return the progress of the last batch of the current run; None before it."""
        return next(self._latest_first(), None)

    def recent_progress(self) -> list[dict[str, Any]]:
        """Return the progress of the last batches of the current run, from old to new."""
        return list(islice(self._latest_first(), _RECENT))[::-1]

    def _latest_first(self) -> Iterator[dict[str, Any]]:
        """Yield the progress of the batches in which the query was registered.

        Triggers without a batch also have a progress in Spark, under the number of the next batch.
        """
        streaming = self._run.streaming
        own = self._counts_by_batch()
        recent = [] if streaming is None else streaming._jsq.recentProgress()  # noqa: SLF001
        for place in reversed(range(len(recent))):
            # As one text: PySpark asks Java for each number separately.
            progress = json.loads(recent[place].json())
            if "addBatch" in progress["durationMs"] and progress["batchId"] in own:
                yield own_progress(progress, own[progress["batchId"]], self.name)

    def _counts_by_batch(self) -> dict[int, dict[str, Any]]:
        """Return the counts after Spark's recent micro-batches in which the query ran."""
        own = self.id()
        return {
            batch: counts
            for batch, counts in self._writer.metrics.all_noted()
            if self.name in counts["queries"] and counts["queries"][self.name]["id"] == own
        }


def own_progress(
    progress: Mapping[str, Any], counts: Mapping[str, Any], name: str
) -> dict[str, Any]:
    """Return the progress of one query in a batch, of which ``counts`` are those after it."""
    stats = stats_of(counts, name)
    return {
        **progress,
        "id": stats["id"],
        "runId": query_run_id(progress["runId"], stats["id"]),
        "name": name,
        "batchId": counts["batch"]["number"],
        "sink": {
            "description": stats["sink"],
            "numOutputRows": counts["batch"]["results"][name],
        },
        "muntin": stats,
    }


def stats_of(counts: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the counts of one query among those of all."""
    results = counts["results"][name]
    return {"query": name, "results": results, "rows_out": results, **counts["queries"][name]}


def query_run_id(run: str, own: str) -> str:
    """Return the id of a query in a run of Spark's streaming query.

    Listeners tell runs apart by their ids, and the queries of an engine start and end at different
    times, so they do not share the one of the streaming query.
    """
    return str(uuid.uuid5(_IDS, f"{run} {own}"))


def query_ids(run: RunState, queries: Iterable[RegisteredQuery]) -> dict[str, str]:
    """Return the ids of queries by name; none before the first start."""
    found = _incarnations(run, queries)
    return {name: str(uuid.uuid5(_IDS, incarnation)) for name, incarnation in found.items()}


def _incarnations(run: RunState, queries: Iterable[RegisteredQuery]) -> dict[str, str]:
    """Return the incarnations of queries by name; those of resumed queries are in the checkpoint.

    None before the first start, which compares the queries with those of the checkpoint.
    """
    if run.deployment is None:
        return {}
    resumed = {
        query.name: query.incarnation
        for query in run.deployment.in_force()
        if query.name not in run.dropped
    }
    return {
        one.query.name: resumed.get(one.query.name, one.deployed.incarnation) for one in queries
    }
