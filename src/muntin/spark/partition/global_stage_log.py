"""The log of a global stage in the checkpoint: the rows it has taken, to rebuild it.

There is one file for every batch that brought changes. Once there are more than twice as many
changes as rows left of them, a file has those rows instead and replaces all before it. A batch that
is retried reads the log up to the batch before and writes its file again; so older files are
removed only when a later batch comes, since then their batches are complete. Every file is a frame
and names the one before it. A batch that another driver left incomplete may have changes there and
none when it runs again, so files of replaced drivers are ignored as their manifests are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from muntin.runtime.codec import decode, encode
from muntin.runtime.frames import PREFIX, Buffer, length_of
from muntin.spark.exchange.messages import from_blob, to_blob
from muntin.spark.storage import Storage

_KIND = "stage"
_SUFFIX = ".changes"


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


def stage_folder(place: int, partitions: int) -> str:
    """Return the folder of the log of a stage; another number of partitions sends other rows."""
    return f"{place}-{partitions}"


class StageLog:
    """The files of one global stage in a storage; ``size`` is the length of those it relies on."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._last: int | None = None
        self._pruned: int | None = None
        self.size = 0

    def load(self, batch: int) -> list[Entry]:
        """Return the entries before a batch: a complete one and the changes since, or none."""
        numbers = self._before(batch)
        self._last = numbers[-1] if numbers else None
        self.size = 0
        entries: list[Entry] = []
        wanted = self._last
        while wanted is not None:
            content = self._storage.get(_name(wanted))
            self.size += len(content)
            entries.append(self._decoded(wanted, content))
            wanted = None if entries[-1].whole else entries[-1].previous
        return entries[::-1]

    def length(self, batch: int) -> int:
        """Return the length of the entries before a batch, of which none is read."""
        starts = (self._storage.start_of(_name(number), PREFIX) for number in self._before(batch))
        return sum(length_of(start) for start in starts if start is not None)

    def write(
        self, batch: int, tables: Sequence[pa.Table], following: int | None, *, whole: bool
    ) -> None:
        """Write the entry of a batch; replace one from an earlier attempt."""
        entry = Entry(
            batch, self._last, whole, following, tuple(to_blob(table) for table in tables)
        )
        content = encode(entry, _KIND)
        self._storage.put(_name(batch), content)
        self.size = len(content) if whole else self.size + len(content)
        self._last = batch

    def prune(self, since: int) -> None:
        """Remove the files before a complete entry, once its batch is complete."""
        if since == self._pruned:
            return
        self._pruned = since
        self._storage.delete([_name(number) for number in self._numbers() if number < since])

    def _numbers(self) -> list[int]:
        stems = (name.removesuffix(_SUFFIX) for name in self._storage.names())
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def _before(self, batch: int) -> list[int]:
        """Return the numbers of the entries before a batch that count, in order."""
        earlier = {_name(number): number for number in self._numbers() if number < batch}
        return [earlier[name] for name in self._storage.counting(earlier)]

    def _decoded(self, batch: int, content: Buffer) -> Entry:
        return decode(content, _KIND, Entry, self._storage.where(_name(batch)))


def _name(batch: int) -> str:
    return f"{batch:012d}{_SUFFIX}"
