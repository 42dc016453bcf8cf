"""The files of a sink in a folder that every machine reaches.

A file gets a hidden name that no other attempt uses, and its final name from the driver when the
batch is written to the sink. Readers therefore never see a file of a failed attempt, nor half of
one.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from muntin.errors import RunError
from muntin.runtime.frames import make_folder, sync
from muntin.spark.json_lines import write_json
from muntin.spark.storage.tables import repeating

_HIDDEN = re.compile(r"\.(batch-(\d+).*)\.[0-9a-f]+\.part")


@dataclass(frozen=True)
class ResultTarget:
    """A folder that every machine reaches, and the format of the files in it."""

    folder: Path
    kind: str

    def write(self, results: pa.Table, batch: int, part: int | None = None) -> str:
        """Write a file and return its hidden name; ``part`` tells files of a batch apart.

        It is durable after :meth:`sync`.
        """
        make_folder(self.folder)
        suffix = "" if part is None else f"-{part:05d}"
        name = f".batch-{batch:09d}{suffix}.{self.kind}.{uuid.uuid4().hex[:12]}.part"
        try:
            with (self.folder / name).open("wb") as file:
                encode_results(results, self.kind, file)
        except BaseException:
            self.discard(name)
            raise
        return name

    def sync(self, name: str) -> None:
        """Synchronize a file with the disk; remove it if that fails."""
        try:
            sync(self.folder / name)
        except BaseException:
            self.discard(name)
            raise

    def publish(self, name: str) -> None:
        """Give a file its final name."""
        hidden = _HIDDEN.fullmatch(name)
        assert hidden is not None, "named by write"
        try:
            (self.folder / name).replace(self.folder / hidden[1])
        except FileNotFoundError as error:
            raise RunError(
                f"an executor has written {name}, which is not in {self.folder} on this machine",
                hint="Give a folder that is the same on every machine, such as a mounted one",
            ) from error

    def sweep(self, batch: int) -> None:
        """Remove files of earlier batches that were never published: their attempts were lost."""
        for path in self.folder.glob(".batch-*.part"):
            found = _HIDDEN.fullmatch(path.name)
            if found is not None and int(found[2]) < batch:
                path.unlink(missing_ok=True)

    def discard(self, name: str) -> None:
        """Remove a file that is not wanted after all."""
        (self.folder / name).unlink(missing_ok=True)


def encode_results(results: pa.Table, kind: str, file: IO[bytes]) -> None:
    """Write results in the format ``kind``: parquet, csv or json."""
    if kind == "parquet":
        pa.parquet.write_table(results, file, use_dictionary=repeating(results.schema))
    elif kind == "csv":
        pa.csv.write_csv(results, file)
    else:
        write_json(results, file)
