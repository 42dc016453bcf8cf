"""Everything a user can observe of an engine on Spark: counts, progress, results, explanations."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa

from muntin.engine.subscription import Subscription
from muntin.errors import CatalogError, InputError
from muntin.metrics.figures import EngineFigures
from muntin.model.arguments import check_name
from muntin.model.catalog import Stream
from muntin.model.settings import OverloadMode, ProbeChoice, Scheduler, Settings
from muntin.plan.description import Description, Fact, to_dict
from muntin.plan.explanation import Explanation
from muntin.runtime.join_scheduling import uncounted
from muntin.runtime.overload_settings import overload_without_effect
from muntin.spark.driver.explain import described
from muntin.spark.driver.figures import read_figures
from muntin.spark.driver.load_controller import LoadController
from muntin.spark.driver.metrics import QueryMetrics
from muntin.spark.driver.output_writer import OutputWriter
from muntin.spark.driver.query_state import QueryState, query_ids, stats_of
from muntin.spark.driver.registry import RegisteredQuery, SparkRegistry
from muntin.spark.driver.run_state import RunState
from muntin.spark.driver.subscriptions import Subscriber, Subscriptions
from muntin.spark.sinks import MemorySink


class QueryReports:
    """Reports on the queries of an engine, running or not."""

    def __init__(
        self,
        state: RunState,
        registry: SparkRegistry,
        writer: OutputWriter,
        load: LoadController,
        subscriptions: Subscriptions,
    ) -> None:
        self._state = state
        self._registry = registry
        self._writer = writer
        self._load = load
        self._subscriptions = subscriptions

    def counts(self) -> dict[str, Any]:
        """Return our counts, the part of progress under ``muntin``."""
        registered = {one.query.name: one for one in list(self._registry.queries.values())}
        streams = [stream.name for stream in self._registry.streams()]
        report = self._writer.metrics.report(
            streams, {name.casefold(): name for name in registered}
        )
        global_rows, limited = self._writer.stages.rows(), self._load.report()
        suspended, ids = self._writer.suspended, query_ids(self._state, registered.values())
        for name, query in report["queries"].items():  # every kind of query has the same keys
            given = registered[name].given
            query["id"] = ids.get(name)
            query["sink"] = registered[name].deployed.sink
            query["settings"] = {
                "scheduler": str(given.sharing.scheduler),
                "overload": str(given.overload.mode),
            }
            query["weight"] = float(given.sharing.weight)
            query["levels"] = self._levels(name)
            query["in_effect"] = self._in_effect(name, limited=name in limited)
            query["without_effect"] = self._without_effect(
                name, registered[name], limited=name in limited
            )
            query["last_stage_rows"] = global_rows.get(name, 0)
            query["overload"] = limited.get(name, {"mode": "queue"})
            query["subscribers"] = [
                subscription.stats() for subscription in self._subscriptions.of(name)
            ]
            query["suspended"] = suspended.get(name)
        return report

    def figures(self) -> EngineFigures:
        """Return the figures after the last batch, which :mod:`muntin.metrics` exports."""
        queries = [one.query.name for one in list(self._registry.queries.values())]
        limited, streams = self._load.report(), self._registry.streams()
        return read_figures(
            self._writer.metrics,
            [stream.name for stream in streams],
            {name: limited.get(name) for name in queries},
            self._writer.suspended,
        )

    def _in_effect(self, name: str, *, limited: bool) -> dict[str, str]:
        """Return the scheduler and the overload mode by which a query runs.

        Without subscribers nobody sees the order of work inside a batch, so the fastest is taken.
        Only live runs are limited.
        """
        metrics = self._writer.metrics.queries.get(name.casefold(), QueryMetrics())
        return {
            "scheduler": metrics.scheduler if self._subscriptions.any() else "lwo",
            "overload": "adapt" if limited and self._state.live else "queue",
        }

    def _levels(self, name: str) -> list[dict[str, Any]]:
        """Return the windows of the joins of a query, with what they count for the scheduler."""
        metrics = self._writer.metrics.queries.get(name.casefold(), QueryMetrics())
        return [dict(level) for level in metrics.levels]

    def _without_effect(
        self, name: str, registered: RegisteredQuery, *, limited: bool
    ) -> dict[str, str]:
        """Return the settings of a query that have no effect, each with the reason."""
        given = registered.given
        overload, found = given.overload, self._scheduler_without_effect(name, given)
        found |= overload_without_effect(given, limited=limited)
        measured = self._writer.metrics.queries.get(name.casefold(), QueryMetrics())
        if "expiry" in measured.without_effect:
            found["expiry"] = measured.without_effect["expiry"]
        if registered.unlimited:
            found["overload"] = registered.unlimited
        elif overload.mode is OverloadMode.ADAPT and overload.probe_choice is ProbeChoice.KEY:
            found["probe_choice"] = (
                "partitions have different keys, so that a slice of all keys would load them "
                "unevenly: the oldest rows of a cycle probe"
            )
        reason = uncounted(given) or found.get("scheduler")
        if given.sharing.weight != 1 and reason:
            found["weight"] = reason
        if given.engine.memory_limit is not None:
            found["memory_limit"] = "a batch cannot be refused once its input has been read"
        return found

    def _scheduler_without_effect(self, name: str, given: Settings) -> dict[str, str]:
        if given.sharing.scheduler is Scheduler.LWO:
            return {}
        if not self._subscriptions.any():
            return {"scheduler": "no subscriber receives results before a batch is complete"}
        deployment = self._state.deployment
        for placed in () if deployment is None else deployment.placed():
            if placed.query.name == name and not (placed.is_final or placed.query.is_join):
                return {
                    "scheduler": "its results depend on all partitions: they come when a batch ends"
                }
        metrics = self._writer.metrics.queries.get(name.casefold())
        return {} if metrics is None else dict(metrics.without_effect)

    def counts_after(self, batch: int) -> dict[str, Any]:
        """Return our counts as they were after a batch, or the current ones if it is too old."""
        return self._writer.metrics.noted(batch) or self.counts()

    def progress(self) -> dict[str, Any] | None:
        """Return Spark's progress of the last batch with our counts; None before the first."""
        streaming = self._state.streaming
        # As one text: PySpark asks Java for each number separately, an eighth of a second in all.
        last = None if streaming is None else streaming._jsq.lastProgress()  # noqa: SLF001
        if last is None:
            return None
        counts, controls = self.counts(), self._state.controls_progress
        number = counts["batch"]["number"]
        if controls is not None and controls["batchId"] == number:
            return {**controls, "muntin": counts}
        return {**json.loads(last.json()), "batchId": number, "muntin": counts}

    def stats(self, name: str) -> dict[str, Any]:
        """Return the counts of one query."""
        return stats_of(self.counts(), self._registry.find(name).query.name)

    def state_of(self, name: str) -> QueryState:
        """Return the state of a query as it is registered now."""
        return QueryState(self._registry.find(name), self._state, self._registry, self._writer)

    def results(self, name: str) -> pa.Table:
        """Return all changes of a query so far, if its sink is memory."""
        check_name(name, "the name of a query")
        registered = self._registry.queries.get(name.casefold())
        if registered is None or not isinstance(registered.sink, MemorySink):
            raise InputError(
                f"query {name} has no results in memory", hint="Register it with sink='memory'"
            )
        return registered.sink.table()

    def late(self, stream: str) -> pa.Table:
        """Return the late rows of a stream so far."""
        check_name(stream, "the name of a stream")
        relation = self._registry.declared.catalog.find(stream)
        if not isinstance(relation, Stream):
            raise CatalogError(f"there is no stream {stream}", hint="Check the name")
        return self._writer.late_rows(relation).read(relation.schema)

    def subscribe(self, name: str, callback: Subscriber, buffer: int) -> Subscription:
        """Call ``callback`` with the results of a query as partitions push them."""
        query = self._registry.find(name).query
        return self._subscriptions.add(query.name, callback, buffer)

    def explain(self, name: str | None, partitions: int) -> Explanation:
        """Return the plan of one query or of all, and how their streams are partitioned."""
        queries = self._registry.queries
        chosen = list(queries.values()) if name is None else [self._registry.find(name)]
        return Explanation(self._described(registered, partitions) for registered in chosen)

    def plans(self, partitions: int) -> list[dict[str, object]]:
        """Return the plans of all queries as nested dicts and lists."""
        registered = list(self._registry.queries.values())
        return [to_dict(self._described(each, partitions)) for each in registered]

    def _described(self, registered: RegisteredQuery, partitions: int) -> Description:
        query = registered.query
        waiting = self._writer.metrics.waiting(query.name.casefold())
        reason = self._writer.suspended.get(query.name)
        node = described(query, registered.plan, partitions, waiting=waiting, suspended=reason)
        why = registered.unlimited
        if not why:
            return node
        words = f"overload = 'adapt' has no effect: {why}"
        return replace(node, facts=(*node.facts, Fact("overload_reason", why, words)))
