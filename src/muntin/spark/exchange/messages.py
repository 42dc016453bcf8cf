"""The messages between packing tasks, partitions and the driver.

Tables travel as Arrow streams. A :class:`PartitionBatch` is everything that one partition gets of a
micro-batch; it is also what the checkpoint keeps as state, so it must hold all that a replay needs:
rows, times, control rows and the epoch, but no clock and nothing that differs between attempts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy.typing as npt
import pyarrow as pa

from muntin.state.advance_limit import Segment

TIMELESS = -2
"""The partitioning number of rows whose time is NULL or out of range."""

UNREADABLE = -3
"""The partitioning number of messages that cannot be read."""

SOURCES = -4
"""The partitioning number of the newest times of sources, which is no rows."""

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def to_blob(table: pa.Table, *, compressed: bool = True) -> bytes:
    """Return a table as bytes; without compression that takes about a twentieth of the time."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS if compressed else None) as writer:
        writer.write_table(table)
    blob: bytes = sink.getvalue().to_pybytes()
    return blob


def from_blob(blob: memoryview | bytes) -> pa.Table:
    """Return the table in the bytes of :func:`to_blob`."""
    with pa.ipc.open_stream(pa.py_buffer(blob)) as reader:
        return reader.read_all()


@dataclass(frozen=True)
class Part:
    """Rows of one stream from one source task, for one partition under one partitioning."""

    partitioning: int
    stream: str
    task: int
    blob: memoryview | bytes


RoutedRows: TypeAlias = dict[tuple[int, str], pa.Table]
"""Rows of each partitioning and stream."""


def rows_of(parts: Iterable[Part]) -> RoutedRows:
    """Return the rows of each partitioning and stream, tasks in their order."""
    grouped: dict[tuple[int, str], list[pa.Table]] = {}
    for part in sorted(parts, key=lambda part: (part.partitioning, part.stream, part.task)):
        grouped.setdefault((part.partitioning, part.stream), []).append(from_blob(part.blob))
    return {key: pa.concat_tables(tables).combine_chunks() for key, tables in grouped.items()}


@dataclass(frozen=True)
class PartitionBatch:
    """A partition's part of a micro-batch.

    Parameters
    ----------
    batch, epoch : int
        The batch, and the number of changes of the deployment in force in it.
    newest : mapping of str to int
        The newest time of each stream anywhere in the batch, not only in this partition.
    parts : tuple of Part
        The rows of this partition.
    moment : int, optional
        The time of the heartbeat, if one arrived.
    controls : tuple of str
        The control rows.
    carried : tuple of (str, Part)
        The first rows of dataflows that are opened in this batch, with the names of the dataflows.
    segments : mapping
        The segments of the times of each stream; see :mod:`muntin.state.advance_limit`.
    max_advance : int, optional
        The longest allowed gap between segments; None if there is no limit.
    stamps : mapping of str to int
        The instants before which no more rows come of the streams that are stamped on arrival.
    sources : mapping
        The newest time of each source of the streams that have several, anywhere in the batch; see
        :mod:`muntin.spark.exchange.source_times`.
    made : mapping
        Of a snapshot, the matches that limited joins have made: see
        :class:`muntin.runtime.snapshot.QuerySnapshot`.
    """

    batch: int
    epoch: int
    newest: Mapping[str, int]
    parts: tuple[Part, ...]
    moment: int | None = None
    controls: tuple[str, ...] = ()
    carried: tuple[tuple[str, Part], ...] = ()
    segments: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    max_advance: int | None = None
    stamps: Mapping[str, int] = field(default_factory=dict)
    made: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    sources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def all_parts(self) -> tuple[Part, ...]:
        """Return its parts, including the carried ones."""
        return (*self.parts, *(part for _, part in self.carried))


@dataclass(frozen=True)
class PartitionOutput:
    """Rows that leave a partition: results, late rows, or rows that a control row requested."""

    kind: str
    name: str
    table: pa.Table
