"""What travels between the stages: tables as compressed Arrow streams, and a partition's share of a micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from muntin.state.advance_limit import Segment

TIMELESS = -2
"""The scheme of rows whose time is NULL or out of range: they belong to no place in the order."""

CONTROL = -3
"""The scheme of control rows."""

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def to_blob(table: pa.Table, *, compressed: bool = True) -> bytes:
    """A table as bytes; not compressed it takes about a twentieth of the time."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS if compressed else None) as writer:
        writer.write_table(table)
    blob: bytes = sink.getvalue().to_pybytes()
    return blob


def from_blob(blob: bytes) -> pa.Table:
    """The table of such bytes."""
    with pa.ipc.open_stream(pa.py_buffer(blob)) as reader:
        return reader.read_all()


@dataclass(frozen=True)
class Part:
    """Rows of one stream from one task of the source, for one partition under one scheme."""

    partitioning: int
    stream: str
    task: int
    blob: bytes


@dataclass(frozen=True)
class PartitionBatch:
    """What a partition gets of a micro-batch: its parts, and the newest time of every stream anywhere in the batch.

    ``segments`` are those of the times of each stream, and ``max_advance`` the longest gap between them, None if there is
    no limit; see :mod:`muntin.state.advance_limit`.

    ``moment`` is the time of the heartbeat, if one came; ``epoch`` how many changes of the program are in force. ``controls``
    are the control rows, ``carried`` the rows with which lanes begin that are opened in this batch, each with the name of its lane.
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

    def all_parts(self) -> tuple[Part, ...]:
        """Its parts and those that are carried."""
        return (*self.parts, *(part for _, part in self.carried))


@dataclass(frozen=True)
class Output:
    """Rows that leave a partition: results of a query, late rows of a stream, rows that a control row asked for."""

    kind: str
    name: str
    table: pa.Table
