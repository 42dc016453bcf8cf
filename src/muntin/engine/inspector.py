"""The plans and counts of an engine's queries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from muntin.engine.explain import describe_query
from muntin.engine.explain_pipeline import describe_running_pipeline
from muntin.engine.fair_lock import FairLock
from muntin.engine.figures import read_figures
from muntin.engine.notebook import engine_html, query_html
from muntin.engine.query_registry import QueryEntry, QueryRegistry
from muntin.metrics.figures import EngineFigures
from muntin.model.clock import BEFORE_ALL, format_instant
from muntin.plan.description import Description, to_dict
from muntin.plan.explanation import Explanation
from muntin.runtime.dataflow import Dataflow
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.runtime.stalled_stream import Waiting, describe_waiting
from muntin.runtime.stream_input import StreamState


def _instant(micros: int) -> str | None:
    return None if micros <= BEFORE_ALL else format_instant(micros)


class Inspector:
    """Reads plans and counts under the engine's lock."""

    def __init__(self, lock: FairLock, dataflow: Dataflow, registry: QueryRegistry) -> None:
        self._lock = lock
        self._dataflow = dataflow
        self._registry = registry

    def explain(self, name: str | None) -> Explanation:
        """Return the plans of one query or of all as trees."""
        with self._lock:
            chosen = self._registry.entries() if name is None else [self._registry.find(name)]
            return Explanation(map(self.describe, chosen))

    def engine_html(self) -> str:
        """Return what a notebook shows of the engine."""
        stats = self.stats()
        with self._lock:
            texts = {entry.query.name: entry.query.text for entry in self._registry.entries()}
        return engine_html(stats, texts)

    def query_html(self, name: str) -> str:
        """Return what a notebook shows of a query."""
        with self._lock:
            entry = self._registry.find(name)
            explained = Explanation([self.describe(entry)])
            return query_html(
                entry.query.name, entry.query.text, self.entry_stats(entry), explained
            )

    def plan(self, name: str) -> dict[str, object]:
        """Return the plan of a query as nested dicts and lists."""
        with self._lock:
            return to_dict(self.describe(self._registry.find(name)))

    def describe(self, entry: QueryEntry) -> Description:
        """Return the plan of a query, with the stream it waits for; a lone query shares nothing."""
        if entry.suspended is not None:
            return entry.suspended.described
        running = self._dataflow.queries[entry.query.name]
        joins = self._dataflow.group_of(entry.query.name).joins
        if isinstance(running, RunningPipeline):
            node = describe_running_pipeline(running, joins.why)
        else:
            node = describe_query(running, joins.why(running) if len(self._registry) > 1 else "")
        waiting = self._waiting(entry)
        if waiting is None:
            return node
        return replace(node, children=(*node.children, describe_waiting(waiting)))

    def _waiting(self, entry: QueryEntry) -> Waiting | None:
        """Return the stream that a query waits for, and since when."""
        return entry.waits_for(self._dataflow.group_of(entry.query.name))

    def stats(self) -> dict[str, object]:
        """Return the counts of all streams and queries, and the least watermark."""
        with self._lock:
            return {
                "watermark": _instant(self._dataflow.groups.frontier()[0]),
                "streams": {
                    name: self._stream_stats(state)
                    for name, state in self._dataflow.streams.items()
                },
                "queries": {
                    entry.query.name: self.entry_stats(entry) for entry in self._registry.entries()
                },
            }

    def figures(self) -> EngineFigures:
        """Return the figures that :mod:`muntin.metrics` exports."""
        with self._lock:
            return read_figures(self._dataflow, self._registry)

    def _stream_stats(self, state: StreamState) -> dict[str, int]:
        """Return the counts of a stream; of rows in several groups, the most that one holds."""
        inputs = self._dataflow.groups.inputs(state.stream.name)
        return {
            "rows_in": state.rows_in,
            "rows_late": state.rows_late,
            "rows_ahead": state.rows_ahead,
            "rows_waiting": max(each.waiting() for each in inputs),
            "rows_logged": max(each.log.held() for each in inputs),
            "log_bytes": max(each.log.nbytes() for each in inputs),
        }

    def query_stats(self, name: str) -> dict[str, object]:
        """Return the counts of a query."""
        with self._lock:
            return self.entry_stats(self._registry.find(name))

    def entry_stats(self, entry: QueryEntry) -> dict[str, object]:
        """Return the counts, the watermark, the failure if any, and the subscribers of a query."""
        waiting = entry.rows_waiting()
        found: dict[str, Any]
        if entry.suspended is None:
            group, wait = self._dataflow.group_of(entry.query.name), self._waiting(entry)
            found = {
                **self._dataflow.queries[entry.query.name].stats(),
                "watermark": _instant(group.frontier[0]),
                "waiting_for": None if wait is None else wait.to_dict(),
                "rows_late": group.rows_late() - entry.late_before,
                "suspended": None,
            }
        else:
            found = dict(entry.suspended.stats)
        buffers = {**found["buffers"], "output": found["buffers"]["output"] + waiting}
        deliveries, name = self._registry.deliveries, entry.query.name
        subscribers = [each.stats() for each in deliveries.of(name)]
        subscribers += [each.stats() for each in deliveries.feeds(name)]
        return {
            **found,
            "rows_waiting_for_poll": waiting,
            "buffers": buffers,
            "subscribers": subscribers,
        }
