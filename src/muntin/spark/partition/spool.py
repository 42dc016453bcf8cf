"""The spool: files that carry large outputs from partitions to the driver.

Small outputs travel through Spark. Large ones are written to a file in the checkpoint, which all
processes reach, and only the name travels: a socket to the worker, from there to Java, and from
Java to the driver takes several times as long as writing and mapping a file. A file belongs to one
attempt; the driver removes all files when the manifest has completed the batch.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import pyarrow as pa

from muntin.runtime.frames import damaged
from muntin.spark.exchange.messages import PartitionOutput, from_blob, to_blob
from muntin.spark.storage import Storage

FEW = 65_536
"""The largest output in bytes that travels through Spark."""


@dataclass(frozen=True)
class Sent:
    """An output in transit: its bytes, or the name of the file that contains them."""

    kind: str
    name: str
    rows: int
    blob: bytes
    file: str


@dataclass(frozen=True)
class Spool:
    """Writes and reads the files in a storage."""

    storage: Storage

    def put(self, output: PartitionOutput) -> Sent:
        """Write an output to a file if it is large; return what to send."""
        rows = len(output.table)
        if output.table.nbytes <= FEW:
            return Sent(output.kind, output.name, rows, to_blob(output.table), "")
        name = f"{uuid.uuid4().hex}.arrow"
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, output.table.schema) as writer:
            writer.write_table(output.table)
        self.storage.put(name, memoryview(sink.getvalue()), durable=False)
        return Sent(output.kind, output.name, rows, b"", name)

    def take(self, blob: bytes, file: str) -> pa.Table:
        """Return the rows of an output that was sent."""
        if not file:
            return from_blob(blob)
        try:
            with pa.ipc.open_file(pa.py_buffer(self.storage.get(file))) as reader:
                return reader.read_all()
        except (pa.ArrowException, OSError) as error:
            raise damaged(self.storage.where(file)) from error

    def clear(self) -> None:
        """Remove all files: those of the last batch, and of failed attempts."""
        self.storage.delete(self.storage.names())
