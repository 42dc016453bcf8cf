"""From a task's rows of a stream to one table for each partition and scheme."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.input_rows import read_rows
from muntin.errors import EvaluationError
from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.expressions.salvage import MOST
from muntin.model.catalog import Stream
from muntin.model.clock import AFTER_ALL, BEFORE_ALL
from muntin.operators.code_reader import real_codes, whole_codes
from muntin.plan.join import Code, CodeKind
from muntin.planner.distribution import OWN, Route, home_text
from muntin.spark.deployment import Deployment
from muntin.spark.exchange.messages import TIMELESS, Part, to_blob
from muntin.state.advance_limit import Segment, segments_of

Owners = npt.NDArray[np.int64]


class Packer:
    """Packs rows of one stream."""

    def __init__(self, program: Deployment, stream: str, epoch: int | None = None) -> None:
        self._stream: Stream = next(known for known in program.streams if known.name == stream)
        self._partitions = program.partitions
        self._max_advance = program.max_advance
        placed = program.placed()
        active = program.active(len(program.changes) if epoch is None else epoch)
        self._routes = sorted(
            {
                placed[place].partitioning_number: placed[place].partitioning.route(stream)
                for place in active
            }.items()
        )
        self._evaluator = Evaluator(Duck())

    def pack(self, rows: pa.Table, task: int) -> Iterator[tuple[int, Part]]:
        """The parts of a task's rows, with the partition of each; partitions that get none are left out.

        Rows without a time that counts go to the first partition, which tells of them as late.
        """
        rows = read_rows(rows, self._stream.schema, f"stream {self._stream.name}")
        timed = self._timed(rows)
        if not timed.all():
            yield 0, Part(TIMELESS, self._stream.name, task, to_blob(rows.filter(pa.array(~timed))))
            rows = rows.filter(pa.array(timed))
        for number, route in self._routes:
            if route is None or not len(rows):
                continue
            homes = self.homes(route, rows)
            for partition in range(self._partitions):
                table = self._for_partition(route, rows, homes == partition)
                if len(table):
                    yield partition, Part(number, self._stream.name, task, to_blob(table))

    def part_of(self, partition: int, route: Route, number: int, rows: pa.Table) -> Part | None:
        """What one partition gets of rows by a route of the scheme ``number``, if anything."""
        table = self._for_partition(route, rows, self.homes(route, rows) == partition)
        return Part(number, self._stream.name, 0, to_blob(table)) if len(table) else None

    def newest(self, rows: pa.Table) -> int | None:
        """The newest time of rows, if any has one that counts."""
        times = _micros(rows.column(self._stream.time))
        found = times[(times > BEFORE_ALL) & (times < AFTER_ALL)]
        return int(found.max()) if len(found) else None

    def segments(self, rows: pa.Table) -> list[Segment]:
        """Return the segments of the times of rows, as far as they count."""
        times = _micros(rows.column(self._stream.time))
        return segments_of(times[(times > BEFORE_ALL) & (times < AFTER_ALL)], self._max_advance)

    def _timed(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        times = _micros(rows.column(self._stream.time))
        timed: npt.NDArray[np.bool_] = (times > BEFORE_ALL) & (times < AFTER_ALL)
        return timed

    def homes(self, route: Route, rows: pa.Table) -> Owners:
        """The partition of each row; the first for rows whose key is NULL, which join nothing."""
        if route.key is None:
            codes, known = whole_codes(rows.column(self._stream.time)), None
        else:
            columns = sorted({reference.column for reference in route.key.expression.references})
            flat = rows.select(columns).rename_columns([f"0.{column}" for column in columns])
            try:
                column = self._key(route.key, flat)
            except EvaluationError:
                return self._homes_by_pieces(route, rows)
            known = column.is_valid().to_numpy() if column.null_count else None
            codes = real_codes(column) if route.key.kind is CodeKind.REAL else whole_codes(column)
        homes = (_scatter(codes) % np.uint64(self._partitions)).astype(np.int64)
        return homes if known is None else np.where(known, homes, 0)

    def _key(self, key: Code, rows: pa.Table) -> pa.ChunkedArray:
        if key.kind is CodeKind.HASH:
            return self._evaluator.raw([home_text(key)], rows)[0]
        return self._evaluator.columns([key.expression], rows)[0]

    def _homes_by_pieces(self, route: Route, rows: pa.Table) -> Owners:
        """The partition of each row where the key fails on so many that evaluation gave up.

        A key that fails whatever the rows puts them all into the first partition, where the queries that
        join by it fail as well, and are suspended.
        """
        if len(rows) <= MOST:
            return np.zeros(len(rows), np.int64)
        pieces = [self.homes(route, rows.slice(start, MOST)) for start in range(0, len(rows), MOST)]
        return np.concatenate(pieces)

    def _for_partition(self, route: Route, rows: pa.Table, own: npt.NDArray[np.bool_]) -> pa.Table:
        if not route.everywhere:
            return rows.filter(pa.array(own))
        if route.counted:
            # Rows of other homes are only counted: their values would be sent in vain.
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
    """Times as whole numbers; NULL as one that is out of range."""
    numbers = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
    micros: Owners = numbers.fill_null(BEFORE_ALL).to_numpy()
    return micros


def _scatter(codes: Owners) -> npt.NDArray[np.uint64]:
    """The bits of codes well mixed, so that neighbouring keys go to different partitions."""
    bits = codes.view(np.uint64)
    with np.errstate(over="ignore"):
        for _ in range(2):
            bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return bits ^ (bits >> np.uint64(32))
