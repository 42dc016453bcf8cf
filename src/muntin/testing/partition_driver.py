"""The partitions of the Spark engine as a driver of golden scripts, without Spark, in one process.

Rows are cut at random places into micro-batches, and those into tasks. A query that is added or
dropped takes effect as on Spark: the deployment changes from the next batch on. Some partitions are
then built again from the retained partition batches, others continue.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa

from muntin.errors import CatalogError
from muntin.expressions.duck import Duck
from muntin.model.catalog import Catalog, Stream, Table
from muntin.plan.query import Query
from muntin.spark.driver.global_stages import GlobalStages
from muntin.spark.driver.query_changes import PendingChange, exports, settled
from muntin.spark.exchange.carried_rows import carried_parts
from muntin.spark.exchange.controls import ControlRow
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import Part, PartitionBatch, PartitionOutput, to_blob
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition.partition import LATE
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.rescale import emitted, redistributed
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.spark.storage import LocalStorage
from muntin.sql.script import read_query
from muntin.sql.views import readable
from muntin.state.advance_limit import Segment
from muntin.testing.batch_cuts import by_time, cut
from muntin.testing.compare import accumulate
from muntin.testing.golden import StreamDeclaration
from muntin.testing.script_views import declare_views


class PartitionDriver:
    """A :class:`muntin.testing.driver.Driver` of partitions.

    Parameters
    ----------
    settings : Mapping[str, object]
        Settings of the queries.
    partitions : int
        The number of partitions.
    seed : int, optional
        Where micro-batches are cut. None makes every row one, as scripts about late rows need,
        since lateness is decided per batch.
    """

    in_order = False

    def __init__(self, settings: Mapping[str, object], partitions: int, seed: int | None) -> None:
        self._settings = {name: str(value) for name, value in settings.items()}
        self._random = None if seed is None else Random(seed)  # noqa: S311 (guards nothing)
        self._catalog = Catalog()
        self._deployment = Deployment((), {}, (), (), partitions)
        self._running: list[RecoverablePartition] = []
        self._stores: list[dict[int, tuple[RetainedBatch, PartitionBatch]]] = [
            {} for _ in range(partitions)
        ]
        self._packers: dict[str, Packer] = {}
        self._queries: dict[str, Query] = {}
        self._results: dict[str, list[pa.Table]] = {}
        self._taken: dict[str, int] = {}
        self._late: dict[str, list[pa.Table]] = {}
        self._batch = 0
        self._controls: tuple[str, ...] = ()
        self._duck = Duck()
        self._folder = tempfile.TemporaryDirectory(prefix="muntin-partition-driver-")
        self._storage = LocalStorage(Path(self._folder.name))
        self._stages = GlobalStages(self._storage.below("last"), self._duck)

    def declare(self, stream: StreamDeclaration) -> None:
        """Declare a stream."""
        self._catalog.add(stream.stream)
        self._change(streams=tuple(self._catalog.streams()))

    def table(self, name: str, rows: pa.Table) -> None:
        """Declare a stored table with its rows."""
        self._catalog.add(Table(name, rows.schema))
        self._change(tables={**self._deployment.tables, name: to_blob(rows)})

    def query(self, name: str, sql: str) -> None:
        """Register a standing query."""
        if name.casefold() in self._queries:
            raise CatalogError(
                f"there is already a query {name}", hint="Choose another name, or drop it first"
            )
        query = read_query(sql, name, self._catalog)
        self._queries[name.casefold()] = query
        self._catalog.add_view(readable(query))
        self._results[name.casefold()] = []
        self._taken[name.casefold()] = 0
        added = DeployedQuery(name, query.text, dict(self._settings))
        if self._batch:
            self._settle(PendingChange(added=added))
        else:
            self._change(queries=(*self._deployment.queries, added))

    def execute(self, sql: str) -> None:
        """Keep views; other statements are the engine's business, not the partitions'."""
        if declare_views(sql, self._catalog):
            raise NotImplementedError(f"partitions run no statements: {sql}")

    def change(self, setting: str, value: str) -> None:
        """Change a setting of the queries to come."""
        self._settings[setting] = value.strip("'")

    def feed(self, stream: str, rows: pa.Table) -> None:
        """Send rows to the partitions, micro-batch by micro-batch."""
        known = self._catalog.find(stream)
        assert isinstance(known, Stream), "scripts feed streams"
        pieces = by_time(rows, known.time) if known.arrival else cut(rows, self._random)
        for piece in pieces:
            parts: list[list[Part]] = [[] for _ in self._stores]
            packer = self._packers.setdefault(known.name, Packer(self._deployment, known.name))
            for task, taken in enumerate(cut(piece, self._random)):
                for partition, part in packer.pack(taken, task):
                    parts[partition].append(part)
            segments = packer.segments(piece)
            if known.arrival:
                self._apply({}, parts, None, segments[-1][1] + 1)
            else:
                self._apply({known.name: tuple(segments)} if segments else {}, parts, None)

    def advance(self, at: int) -> None:
        """Advance all partitions to an instant."""
        self._apply({}, [[] for _ in self._stores], at)

    def control(self, row: ControlRow) -> None:
        """Send a control row to all partitions with the next batch."""
        self._controls += (row.to_text(),)

    def take(self, query: str) -> pa.Table:
        """Return the results since the last call."""
        results = self._found(query)
        new = results.slice(self._taken[query.casefold()])
        self._taken[query.casefold()] = len(results)
        return new

    def answer(self, query: str) -> pa.Table | None:
        """Return the sum of all changes; None for inserts only, or before the first result."""
        known, found = self._queries[query.casefold()], self._found(query)
        begun = len(found) or not known.has_beginning
        return accumulate(found) if known.emit.name == "CHANGES" and begun else None

    def late(self, stream: str) -> pa.Table:
        """Return all rows that came too late so far."""
        known = self._catalog.find(stream)
        assert isinstance(known, Stream), "scripts ask for streams"
        return pa.concat_tables([known.schema.empty_table(), *self._late.get(known.name, [])])

    def state(self) -> None:
        """Return nothing: a partition also holds rows of other partitions."""

    def explain(self, query: str) -> None:
        """Return nothing: partitions have no plan to show."""

    def drop(self, query: str) -> None:
        """Drop a standing query."""
        self._found(query)
        dropped = self._queries.pop(query.casefold())
        self._catalog.remove_view(query)
        self._settle(PendingChange(dropped=dropped.name))

    def restart(self) -> bool:
        """Return False: nothing is durable, and every change rebuilds partitions anyway."""
        return False

    def rebuild(self) -> None:
        """Build all partitions again from the retained partition batches."""
        for number in range(len(self._running)):
            self._running[number] = RecoverablePartition.rebuilt(
                self._deployment, number, self._stores[number].values()
            )

    def rescale(self, partitions: int) -> None:
        """Continue with another number of partitions."""
        if self._running:
            before = self._deployment
            self._deployment = replace(before, partitions=partitions)
            spread = redistributed(self._running, self._deployment)
            changes = emitted(spread, self._deployment)
            placed = self._deployment.placed()
            self._stages.rescale(self._deployment, placed, before, self._batch - 1, changes)
            self._stores = [{batch.batch: (note, batch)} for note, batch in spread]
            self._running = [
                RecoverablePartition.rebuilt(self._deployment, number, store.values())
                for number, store in enumerate(self._stores)
            ]
        else:
            self._change(partitions=partitions)
            self._stores = [{} for _ in range(partitions)]
        self._packers = {}

    def close(self) -> None:
        """Remove its files."""
        self._folder.cleanup()

    def _found(self, query: str) -> pa.Table:
        if query.casefold() not in self._queries:
            raise CatalogError(f"there is no query {query}")
        if not self._batch:
            self._apply({}, [[] for _ in self._stores], None)
        schema = self._queries[query.casefold()].output_schema
        return pa.concat_tables([schema.empty_table(), *self._results[query.casefold()]])

    def _change(self, **parts: object) -> None:
        """Replace the deployment, before the first batch."""
        self._deployment = replace(self._deployment, **parts)  # type: ignore[arg-type]
        self._packers = {}
        self._running = []

    def _settle(self, wanted: PendingChange) -> None:
        """Make a change from the next batch on."""
        needed = exports(self._deployment, wanted.added) if wanted.added else ()
        holders = self._released() if needed else []
        held = {
            (lane, stream): [partition.held(lane, stream) for partition in holders]
            for lane, stream in needed
        }
        self._deployment = settled(self._deployment, wanted, self._batch, held, self._storage)
        self._packers = {}
        for number, partition in enumerate(self._running):
            if (self._batch + number) % 2:
                self._running[number] = RecoverablePartition.rebuilt(
                    self._deployment, number, self._stores[number].values()
                )
            else:
                assert partition.extend(self._deployment), (
                    "a deployment with one more change extends the one before"
                )

    def _released(self) -> list[RecoverablePartition]:
        """Return the partitions that hold rows for a new query.

        If others are dropped at the same time, as at a start that replaces queries, they are
        rebuilt as that start does it.
        """
        changes = self._deployment.changes
        if not any(change.dropped and change.batch == self._batch for change in changes):
            return self._running
        found = []
        for number, store in enumerate(self._stores):
            found.append(RecoverablePartition.rebuilt(self._deployment, number, store.values()))
            found[-1].release()
        return found

    def _apply(
        self,
        segments: Mapping[str, tuple[Segment, ...]],
        parts: list[list[Part]],
        moment: int | None,
        stamp: int | None = None,
    ) -> None:
        if not self._running:
            self._running = [
                RecoverablePartition(self._deployment, number)
                for number in range(len(self._stores))
            ]
        outputs: list[PartitionOutput] = []
        known = self._running[0].version
        epochs = range(self._deployment.epoch(known), self._deployment.epoch(self._batch))
        for number, (partition, store, own) in enumerate(
            zip(self._running, self._stores, parts, strict=True)
        ):
            carried = carried_parts(self._deployment, epochs, number, self._storage)
            newest = {stream: found[-1][1] for stream, found in segments.items()}
            batch = PartitionBatch(
                self._batch,
                epochs.stop,
                newest,
                tuple(own),
                moment,
                controls=self._controls,
                carried=carried,
                segments=segments,
                max_advance=self._deployment.max_advance,
                stamps={
                    each.name: stamp
                    for each in self._deployment.streams
                    if each.arrival and stamp is not None
                },
            )
            applied = partition.apply(batch)
            store[batch.batch] = (applied.note, applied.snapshot or batch)
            outputs += applied.outputs
            for gone in applied.gone:
                del store[gone]
        self._controls = ()
        self._deliver(outputs)
        for output in outputs:
            if output.kind == LATE:
                self._late.setdefault(output.name, []).append(output.table)
        self._batch += 1

    def _deliver(self, outputs: list[PartitionOutput]) -> None:
        """Make results available; repeat some batches with rebuilt global stages."""
        placed = self._deployment.placed()
        found = lambda kind, name: [  # noqa: E731
            output.table for output in outputs if (output.kind, output.name) == (kind, name)
        ]
        results: dict[str, pa.Table] = {}
        for _ in range(2 if self._batch % 3 == 1 else 1):
            places = self._stages.begin(self._deployment, placed, self._batch)
            results = {
                name: self._stages.result(place, placed[place], self._batch, found)
                for name, place in places.items()
            }
            if self._batch % 2:
                self._stages = GlobalStages(self._storage.below("last"), self._duck)
        for name, query in self._queries.items():
            self._results[name].append(results[query.name])
