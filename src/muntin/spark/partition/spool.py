"""The spool: files that carry large outputs from partitions to the driver.

Small outputs travel through Spark. Large ones are written to a file in the checkpoint, which all
processes reach, and only the name travels: a socket to the worker, from there to Java, and from
Java to the driver takes several times as long as writing and mapping a file. A file belongs to one
attempt; the driver removes all files when the sinks have written the batch.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from muntin.runtime.frames import damaged
from muntin.spark.exchange.messages import PartitionOutput, from_blob, to_blob

_FEW = 65_536
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
    """Writes and reads the files in a folder."""

    folder: Path

    def put(self, output: PartitionOutput) -> Sent:
        """Write an output to a file if it is large; return what to send."""
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
        """Return the rows of an output that was sent."""
        if not file:
            return from_blob(blob)
        path = self.folder / file
        try:
            with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
                return reader.read_all()
        except (pa.ArrowException, OSError) as error:
            raise damaged(str(path)) from error

    def clear(self) -> None:
        """Remove all files: those of the last batch, and of failed attempts."""
        for path in self.folder.glob("*.arrow"):
            path.unlink(missing_ok=True)
