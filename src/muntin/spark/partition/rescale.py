"""Redistribute the state of a run over another number of partitions.

Every partition gives a snapshot of the same batch: the rows it holds of each stream, and how many
of them came before each query. Rows go to their owners among the new partitions; together those
hold the same rows, each owned once, so results continue as if nothing had happened.

Safe because the frontier is the same in all partitions: rows that came before a query are a prefix
of the rows in the order of time, in every partition and in all of them together. Rows with equal
times that were in different partitions have different keys, so their order decides no result. Where
order does decide, in windows of rows, every partition has all rows of the stream in their order.

The matches that limited joins have made go where all their rows are. Only the owner finds them
again there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin.planner.partitioning import OWN, Partitioning, marked
from muntin.spark.exchange.deployment import Deployment, PlacedQuery
from muntin.spark.exchange.messages import Part, PartitionBatch, from_blob, to_blob
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition.moved_matches import RowMoves, moved_matches
from muntin.spark.partition.partition import Partition
from muntin.spark.partition.partition_clock import CameBefore
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.retained_batches import RetainedBatch, note_of
from muntin.state.batch import times_of


@dataclass(frozen=True)
class _Held:
    """Rows of a stream in a dataflow, and by query whether each of them came before it."""

    rows: pa.Table
    before: Mapping[str, npt.NDArray[np.bool_]]

    def of(self, chosen: npt.NDArray[np.bool_]) -> _Held:
        """Return some of the rows."""
        before = {query: came[chosen] for query, came in self.before.items()}
        return _Held(self.rows.filter(pa.array(chosen)), before)


def redistributed(
    before: Sequence[RecoverablePartition], deployment: Deployment
) -> list[tuple[RetainedBatch, PartitionBatch]]:
    """Return a snapshot with its note for every partition of a deployment.

    ``before`` are the partitions of the same deployment with another number of partitions.
    """
    snapshots = [partition.snapshot() for partition in before]
    clock = replace(before[0].clock(), limits={}, positions=None)
    first = snapshots[0][0]
    parts: list[list[tuple[str, Part]]] = [[] for _ in range(deployment.partitions)]
    since: list[CameBefore] = [{} for _ in range(deployment.partitions)]
    moves: dict[tuple[str, str], RowMoves] = {}
    for placed in {placed.dataflow: placed for placed in deployment.placed()}.values():
        for route in placed.partitioning.routes:
            spread = _Spread(placed, route, deployment)
            held = [spread.held(*snapshot) for snapshot in snapshots]
            moves[placed.dataflow, route.stream] = spread.moves(held)
            for number, own in enumerate(spread.over_partitions(held)):
                for query, came in own.before.items():
                    since[number].setdefault(query, {})[route.stream] = int(came.sum())
                if len(own.rows):
                    part = Part(placed.partitioning_number, route.stream, 0, to_blob(own.rows))
                    parts[number].append((placed.dataflow, part))
    made = moved_matches([batch.made for batch, _ in snapshots], deployment, moves)
    found = []
    for carried, before_queries, matches in zip(parts, since, made, strict=True):
        batch = PartitionBatch(
            first.batch, first.epoch, first.newest, (), carried=tuple(carried), made=matches
        )
        note = note_of(batch, clock, deployment.streams, since=before_queries)
        found.append((note, batch))
    return found


def emitted(
    spread: Sequence[tuple[RetainedBatch, PartitionBatch]], deployment: Deployment
) -> dict[str, list[pa.Table]]:
    """Return changes that add up to what the new partitions would have sent to global stages."""
    found: dict[str, list[pa.Table]] = {}
    for number, (note, batch) in enumerate(spread):
        assert note.since is not None, "it is a snapshot"
        partition = Partition(deployment, number)
        for part, table in partition.load(batch, note.before, note.since, emit=True):
            found.setdefault(part, []).append(table)
    return found


class _Spread:
    """Spreads the rows of one stream in one dataflow."""

    def __init__(self, placed: PlacedQuery, route: Partitioning, deployment: Deployment) -> None:
        self._dataflow = placed.dataflow
        self._route = route
        self._partitions = deployment.partitions
        stream = next(known for known in deployment.streams if known.name == route.stream)
        self._time = stream.time
        self._schema = marked(stream.schema) if route.everywhere else stream.schema
        self._packer = Packer(deployment, route.stream)

    def held(self, batch: PartitionBatch, since: CameBefore) -> _Held:
        """Return what a partition holds, from its snapshot."""
        stream = self._route.stream
        tables = [
            from_blob(part.blob)
            for name, part in batch.carried
            if (name, part.stream) == (self._dataflow, stream)
        ]
        rows = pa.concat_tables([self._schema.empty_table(), *tables]).combine_chunks()
        ranks = np.arange(len(rows))
        return _Held(rows, {query: ranks < came.get(stream, 0) for query, came in since.items()})

    def over_partitions(self, held: Sequence[_Held]) -> Iterator[_Held]:
        """Yield what every new partition holds."""
        if self._route.everywhere:
            yield from self._broadcast(held)
            return
        together = _in_order(held, self._time)
        owners = self._packer.owners(self._route, together.rows)
        for number in range(self._partitions):
            yield together.of(owners == number)

    def moves(self, held: Sequence[_Held]) -> RowMoves:
        """Return where each row of each partition goes."""
        if self._route.everywhere:
            return RowMoves()
        rows = pa.concat_tables([one.rows for one in held]).combine_chunks()
        order = np.argsort(times_of(rows, self._time), kind="stable")
        owners = self._packer.owners(self._route, rows)
        counts = [len(one.rows) for one in held]
        return RowMoves.to_owners(owners, order, counts, self._partitions)

    def _broadcast(self, held: Sequence[_Held]) -> Iterator[_Held]:
        """Yield all rows for every new partition, with new marks of ownership."""
        rows = held[0].rows
        assert all(len(one.rows) == len(rows) for one in held), "all partitions hold the same rows"
        for one in held[1:]:
            # The values of a row that is only counted are in the partition that owns it.
            own = one.rows.column(OWN)
            columns = zip(one.rows.columns, rows.columns, strict=True)
            rows = pa.table(
                [pc.if_else(own, theirs, ours) for theirs, ours in columns], schema=rows.schema
            )
        rows = rows.drop_columns([OWN])
        owners = self._packer.owners(self._route, rows)
        for number in range(self._partitions):
            yield _Held(self._packer.marked(self._route, rows, owners == number), held[0].before)


def _in_order(held: Sequence[_Held], time: str) -> _Held:
    """Return the rows of all partitions in the order of time."""
    rows = pa.concat_tables([one.rows for one in held]).combine_chunks()
    order = np.argsort(times_of(rows, time), kind="stable")
    queries = {query for one in held for query in one.before}
    before = {
        query: np.concatenate(
            [one.before.get(query, np.zeros(len(one.rows), np.bool_)) for one in held]
        )[order]
        for query in queries
    }
    return _Held(rows.take(pa.array(order)), before)
