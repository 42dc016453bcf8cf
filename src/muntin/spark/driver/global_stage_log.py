"""The log of a global stage in the checkpoint: the rows it has taken, to rebuild it.

There is one file for every batch that brought changes. Once there are more than twice as many
changes as rows left of them, a file has those rows instead and replaces all before it. A batch that
is retried reads the log up to the batch before and writes its file again; so older files are
removed only when a later batch comes, since then their batches are complete. Every file is a frame
and names the one before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from muntin.runtime.codec import decode, encode
from muntin.runtime.frames import read_file, write_file, writing
from muntin.spark.exchange.messages import from_blob, to_blob

_KIND = "stage"


@dataclass(frozen=True)
class Entry:
    """The changes of each part in a batch or, if ``whole``, the rows left of all changes so far.

    ``next`` is the next instant of EVERY, or the first instant of results.
    """

    batch: int
    previous: int | None
    whole: bool
    next: int | None
    parts: tuple[bytes, ...]

    def tables(self) -> list[pa.Table]:
        """Return the rows of each part."""
        return [from_blob(blob) for blob in self.parts]


class StageLog:
    """The files of one global stage in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: int | None = None

    def load(self, batch: int) -> list[Entry]:
        """Return the entries before a batch: a complete one and the changes since, or none."""
        numbers = [number for number in self._numbers() if number < batch]
        self._last = numbers[-1] if numbers else None
        entries: list[Entry] = []
        wanted = self._last
        while wanted is not None:
            entries.append(self._read(wanted))
            wanted = None if entries[-1].whole else entries[-1].previous
        return entries[::-1]

    def write(
        self, batch: int, tables: Sequence[pa.Table], following: int | None, *, whole: bool
    ) -> None:
        """Write the entry of a batch; replace one from an earlier attempt."""
        entry = Entry(
            batch, self._last, whole, following, tuple(to_blob(table) for table in tables)
        )
        with writing(self._folder):
            write_file(self._path(batch), encode(entry, _KIND))
        self._last = batch

    def prune(self, since: int) -> None:
        """Remove the files before a complete entry, once its batch is complete."""
        for number in self._numbers():
            if number < since:
                self._path(number).unlink(missing_ok=True)

    def _numbers(self) -> list[int]:
        return sorted(_numbered(self._folder)) if self._folder.is_dir() else []

    def _path(self, batch: int) -> Path:
        return self._folder / f"{batch:012d}.changes"

    def _read(self, batch: int) -> Entry:
        path = self._path(batch)
        return decode(read_file(path), _KIND, Entry, str(path))


def _numbered(folder: Path) -> Iterator[int]:
    return (int(path.stem) for path in folder.glob("*.changes") if path.stem.isdecimal())
