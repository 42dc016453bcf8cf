"""New rows of several streams as one sequence of events for a join, in total order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.kernels.arrays import EventArrays
from muntin.kernels.total_order import Readers, StreamRows, merge_events
from muntin.operators.code_reader import CodeReader
from muntin.state.batch import Batch
from muntin.state.join_state import JoinState
from muntin.state.partition_state import PartitionState

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NewRows:
    """New rows of a stream: their positions, and how many rows the stream had before."""

    positions: Integers
    batch: Batch
    before: int


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
        """The arrays as kernels take them."""
        return EventArrays(
            self.sources, self.offsets, self.times, self.counts, self.pushed, self.incoming
        )


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


class EventMaker:
    """Formats new rows of each source and merges them."""

    def __init__(
        self, state: JoinState, readers: Sequence[CodeReader], *, counting: bool, retracting: bool
    ) -> None:
        self._specs = state.specs
        self._widths = np.array([state.width(s) for s in range(len(state.specs))], np.int64)
        self._ends = [int(state.stores[s, layout.END]) for s in range(len(state.specs))]
        self._readers = readers
        self._counting = counting or any(
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
                retracting and any(self._specs[s].kind == layout.COUNT for s in members)
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

    def format(self, s: int, new: NewRows) -> tuple[Integers, npt.NDArray[np.bool_] | None]:
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
