"""An engine on Spark, as the web console sees it.

Micro-batches come from Spark's own list of its latest ones, each read once.
"""

from __future__ import annotations

import json
from collections import deque
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from muntin.console.source import Cancel, OnResults
from muntin.engine.console_source import check_query, details_of, relations_of, windows_of
from muntin.errors import InputError, RunError
from muntin.plan.explanation import Explanation
from muntin.spark.driver.engine_parts import EngineParts
from muntin.spark.exchange.marks import Mark, Once

_BUFFER = 4 << 20
"""Bytes of results that wait for the console."""
_BATCHES = 100


class ConsoleEngine(Protocol):
    """What the console uses of a :class:`muntin.spark.SparkEngine`."""

    partitions: int

    def query(self, sql: str, name: str | None = None) -> Any:
        """Register a query."""

    def drop(self, name: str) -> None:
        """Drop a query."""

    def explain(self, query: str | None = None) -> Explanation:
        """Return the plan of a query."""

    def exception(self) -> RunError | None:
        """Return the error that ended the last run."""


class SparkSource:
    """Implements :class:`muntin.console.source.ConsoleSource`."""

    kind = "spark"

    def __init__(
        self, engine: ConsoleEngine, parts: EngineParts, lock: AbstractContextManager[Any]
    ) -> None:
        self._engine = engine
        self._parts = parts
        self._lock = lock
        self._batches: deque[dict[str, Any]] = deque(maxlen=_BATCHES)
        self._run: str | None = None

    def snapshot(self) -> dict[str, Any]:
        """Return all counts; response times are those of the last batch."""
        parts = self._parts
        counts = parts.reports.counts()
        registered = list(parts.registry.queries.values())
        failure = self._engine.exception()
        self._take_batches()
        return {
            "running": parts.state.is_active,
            "run_failure": None if failure is None else str(failure),
            "watermark": counts["watermark"],
            "streams": [
                {
                    "name": name,
                    "rows_in": own["rows"],
                    "rows_late": own["late"],
                    "rows_ahead": own["ahead"],
                }
                for name, own in counts["streams"].items()
            ],
            "queries": [
                {
                    **counts["queries"][one.query.name],
                    "name": one.query.name,
                    "rows_out": counts["results"][one.query.name],
                    "response": _response(counts, one.query.name),
                    "windows": windows_of(one.query),
                }
                for one in registered
                if one.query.name in counts["queries"]
            ],
            "rows_held": counts["rows_held"],
            "bytes_held": counts["bytes_held"],
            "rebuilds": counts["rebuilds"],
            "batches": list(self._batches),
        }

    def _take_batches(self) -> None:
        """Read the batches that are new among Spark's latest."""
        streaming = self._parts.state.streaming
        if streaming is None:
            return
        if str(streaming.runId) != self._run:
            self._run = str(streaming.runId)
            self._batches.clear()
        known = {each["number"] for each in self._batches}
        new: list[dict[str, Any]] = []
        recent = streaming._jsq.recentProgress()  # noqa: SLF001 (as one text, see QueryState)
        for place in reversed(range(len(recent))):
            progress = json.loads(recent[place].json())
            if progress["batchId"] in known or len(new) == _BATCHES:
                break
            if "addBatch" in progress["durationMs"]:
                new.append(_batch(progress))
        self._batches.extend(reversed(new))

    def plans(self) -> list[dict[str, Any]]:
        """Return the plans of all queries."""
        return self._parts.reports.plans(self._engine.partitions)

    def details(self, name: str) -> dict[str, Any]:
        """Return the text, columns and explanation of a query."""
        query = self._parts.registry.find(name).query
        return {**details_of(query), "explain": str(self._engine.explain(name))}

    def relations(self) -> list[dict[str, Any]]:
        """Return the streams and tables."""
        return relations_of(self._parts.registry.declared.catalog)

    def check(self, sql: str, name: str | None) -> None:
        """Raise what adding a query would raise."""
        with self._lock:
            check_query(self._parts.registry.declared, sql, name)

    def add(self, sql: str, name: str | None) -> str:
        """Add a query, and wait for the batch that applies it."""
        added: str = self._engine.query(sql, name).name
        return added

    def drop(self, name: str) -> None:
        """Drop a query, and wait for the batch that applies it."""
        self._engine.drop(name)

    def answer(self, name: str) -> pa.Table:
        """Raise: answers are spread over partitions, and sinks have the results."""
        raise InputError(
            f"the answer of query {name} is not at hand: on Spark it is spread over partitions",
            hint="See its results, or read its sink",
        )

    def tap(self, name: str, on_results: OnResults) -> Cancel:
        """Call a function with the results of a query as partitions push them, each once."""
        once = Once()

        def take(results: pa.RecordBatch, mark: Mark) -> None:
            on_results(pa.Table.from_batches([once.new(results, mark)]))

        return self._parts.reports.subscribe(name, take, _BUFFER).cancel


def _response(counts: dict[str, Any], name: str) -> dict[str, Any] | None:
    count = counts["batch"]["results"].get(name, 0)
    times = counts["queries"][name]["batch_response_seconds"]
    return {"count": count, **times} if count else None


def _batch(progress: dict[str, Any]) -> dict[str, Any]:
    """Return what the timeline shows of a batch: when it began, and where its time went."""
    parts = dict(progress["durationMs"])
    return {
        "number": progress["batchId"],
        "at": progress["timestamp"],
        "rows": progress.get("numInputRows", 0),
        "milliseconds": parts.pop("triggerExecution", sum(parts.values())),
        "parts": parts,
    }
