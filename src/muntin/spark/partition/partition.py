"""One partition: the dataflows that process its part of every batch. No Spark, no I/O.

Time is the same in all partitions: the newest time of each stream comes with every batch, from all
tasks of the micro-batch. The queries of a dataflow read the same streams; its frontier follows from
the newest times of these streams and the deployment alone. A row is late for a dataflow when it
comes behind the watermark of the batches before.

A partition is rebuilt by replaying its batches, from the oldest that a window still reaches.
:class:`muntin.spark.partition.retained_batches.RetainedBatches` determines which those are.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy.typing as npt
import pyarrow as pa

from muntin.model.clock import AFTER_ALL, BEFORE_ALL
from muntin.operators.join.schedule import TurnPace
from muntin.plan.query import Emit
from muntin.runtime.external_quota import LimitState
from muntin.runtime.holdings import positions
from muntin.runtime.query_group import Output
from muntin.runtime.snapshot import QuerySnapshot
from muntin.spark.exchange.controls import HELD, NEVER, ControlRow
from muntin.spark.exchange.deployment import Deployment, PlacedQuery
from muntin.spark.exchange.messages import (
    TIMELESS,
    UNREADABLE,
    Part,
    PartitionBatch,
    PartitionOutput,
    RoutedRows,
    from_blob,
    rows_of,
    to_blob,
)
from muntin.spark.exchange.partition_metrics import PartitionMetrics
from muntin.spark.exchange.time_bounds import TimeBounds, bounds_after
from muntin.spark.malformed import MALFORMED
from muntin.spark.partition.deployed_dataflows import DeployedDataflows
from muntin.spark.partition.partition_clock import CameBefore, PartitionClock
from muntin.spark.partition.partition_dataflow import PartitionDataflow
from muntin.spark.partition.partition_metrics import BatchCounts, metrics_of

LATE = "late"
RESULTS = "results"
CLOCK = "clock"
"""The kind of output with the closed and the first instant, for the global stage of a query."""

OnRelease: TypeAlias = Callable[[str, pa.Table], None]
"""Gets the name of a query and results of it, during the work; must return quickly."""


class Partition:
    """The dataflows of one partition under a deployment."""

    def __init__(self, deployment: Deployment, number: int) -> None:
        self.number = number
        self.dataflows = DeployedDataflows(deployment)
        self._time = TimeBounds({}, {}, {})
        self._moment = BEFORE_ALL
        self._counts = BatchCounts({}, {})
        self._limits: Mapping[str, LimitState] = {}
        """The probe budgets before the first batch, if it is not the first of all."""
        self._late_after = NEVER
        self._positions: dict[str, dict[str, int]] = {}
        self._results: dict[str, list[pa.Table]] = {}

    # -- batches -----------------------------------------------------------------------------------

    def apply(
        self, batch: PartitionBatch, on_release: OnRelease | None = None
    ) -> list[PartitionOutput]:
        """Process a batch and return its outputs.

        ``on_release`` gets results at once, unless other partitions have a say in them.
        """
        arrival = time.monotonic()
        self._move(batch)
        rows = rows_of(batch.parts)
        came = self.dataflows.count_owned(rows)
        rows, ahead = self._in_range(rows)
        malformed = {
            stream: len(table) for (number, stream), table in rows.items() if number == UNREADABLE
        }
        ahead_of = self.dataflows.count_owned(ahead)
        self._counts = BatchCounts(came, ahead_of, malformed, batch.sources)
        outputs = [
            PartitionOutput(LATE, stream, table)
            for (number, stream), table in rows.items()
            if number == TIMELESS
        ]
        outputs += [
            PartitionOutput(MALFORMED, stream, table)
            for (number, stream), table in rows.items()
            if number == UNREADABLE
        ]
        pace = None if on_release is None else TurnPace()
        shown = self._released_at_once() if on_release is not None else {}
        if on_release is not None:  # results from before any row
            for name, tables in self._results.items():
                for table in tables if name in shown else ():
                    on_release(name, shown[name].shown(table))
        for dataflow in self.dataflows:
            own = _rows_for(dataflow, rows)
            for name, table in dataflow.step(own, batch.moment, arrival, pace):
                self._results.setdefault(name, []).append(table)
                if on_release is not None and name in shown:
                    on_release(name, shown[name].shown(table))
            for late in (_rows_for(dataflow, ahead), dataflow.late()):
                reported = self.dataflows.late(dataflow, late)
                outputs += [PartitionOutput(LATE, stream, table) for stream, table in reported]
        self._moment = max(self._moment, BEFORE_ALL if batch.moment is None else batch.moment)
        suspended = self.dataflows.suspended()
        for placed in self.dataflows.in_force():
            if placed.query.name not in suspended:
                outputs += self._outputs(placed)
        self._results.clear()
        return outputs

    def _released_at_once(self) -> dict[str, PlacedQuery]:
        """Return the queries whose results are not changed later, by the names of their parts."""
        return {
            part.name: placed
            for placed in self.dataflows.in_force()
            for part in placed.parts
            if placed.is_final or placed.query.is_join
        }

    def _outputs(self, placed: PlacedQuery) -> Iterator[PartitionOutput]:
        """Yield the results of a query, or the changes of its parts for its global stage."""
        for part in placed.parts:
            tables = self._results.get(part.name)
            if tables:
                results = pa.concat_tables(tables)
                if placed.is_final:
                    results = placed.shown(results)
                yield PartitionOutput(RESULTS, part.name, results)
        last = placed.distribution.last
        snapshot = placed.query.emit is Emit.SNAPSHOT
        if last is not None and (snapshot or last.has_beginning):
            dataflow = self.dataflows.by_name[placed.dataflow]
            parts = [dataflow.pipeline(part.name) for part in placed.parts]
            instants = [part.begun if snapshot else part.seen for part in parts]
            first = min((instant for instant in instants if instant is not None), default=None)
            times = {
                "first": pa.array([first], pa.int64()),
                "closed": [max(dataflow.final[0] - 1, self._moment)],
            }
            yield PartitionOutput(CLOCK, placed.query.name, pa.table(times))

    def replay(self, batch: PartitionBatch) -> None:
        """Process a batch whose results are known."""
        self._move(batch)
        rows, _ = self._in_range(rows_of(batch.parts))
        for dataflow in self.dataflows:
            dataflow.replay(_rows_for(dataflow, rows), batch.moment)
        self._moment = max(self._moment, BEFORE_ALL if batch.moment is None else batch.moment)
        self._results.clear()

    def _follow(self, batch: PartitionBatch) -> None:
        clock = PartitionClock(dict(self._time.newest), self._moment, positions=self._positions)
        for name, table in self.dataflows.follow(batch, clock):
            self._results.setdefault(name, []).append(table)
        self._positions = {}

    def _move(self, batch: PartitionBatch) -> None:
        """Bring queries, probe budgets and watermarks up to a batch."""
        self._follow(batch)
        quotas = self.dataflows.quotas()
        self.dataflows.load_limits(self._limits)
        self._limits = {}
        for control in map(ControlRow.from_text, batch.controls):
            if control.late_after is not None:
                self._late_after = control.late_after
            for limits in control.limits:
                # Limits of an interrupted batch may be for fewer partitions than there are now.
                budgets = limits.of(self.number)
                if limits.query in quotas and budgets is not None:
                    quotas[limits.query].limit(budgets)
        self._time = bounds_after(self._time, self._moment, batch)
        for dataflow in self.dataflows:
            dataflow.floor = dataflow.final
        self.dataflows.move(self._time.newest)
        for dataflow in self.dataflows:
            for quota in dataflow.dataflow.quotas().values():
                quota.is_late = self._is_late(dataflow, batch)

    def _is_late(self, dataflow: PartitionDataflow, batch: PartitionBatch) -> bool:
        """Return whether a batch covers too much event time: its first rows waited for long.

        Rows that wait for another stream, or that are late themselves, do not count.
        """
        times = [
            first for stream in dataflow.streams for first, *_ in batch.segments.get(stream, ())
        ]
        first = max(min(times, default=AFTER_ALL), dataflow.floor[0])
        return self._late_after != NEVER and dataflow.final[0] - first > self._late_after

    def _in_range(self, rows: RoutedRows) -> tuple[RoutedRows, RoutedRows]:
        """Return the rows in range of their streams, and those too far ahead."""
        times = {stream.name: stream.time for stream in self.dataflows.deployment.streams}
        inside, ahead = {}, {}
        for (number, stream), table in rows.items():
            within, beyond = table, None
            if number >= 0:
                within, beyond = self._time.split(table, stream, times[stream])
            inside[number, stream] = within
            if beyond is not None:
                ahead[number, stream] = beyond
        return inside, ahead

    def metrics(self) -> PartitionMetrics:
        """Return the metrics of the last batch."""
        clock = PartitionClock(dict(self._time.newest), self._moment, sources=self._time.sources)
        return metrics_of(self.number, self.dataflows, clock, self._counts)

    # -- snapshots and recovery --------------------------------------------------------------------

    def answers(self, controls: Iterable[str]) -> Iterator[PartitionOutput]:
        """Yield the rows that control rows ask for."""
        for control in map(ControlRow.from_text, controls):
            for name, stream in control.exports:
                key = json.dumps([control.name, name, stream])
                yield PartitionOutput(HELD, key, self.held(name, stream))

    def held(self, name: str, stream: str) -> pa.Table:
        """Return the rows of a stream that a dataflow holds and this partition owns."""
        dataflow = self.dataflows.by_name.get(name)
        if dataflow is not None:
            return dataflow.held(stream)
        streams = self.dataflows.deployment.streams
        return next(known for known in streams if known.name == stream).schema.empty_table()

    def snapshot(self, batch: int) -> tuple[PartitionBatch, CameBefore]:
        """Return all rows that are held as one batch, and how many of them came before queries."""
        carried: list[tuple[str, Part]] = []
        since: CameBefore = {}
        made: dict[str, npt.NDArray[Any]] = {}
        for name, each in self.dataflows.by_name.items():
            snapshot = each.dataflow.snapshot()
            carried += [
                (name, Part(each.partitioning, stream, 0, to_blob(table.combine_chunks())))
                for stream, table in snapshot.groups[0].rows.items()
            ]
            for query, state in snapshot.queries.items():
                since[query] = dict(state.came_before)
                made.update(state.made)
        newest = dict(self._time.newest)
        return PartitionBatch(
            batch, self.dataflows.epoch, newest, (), carried=tuple(carried), made=made
        ), since

    def load(
        self, batch: PartitionBatch, clock: PartitionClock, since: CameBefore, *, emit: bool = False
    ) -> list[Output]:
        """Take a snapshot into a new partition.

        Time moves when the queries are there, so none of its rows is late. Rows that partitioned
        windows keep are counted again, so positions start at zero. With ``emit``, return results
        that add up to those that the queries have had so far.
        """
        self._follow(replace(batch, carried=()))
        self.restore(replace(clock, positions=None))
        queries = {name: QuerySnapshot(came, made=batch.made) for name, came in since.items()}
        for name, dataflow in self.dataflows.by_name.items():
            rows = {part.stream: from_blob(part.blob) for of, part in batch.carried if of == name}
            for name_of_part, table in dataflow.restore(rows, queries, clock.moment, emit=emit):
                self._results.setdefault(name_of_part, []).append(table)
        outputs = [(part, table) for part, tables in self._results.items() for table in tables]
        self._results.clear()
        return outputs

    def restore(self, clock: PartitionClock) -> None:
        """Begin at the clock of an older partition, before the first retained batch is replayed.

        Rows that still waited then belong to batches that are gone by now, so all rows that count
        come after them.
        """
        self._time = clock.bounds
        self.dataflows.move(self._time.newest)
        self._moment = clock.moment
        self._limits = clock.limits
        self._late_after = clock.late_after
        self._positions = clock.positions or {}

    def clock(self) -> PartitionClock:
        """Return the progress of event time."""
        found = {each.name: positions(each.dataflow) for each in self.dataflows}
        newest, ahead = dict(self._time.newest), dict(self._time.ahead)
        limits = self.dataflows.limits()
        return PartitionClock(
            newest, self._moment, limits, found, ahead, self._late_after, self._time.sources
        )

    def reached(self) -> dict[int, int]:
        """Return the watermark by rows of every partitioning that ever was."""
        return self.dataflows.reached(self._time.newest)


def _rows_for(dataflow: PartitionDataflow, rows: RoutedRows) -> dict[str, pa.Table]:
    return {
        stream: table for (number, stream), table in rows.items() if number == dataflow.partitioning
    }
