"""What becomes of the outputs of a batch: results to their sinks, late rows to their files, counts to the tally."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql import DataFrame, Row

from muntin.errors import RunError
from muntin.expressions.duck import Duck
from muntin.model.catalog import Stream
from muntin.plan.join import JoinPlan
from muntin.plan.pipeline import PipelinePlan
from muntin.plan.query import Query
from muntin.runtime.suspended_query import reason_of
from muntin.runtime.time_warnings import warn_of_epoch, warn_of_rows_ahead
from muntin.spark.deployment import DeployedQuery, Deployment, PlacedQuery
from muntin.spark.driver.checkpoint import CheckpointError
from muntin.spark.driver.global_stage import LastStages
from muntin.spark.driver.metrics import STATS, RunMetrics
from muntin.spark.driver.suspended_queries import SuspendedQueries
from muntin.spark.exchange.controls import HELD
from muntin.spark.partition.partition import LATE
from muntin.spark.partition.spool import Spool
from muntin.spark.sinks import FileSink, Sink, SinkError

Found = dict[tuple[str, str], list[Row]]
"""The outputs of a batch by kind and name."""

Held = dict[str, dict[tuple[str, str], list[pa.Table]]]
"""Rows that partitions hold, by control, lane and stream."""


@dataclass(frozen=True)
class RegisteredQuery:
    """A query that is registered."""

    registered: DeployedQuery
    query: Query
    plan: JoinPlan | PipelinePlan
    sink: Sink


class OutputWriter:
    """Delivers the outputs of an engine; ``folder`` is Muntin's part of the checkpoint.

    ``failure`` is what a sink has done, ``thread`` the one that delivers, while it does. ``at_work`` names
    the sink that is being called.
    """

    def __init__(self, folder: Path, spool: Spool) -> None:
        self.spool = spool
        self.tally = RunMetrics()
        self.failure: RunError | None = None
        self.thread: int | None = None
        self.at_work = ""
        self._late = folder / "late"
        self._last = folder / "global"
        self._duck = Duck()
        self.stages = LastStages(self._last, self._duck)
        self._program: Deployment | None = None
        self._placed: list[PlacedQuery] = []
        self._suspended = SuspendedQueries(folder / "suspended")
        self._places: dict[str, int] = {}

    def collected(self, outputs: DataFrame) -> Found:
        """The outputs of a batch."""
        found: Found = {}
        for row in outputs.collect():
            found.setdefault((row["kind"], row["name"]), []).append(row)
        return found

    def begin(self, program: Deployment, batch: int) -> None:
        """Make ready for a run that begins with a batch: last stages are as before it."""
        self.stages = LastStages(self._last, self._duck)
        self.follow(program)
        self._suspended.load()
        self._places = self.stages.begin(program, self._placed, batch)

    def follow(self, program: Deployment) -> None:
        """Take a program with further changes."""
        self._program, self._placed = program, program.placed()

    def deliver(
        self,
        found: Found,
        batch: int,
        queries: Mapping[str, RegisteredQuery],
        streams: Iterable[Stream],
    ) -> None:
        """Hand outputs over; raises, with the name of the sink, what a sink raises."""
        assert self._program is not None, "it has begun"
        places = self._places = self.stages.begin(self._program, self._placed, batch)
        told = [json.loads(bytes(row["blob"])) for row in found.get((STATS, ""), [])]
        self._suspend(told)
        self.thread = threading.get_ident()
        try:
            results = {
                key: self._deliver_results(found, batch, standing, places.get(standing.query.name))
                for key, standing in list(queries.items())
            }
            late = {stream.name: self._deliver_late(found, batch, stream) for stream in streams}
        finally:
            self.thread = None
        before = {*self.tally.begun}, {*+self.tally.ahead}
        self.tally.add(batch, told, results, late)
        self._warn(*before)

    def _suspend(self, told: Iterable[Mapping[str, Any]]) -> None:
        """Suspend everywhere what is suspended in a partition, from this batch on."""
        self._suspended.keep(set(self._places.values()))
        for stats in told:
            for name, reason in stats["suspended"].items():
                self._suspended.add(self._places[name], name, reason)

    @property
    def suspended(self) -> dict[str, str]:
        """The queries that are suspended, and why."""
        reasons = self._suspended.reasons
        return {name: reasons[place] for name, place in self._places.items() if place in reasons}

    def _warn(self, begun: set[str], ahead: set[str]) -> None:
        """Warn of the streams that began now at odd times, or had rows too far ahead for the first time."""
        for stream in {*self.tally.begun} - begun:
            warn_of_epoch(stream, self.tally.begun[stream], time.time_ns() // 1000)
        for stream in {*+self.tally.ahead} - ahead:
            warn_of_rows_ahead(stream)

    def _deliver_results(
        self, found: Found, batch: int, standing: RegisteredQuery, place: int | None
    ) -> int:
        """Hand over the results of a query; one that is suspended or not in force yet has none."""
        results = standing.query.output_schema.empty_table()
        if place is not None and place not in self._suspended.reasons:
            results = self._result(found, batch, place, results)
        with self._named(f"the sink of query {standing.query.name}", batch):
            standing.sink.write(results, batch)
        return len(results)

    def _result(self, found: Found, batch: int, place: int, nothing: pa.Table) -> pa.Table:
        """Return the results of a query; one whose last stage fails is suspended, unless files are the reason."""
        tables = lambda kind, name: self._tables(found.get((kind, name), []))  # noqa: E731 (said where it is used)
        placed = self._placed[place]
        try:
            return self.stages.result(place, placed, batch, tables)
        except (CheckpointError, RunError, OSError):
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is, other queries continue)
            self._suspended.add(place, placed.query.name, reason_of(error))
            return nothing

    def _deliver_late(self, found: Found, batch: int, stream: Stream) -> int:
        tables = self._tables(found.get((LATE, stream.name), []))
        if tables:
            with self._named(f"the file of late rows of stream {stream.name}", batch):
                self.late_sink(stream).write(pa.concat_tables(tables), batch)
        return sum(len(table) for table in tables)

    def _tables(self, rows: Iterable[Row]) -> list[pa.Table]:
        return [self.spool.take(bytes(row["blob"]), row["file"]) for row in rows]

    @contextmanager
    def _named(self, what: str, batch: int) -> Iterator[None]:
        """Say which sink it was that failed, and which one is at work."""
        self.at_work = f"{what}, called with batch {batch},"
        try:
            yield
        except Exception as error:
            self.failure = SinkError(
                f"{what} failed in batch {batch}: {type(error).__name__}: {error}",
                hint="Repair it and start again: the batch is done again, other sinks keep what they have once",
            )
            raise self.failure from error
        finally:
            self.at_work = ""

    def held(self, found: Found) -> Held:
        """The rows that control rows asked for."""
        held: Held = {}
        for (kind, name), rows in found.items():
            if kind == HELD:
                control, lane, stream = json.loads(name)
                held.setdefault(control, {})[lane, stream] = self._tables(rows)
        return held

    def late_sink(self, stream: Stream) -> FileSink:
        """Where the late rows of a stream go."""
        return FileSink(self._late / quote(stream.name, safe="").replace(".", "%2E"), "parquet")

    def close(self) -> None:
        """Give back what DuckDB holds: it complains of connections that outlive it."""
        del self._duck, self.stages
