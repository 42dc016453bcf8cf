"""What becomes of the outputs of a batch: results to their sinks, late rows to their files, counts to the tally."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql import DataFrame, Row

from muntin.errors import RunError
from muntin.expressions.duck import Duck
from muntin.model.catalog import Stream
from muntin.plan.join import JoinPlan
from muntin.plan.pipeline import PipelinePlan
from muntin.plan.query import Query
from muntin.spark.bucket import LATE
from muntin.spark.controls import HELD
from muntin.spark.last_stage import LastStages
from muntin.spark.outbox import Outbox
from muntin.spark.program import Placed, Program, Registered
from muntin.spark.sinks import FileSink, Sink, SinkError
from muntin.spark.tally import STATS, Tally

Found = dict[tuple[str, str], list[Row]]
"""The outputs of a batch by kind and name."""

Held = dict[str, dict[tuple[str, str], list[pa.Table]]]
"""Rows that buckets hold, by control, lane and stream."""


@dataclass(frozen=True)
class Standing:
    """A query that is registered."""

    registered: Registered
    query: Query
    plan: JoinPlan | PipelinePlan
    sink: Sink


class Delivery:
    """Delivers the outputs of an engine; ``folder`` is Muntin's part of the checkpoint.

    ``failure`` is what a sink has done, ``thread`` the one that delivers, while it does. ``at_work`` names
    the sink that is being called.
    """

    def __init__(self, folder: Path, outbox: Outbox) -> None:
        self.outbox = outbox
        self.tally = Tally()
        self.failure: RunError | None = None
        self.thread: int | None = None
        self.at_work = ""
        self._late = folder / "late"
        self._last = folder / "last"
        self._duck = Duck()
        self.stages = LastStages(self._last, self._duck)
        self._program: Program | None = None
        self._placed: list[Placed] = []

    def collected(self, outputs: DataFrame) -> Found:
        """The outputs of a batch."""
        found: Found = {}
        for row in outputs.collect():
            found.setdefault((row["kind"], row["name"]), []).append(row)
        return found

    def begin(self, program: Program, batch: int) -> None:
        """Make ready for a run that begins with a batch: last stages are as before it."""
        self.stages = LastStages(self._last, self._duck)
        self.follow(program)
        self.stages.begin(program, self._placed, batch)

    def follow(self, program: Program) -> None:
        """Take a program with further changes."""
        self._program, self._placed = program, program.placed()

    def deliver(self, found: Found, batch: int, queries: Mapping[str, Standing], streams: Iterable[Stream]) -> None:
        """Hand outputs over; raises, with the name of the sink, what a sink raises."""
        assert self._program is not None, "it has begun"
        places = self.stages.begin(self._program, self._placed, batch)
        self.thread = threading.get_ident()
        try:
            results = {
                key: self._deliver_results(found, batch, standing, places.get(standing.query.name))
                for key, standing in list(queries.items())
            }
            late = {stream.name: self._deliver_late(found, batch, stream) for stream in streams}
        finally:
            self.thread = None
        self.tally.add(batch, [json.loads(bytes(row["blob"])) for row in found.get((STATS, ""), [])], results, late)

    def _deliver_results(self, found: Found, batch: int, standing: Standing, place: int | None) -> int:
        """Hand over the results of a query; one that is not in force yet has no place, and none."""
        results = standing.query.output_schema.empty_table()
        if place is not None:
            tables = lambda kind, name: self._tables(found.get((kind, name), []))  # noqa: E731 (said where it is used)
            results = self.stages.result(place, self._placed[place], batch, tables)
        with self._named(f"the sink of query {standing.query.name}", batch):
            standing.sink.write(results, batch)
        return len(results)

    def _deliver_late(self, found: Found, batch: int, stream: Stream) -> int:
        tables = self._tables(found.get((LATE, stream.name), []))
        if tables:
            with self._named(f"the file of late rows of stream {stream.name}", batch):
                self.late_sink(stream).write(pa.concat_tables(tables), batch)
        return sum(len(table) for table in tables)

    def _tables(self, rows: Iterable[Row]) -> list[pa.Table]:
        return [self.outbox.take(bytes(row["blob"]), row["file"]) for row in rows]

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
