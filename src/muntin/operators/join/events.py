"""New rows of several streams as one sequence of events for a join, in total order.

The values of a row become the integers that a join compares. Cost: one pass over the key columns of
new rows, and one merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions.codes import real_codes, whole_codes
from muntin.expressions.evaluator import Evaluator
from muntin.expressions.predicate_order import PredicateOrder
from muntin.kernels import layout
from muntin.kernels.arrays import EventArrays
from muntin.kernels.total_order import Readers, StreamRows, merge_events
from muntin.model.settings import Algorithm
from muntin.model.window import PartitionedWindow
from muntin.plan.expression import ColumnRef, quote
from muntin.plan.join import Code, CodeKind, JoinPlan, SourcePlan
from muntin.state.batch import Batch
from muntin.state.join_state import JoinState
from muntin.state.partition_state import PartitionState

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class NewRows:
    """New rows of a stream: their positions, and how many rows the stream had before."""

    positions: Integers
    batch: Batch
    before: int

    @property
    def after(self) -> int:
        """Return the number of rows of the stream, these included."""
        return self.before + len(self.batch)


@dataclass(frozen=True)
class Events:
    """Events as arrays: source, formatted row, time, pushed-out position, stream counts."""

    sources: npt.NDArray[np.int32]
    offsets: Integers
    times: Integers
    pushed: Integers
    counts: Integers
    incoming: Integers
    arrivals: npt.NDArray[np.float64] | float

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def arrays(self) -> EventArrays:
        """Return the arrays as kernels take them."""
        return EventArrays(
            self.sources, self.offsets, self.times, self.counts, self.pushed, self.incoming
        )

    def arrived(self, numbers: Integers) -> npt.NDArray[np.float64] | float:
        """Return the arrival time of the rows of some events; one number if all came together."""
        arrivals = self.arrivals
        if isinstance(arrivals, float):
            return arrivals
        # A retraction at the end of a batch belongs to no event.
        return arrivals[np.minimum(numbers, len(arrivals) - 1)] if len(arrivals) else 0.0


_NONE = np.empty(0, np.int64)
NO_EVENTS = Events(
    np.empty(0, np.int32), _NONE, _NONE, _NONE, np.zeros((1, 1), np.int64), _NONE, 0.0
)


@dataclass(frozen=True)
class _Parts:
    """New rows by source, and where the part of each source begins once they are concatenated."""

    stored: list[npt.NDArray[np.uint8]]
    stored_start: Integers
    formatted: list[Integers]
    offset: Integers
    pushed: list[Integers]
    pushed_start: Integers

    @classmethod
    def of(cls, sources: int) -> _Parts:
        return cls(
            [],
            np.zeros(sources, np.int64),
            [],
            np.zeros(sources, np.int64),
            [],
            np.full(sources, -1, np.int64),
        )


class CodeReader:
    """Reads filters and codes of one source: from the values of rows to integers.

    A row that fails a filter, or whose code is NULL, can be in no result (a comparison with NULL is
    never true) and is not stored; it still counts in count windows.
    """

    def __init__(
        self, source: int, plan: SourcePlan, partition: tuple[str, ...], evaluator: Evaluator
    ) -> None:
        self._plan = plan
        self._evaluator = evaluator
        self._filters = PredicateOrder(plan.filters, evaluator)
        expressions = [*plan.filters, *(code.expression for code in plan.codes)]
        references = {
            reference for expression in expressions for reference in expression.references
        }
        self._partition = tuple(ColumnRef(source, column) for column in partition)
        self._columns = tuple(sorted(references | set(self._partition)))

    def _flat(self, rows: pa.Table) -> pa.Table:
        if not self._columns:
            return rows.select([])
        return rows.select([reference.column for reference in self._columns]).rename_columns(
            [ref.flat for ref in self._columns]
        )

    def read(self, rows: pa.Table) -> tuple[Integers, Mask | None]:
        """Return the codes of all rows, one line per row, and which rows to store; None: all."""
        if not len(rows):
            return np.empty((0, len(self._plan.codes)), np.int64), None
        batch = self._flat(rows)
        wanted = self._filters.holds(batch) if self._plan.filters else None
        codes = np.empty((len(rows), len(self._plan.codes)), np.int64)
        for number, code in enumerate(self._plan.codes):
            values, known = self._values(code, batch)
            codes[:, number] = values
            if known is not None:
                wanted = known if wanted is None else wanted & known
        return codes, wanted

    def _values(self, code: Code, batch: pa.Table) -> tuple[Integers, Mask | None]:
        if code.kind is CodeKind.HASH:
            text = code.expression.sql
            (column,) = self._evaluator.raw(
                [f"CASE WHEN ({text}) IS NOT NULL THEN hash({text}) END"], batch
            )
        else:
            (column,) = self._evaluator.columns([code.expression], batch)
        known = column.is_valid().to_numpy() if column.null_count else None
        if code.kind is CodeKind.REAL:
            return real_codes(column), known
        return whole_codes(column), known

    def read_partitions(self, rows: pa.Table) -> tuple[Integers, Integers]:
        """Return the two words of each row's partition key.

        That is the value if it is one number, else 128 bits of hash.
        """
        if not len(rows):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        batch = self._flat(rows)
        columns = [batch.column(reference.flat) for reference in self._partition]
        if len(columns) == 1 and (
            _is_whole(columns[0].type) or pa.types.is_float64(columns[0].type)
        ):
            low = whole_codes(columns[0]) if _is_whole(columns[0].type) else real_codes(columns[0])
            return low, (~columns[0].is_valid().to_numpy()).astype(np.int64)
        keys = ", ".join(
            _partition_text(quote(ref.flat), column.type)
            for ref, column in zip(self._partition, columns, strict=True)
        )
        digest = f"md5(to_json([{keys}])::VARCHAR)"
        texts = [f"('0x' || substr({digest}, {start}, 16))::UBIGINT" for start in (1, 17)]
        low_column, high_column = self._evaluator.raw(texts, batch)
        return whole_codes(low_column), whole_codes(high_column)


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind)) and kind != pa.uint64()


def _partition_text(name: str, kind: pa.DataType) -> str:
    """Return SQL for a JSON text that is equal for equal values: one zero and one NaN."""
    if pa.types.is_floating(kind):
        return f"to_json(CASE WHEN isnan({name}) THEN 'nan' ELSE ({name} + 0)::VARCHAR END)"
    return f"to_json({name})"


class EventMaker:
    """Formats new rows of each source and merges them."""

    def __init__(self, plan: JoinPlan, state: JoinState, evaluator: Evaluator) -> None:
        self._state = state
        self._specs = state.specs
        self._widths = np.array([state.width(s) for s in range(len(state.specs))], np.int64)
        self._ends = [int(state.stores[s, layout.END]) for s in range(len(state.specs))]
        self._readers = [
            CodeReader(
                s,
                planned,
                source.window.columns if isinstance(source.window, PartitionedWindow) else (),
                evaluator,
            )
            for s, (planned, source) in enumerate(
                zip(plan.sources, plan.query.sources, strict=True)
            )
        ]
        self._counting = plan.algorithm is not Algorithm.EAGER or any(
            spec.kind in {layout.COUNT, layout.PARTITIONED} for spec in state.specs
        )
        self._partitions = {
            s: PartitionState(spec.size)
            for s, spec in enumerate(state.specs)
            if spec.kind == layout.PARTITIONED
        }  # fmt: skip
        streams = 1 + max(spec.stream for spec in state.specs)
        readers_of = [
            [s for s, spec in enumerate(state.specs) if spec.stream == stream]
            for stream in range(streams)
        ]
        self._sources = np.array([s for members in readers_of for s in members], np.int64)
        self._first_source = np.cumsum([0, *(len(members) for members in readers_of)]).astype(
            np.int64
        )
        self._source_stream = np.array([spec.stream for spec in state.specs], np.int64)
        self._tick_always = np.array(
            [
                plan.retracting and any(self._specs[s].kind == layout.COUNT for s in members)
                for members in readers_of
            ],
            np.uint8,
        )

    def make(self, news: Sequence[NewRows]) -> Events:
        """Return the events of new rows, given per stream in the order of declaration."""
        parts = _Parts.of(len(self._specs))
        for s, spec in enumerate(self._specs):
            if spec.stream < 0:
                continue
            new = news[spec.stream]
            if len(new.batch):
                # Stores keep only the low halves of positions, relative to the newest one.
                last = self._state.stores[s]
                last[layout.LAST] = max(int(new.positions[0]) - 1, int(last[layout.LAST]))
            rows, keep = self.format(s, new)
            parts.stored_start[s] = sum(map(len, parts.stored))
            parts.stored.append(
                np.ones(len(new.batch), np.uint8) if keep is None else keep.view(np.uint8)
            )
            parts.offset[s] = sum(map(len, parts.formatted))
            parts.formatted.append(rows)
            if s in self._partitions:
                low, high = self._readers[s].read_partitions(new.batch.rows)
                parts.pushed_start[s] = sum(map(len, parts.pushed))
                parts.pushed.append(self._partitions[s].push(low, high, new.positions))
        return self._merge(news, parts)

    def format(self, s: int, new: NewRows) -> tuple[Integers, Mask | None]:
        """Return the rows to store, in the layout of the store, and which those are (None: all)."""
        codes, keep = self._readers[s].read(new.batch.rows)
        coordinates = new.batch.times if self._specs[s].kind == layout.TIME else new.positions
        positions = new.positions
        if keep is not None and keep.all():
            keep = None
        if keep is not None:
            codes, coordinates, positions = codes[keep], coordinates[keep], positions[keep]
        rows = np.zeros((len(positions), int(self._widths[s])), np.int64)
        rows[:, layout.COORD] = coordinates
        rows.view(np.int32)[:, layout.POSITION] = positions.astype(np.uint32).view(np.int32)
        rows[:, layout.CODES : layout.CODES + codes.shape[1]] = codes
        if self._ends[s] >= 0:
            rows[:, self._ends[s]] = layout.NEVER
        return rows.reshape(-1), keep

    def _merge(self, news: Sequence[NewRows], parts: _Parts) -> Events:
        starts = np.cumsum([0, *(len(new.batch) for new in news)]).astype(np.int64)
        ticks = sum(len(new.batch) for stream, new in enumerate(news) if self._tick_always[stream])
        stored = np.concatenate(parts.stored)
        pushed = np.concatenate([_NONE, *parts.pushed])
        most = len(stored) + len(pushed) + ticks
        sources = np.empty(most, np.int32)
        offsets, times, out_pushed, rows = (np.empty(most, np.int64) for _ in range(4))
        counts = np.zeros((most if self._counting else 0, len(self._specs)), np.int64)
        incoming = np.concatenate(parts.formatted)
        readers = Readers(
            self._first_source, self._sources, self._source_stream, self._widths, self._tick_always
        )
        arrived = StreamRows(
            np.concatenate([new.batch.times for new in news]), starts,
            np.array([new.before for new in news], np.int64),
            stored, parts.stored_start, parts.offset, pushed, parts.pushed_start,
        )  # fmt: skip
        out = EventArrays(sources, offsets, times, counts, out_pushed, incoming)
        count = merge_events(readers, arrived, np.zeros(len(news), np.int64), out, rows)
        counts = counts[:count] if self._counting else np.zeros((1, len(self._specs)), np.int64)
        return Events(
            sources[:count],
            offsets[:count],
            times[:count],
            out_pushed[:count],
            counts,
            incoming,
            _arrivals(news, rows[:count]),
        )

    def of_table(self, s: int, table: pa.Table) -> Events:
        """Return the rows of the stored table of a source as events."""
        positions = np.arange(len(table), dtype=np.int64)
        batch = Batch(table, positions, np.zeros(len(table)))
        rows, _ = self.format(s, NewRows(positions, batch, 0))
        width = int(self._widths[s])
        count = len(rows) // width
        return Events(
            np.full(count, s, np.int32),
            np.arange(count, dtype=np.int64) * width,
            np.zeros(count, np.int64),
            np.full(count, -1, np.int64),
            np.zeros((1, 1), np.int64),
            rows,
            0.0,
        )

    def kept(self, s: int) -> Integers:
        """Return the positions in a partitioned window, also of rows that only count."""
        return self._partitions[s].positions()

    def nbytes(self) -> int:
        """Return the bytes of the partitions."""
        return sum(partition.nbytes() for partition in self._partitions.values())


def _arrivals(news: Sequence[NewRows], rows: Integers) -> npt.NDArray[np.float64] | float:
    """Return the arrival time of the row of each event; one number if all came together."""
    every = [new.batch.arrivals for new in news if len(new.batch)]
    moments = {float(part[0]) for part in every}
    if len(moments) == 1 and all(part.strides == (0,) for part in every):
        return moments.pop()
    return np.concatenate([np.empty(0, np.float64), *every])[rows]
