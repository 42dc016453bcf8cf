"""New rows of several streams as one sequence of events for a join, in total order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.kernels.merging import merge_events
from muntin.operators.code_reader import CodeReader
from muntin.state.batch import Batch
from muntin.state.join_state import JoinState
from muntin.state.partition_state import PartitionState

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NewRows:
    """Rows of a stream that an operator has not seen: their positions, and how many rows the stream had before."""

    positions: Integers
    batch: Batch
    before: int


@dataclass(frozen=True)
class Events:
    """What kernels read: per event its source, formatted row, time, pushed-out position, stream counts."""

    sources: npt.NDArray[np.int32]
    offsets: Integers
    times: Integers
    pushed: Integers
    counts: Integers
    incoming: Integers
    arrivals: npt.NDArray[np.float64] | float

    def __len__(self) -> int:
        return len(self.times)


class EventMaker:
    """Formats new rows of each source and merges them."""

    def __init__(self, state: JoinState, readers: Sequence[CodeReader], *, counting: bool, retracting: bool) -> None:
        self._specs = state.specs
        self._widths = np.array([state.width(s) for s in range(len(state.specs))], np.int64)
        self._ends = [int(state.stores[s, layout.END]) for s in range(len(state.specs))]
        self._readers = readers
        self._counting = counting or any(spec.kind in {layout.COUNT, layout.PARTITIONED} for spec in state.specs)
        self._partitions = {
            s: PartitionState(spec.size) for s, spec in enumerate(state.specs) if spec.kind == layout.PARTITIONED
        }  # fmt: skip
        streams = 1 + max(spec.stream for spec in state.specs)
        readers_of = [[s for s, spec in enumerate(state.specs) if spec.stream == stream] for stream in range(streams)]
        self._sources = np.array([s for members in readers_of for s in members], np.int64)
        self._first_source = np.cumsum([0, *(len(members) for members in readers_of)]).astype(np.int64)
        self._source_stream = np.array([spec.stream for spec in state.specs], np.int64)
        self._tick_always = np.array(
            [retracting and any(self._specs[s].kind == layout.COUNT for s in members) for members in readers_of], np.uint8
        )

    def make(self, news: Sequence[NewRows]) -> Events:
        """The events of new rows, given per stream in the order of declaration."""
        wanted: list[npt.NDArray[np.uint8]] = []
        pushed: list[Integers] = []
        formatted: list[Integers] = []
        sources = len(self._specs)
        wanted_start, pushed_start, offset = np.zeros(sources, np.int64), np.full(sources, -1, np.int64), np.zeros(sources, np.int64)
        for s, spec in enumerate(self._specs):
            if spec.stream < 0:
                continue
            new = news[spec.stream]
            rows, keep = self.format(s, new)
            wanted_start[s] = sum(map(len, wanted))
            wanted.append(np.ones(len(new.batch), np.uint8) if keep is None else keep.view(np.uint8))
            offset[s] = sum(map(len, formatted))
            formatted.append(rows)
            if s in self._partitions:
                low, high = self._readers[s].read_partitions(new.batch.rows)
                pushed_start[s] = sum(map(len, pushed))
                pushed.append(self._partitions[s].push(low, high, new.positions))
        return self._merge(news, _joined(wanted, np.uint8), wanted_start, offset, _joined(pushed, np.int64), pushed_start, formatted)

    def format(self, s: int, new: NewRows) -> tuple[Integers, npt.NDArray[np.bool_] | None]:
        """The wanted rows of a source in the layout of its store, and which those are (None: all)."""
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

    def _merge(
        self, news: Sequence[NewRows], wanted: npt.NDArray[np.uint8], wanted_start: Integers, offset: Integers, pushed: Integers,
        pushed_start: Integers, formatted: Sequence[Integers],
    ) -> Events:  # fmt: skip
        starts = np.cumsum([0, *(len(new.batch) for new in news)]).astype(np.int64)
        ticks = sum(len(new.batch) for stream, new in enumerate(news) if self._tick_always[stream])
        most = len(wanted) + len(pushed) + ticks
        out = Events(
            np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64),
            np.zeros((most if self._counting else 0, len(self._specs)), np.int64), _joined(formatted, np.int64), 0.0,
        )  # fmt: skip
        rows = np.empty(most, np.int64)
        count = merge_events(
            _joined([new.batch.times for new in news], np.int64), starts, self._first_source, self._sources, self._source_stream,
            wanted, wanted_start, offset, self._widths, np.array([new.before for new in news], np.int64),
            pushed, pushed_start, self._tick_always, np.zeros(len(news), np.int64),
            out.sources, out.offsets, out.times, out.pushed, out.counts, rows,
        )  # fmt: skip
        counts = out.counts[:count] if self._counting else np.zeros((1, len(self._specs)), np.int64)
        arrivals = _arrivals(news, rows[:count])
        return Events(out.sources[:count], out.offsets[:count], out.times[:count], out.pushed[:count], counts, out.incoming, arrivals)

    def nbytes(self) -> int:
        """Bytes of the partitions."""
        return sum(partition.nbytes() for partition in self._partitions.values())


def _joined(parts: Sequence[npt.NDArray[np.generic]], kind: type[np.generic]) -> npt.NDArray[np.generic]:
    if len(parts) == 1:
        return np.ascontiguousarray(parts[0])
    return np.concatenate([np.empty(0, kind), *parts]).astype(kind, copy=False)


def _arrivals(news: Sequence[NewRows], rows: Integers) -> npt.NDArray[np.float64] | float:
    """When each event's row arrived; one number when all came together."""
    moments = {float(new.batch.arrivals[0]) for new in news if len(new.batch)} | {float(new.batch.arrivals[-1]) for new in news if len(new.batch)}
    every = [new.batch.arrivals for new in news]
    if len(moments) == 1 and all(len(part) < 3 or part.strides == (0,) for part in every):
        return moments.pop()
    return _joined(every, np.float64)[rows]

