"""Write the outputs of a batch: results to sinks, late rows to files, metrics to the counts.

Exactly once: Spark may repeat a batch. Sinks and the files of late rows replace what they have for
its number, the global stages start from their state before it, and counts take a batch once.
Queries are suspended in the checkpoint before any sink is called, so a repeated batch leaves out
the same.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeAlias
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from muntin.errors import QuerySuspendedError, RunError
from muntin.expressions.duck import Duck
from muntin.model.catalog import Stream
from muntin.model.kafka import KafkaStream
from muntin.plan.query import Emit
from muntin.runtime.query_group import reason_of
from muntin.runtime.time_warnings import warn_of_epoch, warn_of_rows_ahead
from muntin.spark.batch_results import BatchResults
from muntin.spark.driver.batch_outputs import (
    BatchOutputs,
    ResultPlanner,
    collect,
    written_files,
)
from muntin.spark.driver.checkpoint import CheckpointError
from muntin.spark.driver.dead_letters import DeadLetters
from muntin.spark.driver.global_stages import GlobalStages
from muntin.spark.driver.metrics import RunMetrics
from muntin.spark.driver.registry import RegisteredQuery
from muntin.spark.driver.stage_job import StageBatch, StageJob
from muntin.spark.driver.suspended_queries import SuspendedQueries, suspension
from muntin.spark.exchange.controls import HELD
from muntin.spark.exchange.deployment import Deployment, PlacedQuery
from muntin.spark.exchange.marks import GLOBAL, Mark
from muntin.spark.exchange.partition_metrics import STATS
from muntin.spark.malformed import MALFORMED
from muntin.spark.partition.partition import LATE
from muntin.spark.partition.result_writer import ResultPlan
from muntin.spark.partition.spool import Spool
from muntin.spark.result_target import ResultTarget
from muntin.spark.sinks import SinkError
from muntin.spark.storage import Storage
from muntin.spark.storage.tables import TablesByBatch

RequestedRows: TypeAlias = dict[str, dict[tuple[str, str], list[pa.Table]]]
"""Rows that partitions hold, by control row, dataflow and stream."""


_SYNCED = 16
"""The most sinks that are synchronized at the same time."""

Release: TypeAlias = Callable[[str, Mark, pa.Table], None]
"""Passes results of a query to its subscribers."""


def _nobody(query: str, mark: Mark, results: pa.Table) -> None:
    """Release results where there are no subscribers."""


class OutputWriter:
    """Writes the outputs of an engine; ``storage`` is Muntin's part of the checkpoint.

    ``release`` gets results that only the driver has, before the sinks. ``failure`` is the error of
    a sink that failed. ``at_work`` names the sink that is being called. ``resumed`` has the
    incarnations in the checkpoint of queries that were registered with other ones.
    """

    def __init__(self, storage: Storage, spool: Spool, release: Release = _nobody) -> None:
        self.spool = spool
        self._release = release
        self._results = ResultPlanner(spool)
        self._subscribed: Collection[str] = ()
        self.metrics = RunMetrics()
        self.failure: RunError | None = None
        self.at_work = ""
        self._thread: int | None = None
        self._late = storage.below("late")
        self._session: SparkSession | None = None
        self._dead_letters = DeadLetters()
        self._late_begun: set[str] = set()
        """Streams whose late rows of the first batch of the run were written."""
        self._global = storage.below("global")
        self._duck = Duck()
        self.stages = GlobalStages(self._global, self._duck)
        self._deployment: Deployment | None = None
        self._placed: list[PlacedQuery] = []
        self._suspended = SuspendedQueries(storage)
        self._places: dict[str, int] = {}
        self._targets: dict[str, ResultTarget] = {}
        """The folders to which executors write in the current batch, by query."""
        self.resumed: Mapping[str, str] = {}

    def is_calling_sink(self) -> bool:
        """Return whether the calling thread is inside a sink."""
        return self._thread == threading.get_ident()

    def begin(self, deployment: Deployment, batch: int, run: str = "") -> None:
        """Prepare for a run from ``batch`` on, with the global stages as before it."""
        self.stages = GlobalStages(self._global, self._duck)
        self._late_begun.clear()
        self._dead_letters = DeadLetters(run)
        self.follow(deployment)
        self._suspended.load()
        self._places = self.stages.begin(deployment, self._placed, batch)

    def follow(self, deployment: Deployment) -> None:
        """Take a deployment with further changes."""
        self._deployment, self._placed = deployment, deployment.placed()

    def plan(
        self, batch: int, queries: Iterable[RegisteredQuery], subscribed: Collection[str]
    ) -> ResultPlan:
        """Return what partitions do with the results of a batch.

        The driver merges the results of ``subscribed`` queries, as it has to pass them on.
        """
        assert self._deployment is not None, "it has begun"
        self._places = self.stages.begin(self._deployment, self._placed, batch)
        self._results.parts = self._deployment.partitions
        self._subscribed = subscribed
        found, self._targets = [], {}
        for registered in queries:
            place = self._place(registered)
            if place is None or place in self._suspended.reasons:
                continue
            placed, target = self._placed[place], registered.sink.target()
            if placed.is_final or not self._is_released_here(placed):
                found.append((placed, target))
            if target is not None:
                self._targets[placed.query.name] = target
        return self._results.plan(found)

    def _place(self, registered: RegisteredQuery) -> int | None:
        """Return the position of a query in the deployment; None if it is not in force.

        One of the same name may be: it was dropped, but no batch has brought that yet.
        """
        place = self._places.get(registered.query.name)
        own = registered.deployed.incarnation
        if place is None or self._placed[place].registered.incarnation != self.resumed.get(
            own, own
        ):
            return None
        return place

    def _is_released_here(self, placed: PlacedQuery) -> bool:
        """Return whether subscribers get the results of a query from the driver."""
        query = placed.query
        return query.name in self._subscribed and not query.is_join and not placed.is_final

    def run(self, outputs: DataFrame, batch: int, job: StageJob) -> BatchOutputs:
        """Run the partitions and the global stages on executors; return all outputs."""
        found = collect(outputs)
        self._session = outputs.sparkSession
        inserts_only = {
            name: self._placed[place].query.emit is Emit.INSERTS
            for name, place in self._places.items()
        }
        self._results.merge(found, inserts_only, batch, outputs.sparkSession)
        placed = {
            place: self._placed[place]
            for place in self._places.values()
            if place not in self._suspended.reasons
        }
        given = StageBatch(batch, placed, self._targets, self._subscribed, self._results.parts)
        for place, answer in job.run(given, found, self.stages, outputs.sparkSession).items():
            self.metrics.unsent += answer.unsent
            if answer.failure:
                self._suspended.add(place, placed[place].query.name, answer.failure)
        return found

    def write(
        self,
        found: BatchOutputs,
        batch: int,
        queries: Mapping[str, RegisteredQuery],
        streams: Collection[Stream],
    ) -> None:
        """Write all outputs; an exception of a sink is raised with the name of the sink."""
        reports = [json.loads(bytes(row["blob"])) for row in found.get((STATS, ""), [])]
        self._suspend(reports)
        self._thread = threading.get_ident()
        try:
            results: dict[str, int] = {}
            published: set[str] = set()
            for key, query in list(queries.items()):
                own = self._write_results(found, batch, query, self._place(query))
                results[key] = len(own)
                published.update(own.files)
            for name, target in self._targets.items():
                # Those of queries that were suspended or dropped while the batch ran.
                for file in {*written_files(found, name)} - published:
                    target.discard(file)
            for query, done in _synced(list(queries.values())):
                with self._named(f"the sink of query {query.query.name}", batch):
                    done.result()
            late = {stream.name: self._write_late(found, batch, stream) for stream in streams}
            for stream in streams:
                self._write_malformed(found, batch, stream)
        finally:
            self._thread = None
        begun, ahead = {*self.metrics.begun}, {*+self.metrics.ahead}
        self.metrics.add(batch, reports, results, late)
        self._warn(begun, ahead)

    def _suspend(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Suspend everywhere, from this batch on, the queries that are suspended in a partition."""
        self._suspended.keep(set(self._places.values()))
        for report in reports:
            for name, reason in report["suspended"].items():
                self._suspended.add(self._places[name], name, reason)

    @property
    def suspended(self) -> dict[str, str]:
        """Return the suspended queries and the reasons."""
        reasons = self._suspended.reasons
        return {name: reasons[place] for name, place in self._places.items() if place in reasons}

    def suspension(self, incarnation: str) -> QuerySuspendedError | None:
        """Return the error of a suspended query, which its incarnation identifies; None if none.

        Unlike a name, an incarnation is not taken over by a query that is registered again.
        """
        for place, reason in list(self._suspended.reasons.items()):
            deployed = self._placed[place].registered
            if deployed.incarnation == incarnation:
                return suspension(deployed.name, reason)
        return None

    def _warn(self, begun: set[str], ahead: set[str]) -> None:
        """Warn of streams that began at odd times, or had rows too far ahead for the first time."""
        for stream in {*self.metrics.begun} - begun:
            warn_of_epoch(stream, self.metrics.begun[stream], time.time_ns() // 1000)
        for stream in {*+self.metrics.ahead} - ahead:
            warn_of_rows_ahead(stream)

    def _write_results(
        self, found: BatchOutputs, batch: int, registered: RegisteredQuery, place: int | None
    ) -> BatchResults:
        """Write the results of a query and return them; one that does not run now has none."""
        query = registered.query
        results = BatchResults(query.output_schema, 0)
        if place is not None and place not in self._suspended.reasons:
            results = self._batch_results(found, batch, place) or results
        with self._named(f"the sink of query {query.name}", batch):
            registered.sink.write(results, batch)
        return results

    def _batch_results(self, found: BatchOutputs, batch: int, place: int) -> BatchResults | None:
        """Return the results of a query; suspend it if its global stage fails, unless files did."""
        placed = self._placed[place]
        results = self._results.results(found, placed, placed.query.output_schema)
        if results is not None:
            return results
        try:
            table = self.stages.result(
                place,
                placed,
                batch,
                lambda kind, name: _tables(self.spool, found.get((kind, name), [])),
            )
        except (CheckpointError, RunError, OSError):
            raise
        except Exception as error:  # noqa: BLE001 (other queries continue)
            self._suspended.add(place, placed.query.name, reason_of(error))
            return None
        if self._is_released_here(placed):
            self._release(placed.query.name, Mark(batch, GLOBAL, 0, time.time()), table)
        return BatchResults.of(table)

    def _write_late(self, found: BatchOutputs, batch: int, stream: Stream) -> int:
        tables = _tables(self.spool, found.get((LATE, stream.name), []))
        if tables or stream.name not in self._late_begun:
            # The first batch of a run may have been written before, with late rows.
            with self._named(f"the file of late rows of stream {stream.name}", batch):
                rows = pa.concat_tables(tables) if tables else stream.schema.empty_table()
                self.late_rows(stream).write(rows, batch)
            self._late_begun.add(stream.name)
        return sum(len(table) for table in tables)

    def _write_malformed(self, found: BatchOutputs, batch: int, stream: Stream) -> None:
        kafka = KafkaStream.of(stream)
        if kafka is None or kafka.dead_letter is None or self._session is None:
            return
        tables = _tables(self.spool, found.get((MALFORMED, stream.name), []))
        with self._named(f"the dead letters of stream {stream.name}", batch):
            self._dead_letters.write(self._session, kafka, tables, batch)

    @contextmanager
    def _named(self, what: str, batch: int) -> Iterator[None]:
        """Name the sink that is being called, and in the error if it fails."""
        self.at_work = f"{what}, called with batch {batch},"
        try:
            yield
        except Exception as error:
            self.failure = SinkError(
                f"{what} failed in batch {batch}: {type(error).__name__}: {error}",
                hint="Repair it and start again: the batch runs again, and other sinks keep "
                "its results once",
            )
            raise self.failure from error
        finally:
            self.at_work = ""

    def held(self, found: BatchOutputs) -> RequestedRows:
        """Return the rows that control rows requested."""
        held: RequestedRows = {}
        for (kind, name), rows in found.items():
            if kind == HELD:
                control, dataflow, stream = json.loads(name)
                held.setdefault(control, {})[dataflow, stream] = _tables(self.spool, rows)
        return held

    def late_rows(self, stream: Stream) -> TablesByBatch:
        """Return the late rows of a stream."""
        return TablesByBatch(self._late.below(quote(stream.name, safe="").replace(".", "%2E")))

    def close(self) -> None:
        """Close DuckDB, which warns about connections that outlive it."""
        del self._duck, self.stages


def _tables(spool: Spool, rows: Iterable[Row]) -> list[pa.Table]:
    """Return the tables of outputs, from the rows themselves or from the spool."""
    return [spool.take(bytes(row["blob"]), row["file"]) for row in rows]


def _synced(queries: Collection[RegisteredQuery]) -> list[tuple[RegisteredQuery, Future[None]]]:
    """Make what the sinks have durable; they wait for the disk together, not in turn."""
    if not queries:
        return []
    with ThreadPoolExecutor(min(len(queries), _SYNCED)) as pool:
        return [(query, pool.submit(query.sink.sync)) for query in queries]
