"""Split a task's rows of a stream into one table per partition and partitioning.

Invariant: the partition of a row depends only on its values and the deployment, never on the task
or the batch, so a replay sends every row to the same place. Rows that several partitions get have
one owner, which reports them if they are late.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.input_rows import read_rows
from muntin.errors import EvaluationError
from muntin.expressions.codes import real_codes, whole_codes
from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.expressions.salvage import MOST
from muntin.model.catalog import Stream
from muntin.model.clock import AFTER_ALL, BEFORE_ALL
from muntin.plan.join import Code, CodeKind
from muntin.planner.partitioning import OWN, Partitioning, owner_text
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.messages import TIMELESS, Part, to_blob
from muntin.spark.exchange.source_times import newest_by_source
from muntin.state.advance_limit import Segment, segments_of

Owners = npt.NDArray[np.int64]


class Packer:
    """Packs the rows of one stream under all partitionings in force in an epoch."""

    def __init__(self, deployment: Deployment, stream: str, epoch: int | None = None) -> None:
        self._stream: Stream = next(known for known in deployment.streams if known.name == stream)
        self._partitions = deployment.partitions
        self._max_advance = deployment.max_advance
        placed = deployment.placed()
        active = deployment.active(len(deployment.changes) if epoch is None else epoch)
        self._routes = sorted(
            {
                placed[place].partitioning_number: placed[place].partitioning.route(stream)
                for place in active
            }.items()
        )
        self._evaluator = Evaluator(Duck())

    def pack(self, rows: pa.Table, task: int) -> Iterator[tuple[int, Part]]:
        """Yield the parts of a task's rows with their partitions; empty parts are left out.

        Rows without a valid time go to the first partition, which reports them as late.
        """
        rows = read_rows(rows, self._stream.schema, f"stream {self._stream.name}")
        timed = self._timed(rows)
        if not timed.all():
            yield 0, Part(TIMELESS, self._stream.name, task, to_blob(rows.filter(pa.array(~timed))))
            rows = rows.filter(pa.array(timed))
        for number, route in self._routes:
            if route is None or not len(rows):
                continue
            for partition, table in self._split(route, rows, self.owners(route, rows)):
                blob = to_blob(table, compressed=False)  # Spark's shuffle compresses it
                yield partition, Part(number, self._stream.name, task, blob)

    def _split(
        self, route: Partitioning, rows: pa.Table, owners: Owners
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows of each partition that gets any, in their order."""
        if route.everywhere:
            for partition in range(self._partitions):
                yield partition, self.marked(route, rows, owners == partition)
            return
        # Sorting by small integers takes linear time, whatever the number of partitions.
        order = np.argsort(owners.astype(np.min_scalar_type(self._partitions)), kind="stable")
        sorted_rows = rows.combine_chunks().take(pa.array(order))
        ends = np.bincount(owners, minlength=self._partitions).cumsum()
        for partition, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if begin < end:
                yield partition, sorted_rows.slice(begin, end - begin)

    def part_of(
        self, partition: int, route: Partitioning, number: int, rows: pa.Table
    ) -> Part | None:
        """Return the part of one partition under partitioning ``number``; None if empty."""
        own = self.owners(route, rows) == partition
        table = self.marked(route, rows, own) if route.everywhere else rows.filter(pa.array(own))
        return Part(number, self._stream.name, 0, to_blob(table)) if len(table) else None

    def segments(self, rows: pa.Table) -> list[Segment]:
        """Return the segments of the valid times of rows."""
        times = _micros(rows.column(self._stream.time))
        return segments_of(times[(times > BEFORE_ALL) & (times < AFTER_ALL)], self._max_advance)

    def newest_by_source(self, rows: pa.Table, sources: pa.ChunkedArray) -> dict[str, int]:
        """Return the newest valid time of the rows of each source."""
        return newest_by_source(sources, _micros(rows.column(self._stream.time)))

    def _timed(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        times = _micros(rows.column(self._stream.time))
        timed: npt.NDArray[np.bool_] = (times > BEFORE_ALL) & (times < AFTER_ALL)
        return timed

    def owners(self, route: Partitioning, rows: pa.Table) -> Owners:
        """Return the partition that owns each row; the first if the key is NULL."""
        if route.key is None:
            codes, known = whole_codes(rows.column(self._stream.time)), None
        else:
            columns = sorted({reference.column for reference in route.key.expression.references})
            flat = rows.select(columns).rename_columns([f"0.{column}" for column in columns])
            try:
                column = self._key(route.key, flat)
            except EvaluationError:
                return self._owners_by_pieces(route, rows)
            known = column.is_valid().to_numpy() if column.null_count else None
            codes = real_codes(column) if route.key.kind is CodeKind.REAL else whole_codes(column)
        owners = (_scatter(codes) % np.uint64(self._partitions)).astype(np.int64)
        return owners if known is None else np.where(known, owners, 0)

    def _key(self, key: Code, rows: pa.Table) -> pa.ChunkedArray:
        if key.kind is CodeKind.HASH:
            return self._evaluator.raw([owner_text(key)], rows)[0]
        return self._evaluator.columns([key.expression], rows)[0]

    def _owners_by_pieces(self, route: Partitioning, rows: pa.Table) -> Owners:
        """Return the owner of each row where the key failed on too many rows at once.

        A key that fails on every row puts all of them into the first partition, where the queries
        that join by it fail as well and are suspended.
        """
        if len(rows) <= MOST:
            return np.zeros(len(rows), np.int64)
        pieces = [
            self.owners(route, rows.slice(start, MOST)) for start in range(0, len(rows), MOST)
        ]
        return np.concatenate(pieces)

    def marked(self, route: Partitioning, rows: pa.Table, own: npt.NDArray[np.bool_]) -> pa.Table:
        """Return broadcast rows with the mark whether a partition owns them."""
        if route.counted:
            # Rows with other owners are only counted, so their values are not sent.
            away = pa.array(~own)
            columns = [
                column
                if name == self._stream.time
                else pa.compute.if_else(away, pa.scalar(None, column.type), column)
                for name, column in zip(rows.column_names, rows.columns, strict=True)
            ]
            rows = pa.table(columns, schema=rows.schema)
        return rows.append_column(OWN, pa.array(own))


def _micros(times: pa.ChunkedArray) -> Owners:
    """Return times as integers; NULL becomes one that is out of range."""
    numbers = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
    micros: Owners = numbers.fill_null(BEFORE_ALL).to_numpy()
    return micros


def _scatter(codes: Owners) -> npt.NDArray[np.uint64]:
    """Mix the bits of codes, so that neighboring keys go to different partitions."""
    bits = codes.view(np.uint64)
    with np.errstate(over="ignore"):
        for _ in range(2):
            bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return bits ^ (bits >> np.uint64(32))
