"""The way of outputs from partitions to the driver.

A few rows travel through Spark. Many are left in a file in the checkpoint, which all processes reach, and only its name travels:
to go through a socket to the worker, from there to Java, and from Java to the driver takes several times as long as to write
and map a file. A file belongs to one attempt; the driver removes all of them when the sinks have the batch.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from muntin.spark.exchange.frames import damaged
from muntin.spark.exchange.messages import Output, from_blob, to_blob

_FEW = 65_536
"""Bytes that may as well travel."""


@dataclass(frozen=True)
class Sent:
    """An output on its way: its bytes, or the name of the file that has them."""

    kind: str
    name: str
    rows: int
    blob: bytes
    file: str


@dataclass(frozen=True)
class Spool:
    """The folder of the files."""

    folder: Path

    def put(self, output: Output) -> Sent:
        """Send an output."""
        rows = len(output.table)
        if output.table.nbytes <= _FEW:
            return Sent(output.kind, output.name, rows, to_blob(output.table), "")
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{uuid.uuid4().hex}.arrow"
        with (
            pa.OSFile(str(self.folder / name), "wb") as sink,
            pa.ipc.new_file(sink, output.table.schema) as writer,
        ):
            writer.write_table(output.table)
        return Sent(output.kind, output.name, rows, b"", name)

    def take(self, blob: bytes, file: str) -> pa.Table:
        """The rows of an output that came."""
        if not file:
            return from_blob(blob)
        path = self.folder / file
        try:
            with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
                return reader.read_all()
        except (pa.ArrowException, OSError) as error:
            raise damaged(str(path)) from error

    def clear(self) -> None:
        """Remove all files: those of the last batch, and of attempts that came to nothing."""
        for path in self.folder.glob("*.arrow"):
            path.unlink(missing_ok=True)
