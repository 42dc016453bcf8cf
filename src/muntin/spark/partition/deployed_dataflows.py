"""The dataflows of a partition, and which queries of the deployment run in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from muntin.planner.partitioning import OWN
from muntin.runtime.external_quota import ExternalQuota, LimitState
from muntin.runtime.holdings import rows_held
from muntin.runtime.query_group import Output, reason_of
from muntin.spark.exchange.deployment import Deployment, PlacedQuery
from muntin.spark.exchange.messages import Part, PartitionBatch, RoutedRows, rows_of
from muntin.spark.partition.partition_clock import PartitionClock
from muntin.spark.partition.partition_dataflow import PartitionDataflow
from muntin.spark.partition.window_reach import WindowReach, reach_of


class DeployedDataflows:
    """Opens, closes and finds dataflows as queries come and go."""

    def __init__(self, deployment: Deployment) -> None:
        self.extend(deployment)
        self.by_name: dict[str, PartitionDataflow] = {}
        self.reach: dict[tuple[int, str], WindowReach] = {}
        """How far the windows of the queries in force reach."""
        self.epoch = -1
        self._active: list[int] = []
        self._refused: dict[str, str] = {}
        """Queries that could not be registered, and the reasons."""

    def __iter__(self) -> Iterator[PartitionDataflow]:
        return iter(self.by_name.values())

    def extend(self, deployment: Deployment) -> None:
        """Take the deployment with further changes, in force from batches of their epochs on."""
        self.deployment = deployment
        self._placed = deployment.placed()
        self._partitionings = {
            placed.partitioning_number: frozenset(placed.streams) for placed in self._placed
        }

    def follow(self, batch: PartitionBatch, clock: PartitionClock) -> list[Output]:
        """Bring the queries to the epoch of a batch, one change after the other.

        ``clock`` is the clock before the batch. Return the initial results of new queries.
        """
        initial: list[Output] = []
        first = batch.epoch if self.epoch < 0 else self.epoch + 1
        for epoch in range(first, batch.epoch + 1):
            wanted = self.deployment.active(epoch)
            for place in [place for place in self._active if place not in wanted]:
                self._drop(self._placed[place])
                # It may have been added in this batch, and another may have its name from now on.
                gone = {part.name for part in self._placed[place].parts}
                initial = [(name, table) for name, table in initial if name not in gone]
            for place in [place for place in wanted if place not in self._active]:
                initial += self._add(self._placed[place], batch.carried, clock)
            self._active, self.epoch = wanted, epoch
            self.reach = reach_of(self._placed[place] for place in wanted)
        return initial

    def release(self) -> None:
        """Drop the queries that later changes of the deployment drop, with what only they hold."""
        kept = self.deployment.active(len(self.deployment.changes))
        for place in [place for place in self._active if place not in kept]:
            self._drop(self._placed[place])
        self._active = [place for place in self._active if place in kept]

    def _drop(self, placed: PlacedQuery) -> None:
        dataflow = self.by_name[placed.dataflow]
        if self._refused.pop(placed.query.name, None) is None:
            dataflow.drop(placed)
        if dataflow.is_empty():
            del self.by_name[placed.dataflow]

    def _add(
        self, placed: PlacedQuery, carried: Iterable[tuple[str, Part]], clock: PartitionClock
    ) -> list[Output]:
        """Run a query. If that fails it is suspended, and the batch continues for the others."""
        dataflow = self.by_name.get(placed.dataflow)
        if dataflow is None:
            rows = [part for name, part in carried if name == placed.dataflow]
            dataflow = self._opened(placed, rows, clock)
        try:
            return dataflow.add(placed, self.deployment)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is this query's)
            self._refused[placed.query.name] = reason_of(error)
            return []

    def _opened(
        self, placed: PlacedQuery, carried: Iterable[Part], clock: PartitionClock
    ) -> PartitionDataflow:
        """Open a dataflow; rows that were late for the partitions before are late for it, too."""
        final = self.deployment.watermark(placed.streams, clock.newest)
        begin = (clock.positions or {}).get(placed.dataflow, {})
        dataflow = PartitionDataflow(placed, self.deployment, final, begin)
        self.by_name[placed.dataflow] = dataflow
        rows = {stream: table for (_, stream), table in rows_of(carried).items()}
        dataflow.fill(rows, clock.moment)
        return dataflow

    def in_force(self) -> list[PlacedQuery]:
        """Return the queries in force, also those that are suspended."""
        return [self._placed[place] for place in self._active]

    def suspended(self) -> dict[str, str]:
        """Return the queries that are suspended in this partition, and the reasons."""
        found = {}
        for placed in self.in_force():
            failed = self.by_name[placed.dataflow].suspended
            reasons = [failed[part.name] for part in placed.parts if part.name in failed]
            reason = self._refused.get(placed.query.name) or next(iter(reasons), None)
            if reason is not None:
                found[placed.query.name] = reason
        return found

    # -- time --------------------------------------------------------------------------------------

    def move(self, newest: Mapping[str, int]) -> None:
        """Move the frontiers of all dataflows to the newest times of their streams."""
        for dataflow in self:
            dataflow.final = self.deployment.watermark(dataflow.streams, newest)

    def reached(self, newest: Mapping[str, int]) -> dict[int, int]:
        """Return the watermark by rows of every partitioning that ever was."""
        return {
            number: self.deployment.watermark(streams, newest)[0]
            for number, streams in self._partitionings.items()
        }

    # -- rows --------------------------------------------------------------------------------------

    def _reporter(self, stream: str) -> PartitionDataflow | None:
        """Return the dataflow that reports late rows of a stream: the one that is furthest.

        Every row that is late for any is late for it. All partitions choose the same one, whatever
        the order in which they opened their dataflows.
        """
        readers = (each for each in self if stream in each.streams)
        return max(readers, key=lambda one: (one.floor, -one.partitioning, one.name), default=None)

    def late(
        self, dataflow: PartitionDataflow, late: Mapping[str, pa.Table]
    ) -> Iterator[tuple[str, pa.Table]]:
        """Yield the late rows that a dataflow reports: each in the partition that owns it."""
        for stream, table in late.items():
            if len(table) and dataflow is self._reporter(stream):
                owned = dataflow.owned(stream, table)
                if len(owned):
                    yield stream, owned

    def count_owned(self, rows: RoutedRows) -> dict[str, int]:
        """Count the rows of each stream that this partition owns."""
        found = {}
        for (number, stream), table in rows.items():
            reporter = self._reporter(stream)
            if reporter is not None and reporter.partitioning == number:
                broadcast = stream in reporter.broadcast
                found[stream] = pc.sum(table.column(OWN)).as_py() if broadcast else len(table)
        return found

    def trim(self) -> None:
        """Discard the rows that no window reaches any more."""
        for each in self:
            each.dataflow.groups.trim(exactly=True)

    def rows_held(self) -> int:
        """Return the rows that the dataflows hold."""
        return sum(rows_held(each.dataflow) for each in self)

    # -- probe budgets -----------------------------------------------------------------------------

    def quotas(self) -> dict[str, ExternalQuota]:
        """Return the limited joins by the names of their queries."""
        return {name: one for each in self for name, one in each.dataflow.quotas().items()}

    def limits(self) -> dict[str, LimitState]:
        """Return the probe budgets of limited joins, and their use."""
        return {name: one.state() for name, one in self.quotas().items()}

    def load_limits(self, limits: Mapping[str, LimitState]) -> None:
        """Set the probe budgets of limited joins, and their use."""
        for name, one in self.quotas().items() if limits else ():
            if name in limits:
                one.load(limits[name])
