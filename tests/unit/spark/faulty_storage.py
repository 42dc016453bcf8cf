"""A storage that fails as disks, networks and object stores do, at chosen files."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from muntin.runtime.frames import Buffer, CheckpointError
from muntin.spark.storage import Location, Storage


@dataclass
class Faults:
    """What fails, by the start of the names of files and folders; tests change it as they go.

    ``full``: nothing can be written. ``gone``: nothing can be read or listed. ``torn``: half of
    what is written arrives, then the writer fails. ``unsure``: it arrives, and the writer gets an
    error all the same. ``stale``: listings are those of the first call. ``slow``: seconds per call.
    """

    full: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    slow: float = 0.0
    listings: int = 0
    _seen: dict[str, list[str]] = field(default_factory=dict)

    def hit(self, kind: list[str], name: str) -> bool:
        return any(name.startswith(start) for start in kind)

    def remembered(self, folder: str, now: list[str]) -> list[str]:
        """Return the first listing of a folder while it is stale."""
        self.listings += 1
        if not self.hit(self.stale, folder):
            self._seen.pop(folder, None)
            return now
        return self._seen.setdefault(folder, now)


def failure(name: str, code: int) -> CheckpointError:
    return CheckpointError(f"{name} cannot be written to: {os.strerror(code)}")


@dataclass(frozen=True)
class FaultyStorage(Storage):
    """Passes calls on to another storage unless the faults say otherwise."""

    inner: Storage
    faults: Faults

    @property
    def place(self) -> Location:
        return self.inner.place

    @property
    def url(self) -> str:
        return self.inner.url

    def below(self, folder: str) -> Storage:
        return FaultyStorage(self.inner.below(folder), self.faults)

    def put(self, name: str, content: Buffer, *, durable: bool = True) -> None:
        time.sleep(self.faults.slow)
        if self.faults.hit(self.faults.full, name):
            raise failure(name, errno.ENOSPC)
        if self.faults.hit(self.faults.torn, name):
            self.inner.put(name, bytes(content)[: len(content) // 2], durable=durable)
            raise failure(name, errno.EIO)
        self.inner.put(name, content, durable=durable)
        if self.faults.hit(self.faults.unsure, name):
            raise failure(name, errno.ETIMEDOUT)

    def find(self, name: str) -> Buffer | None:
        time.sleep(self.faults.slow)
        self._reach(name)
        return self.inner.find(name)

    def start_of(self, name: str, length: int) -> bytes | None:
        self._reach(name)
        return self.inner.start_of(name, length)

    def names(self, folder: str = "") -> list[str]:
        time.sleep(self.faults.slow)
        self._reach(folder)
        return self.faults.remembered(folder, self.inner.names(folder))

    def tree(self, folder: str = "") -> list[str]:
        self._reach(folder)
        return self.faults.remembered(f"{folder}/", self.inner.tree(folder))

    def delete(self, names: Iterable[str]) -> None:
        chosen = list(names)
        for name in chosen:
            self._reach(name)
        self.inner.delete(chosen)

    def _reach(self, name: str) -> None:
        if self.faults.hit(self.faults.gone, name):
            raise CheckpointError(f"{name} cannot be read: {os.strerror(errno.EIO)}")
