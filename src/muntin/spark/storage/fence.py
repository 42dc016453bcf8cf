"""Storages for drivers that another driver may have replaced without their knowledge.

A driver that was paused may wake up after another one has taken over the checkpoint. Two rules keep
it from doing harm, however long it was paused and between whichever two steps:

- *It overwrites nothing.* The name of each file that a driver replaces ends with the driver's
  token (:class:`VersionedStorage`). Readers take the version with the greatest token, which is that
  of the driver that took over last: when it begins, a driver writes a version of each file whose
  newest version matters, an empty one if there is none. Of files that belong to a batch, versions
  for batches after which a later driver began are ignored. All other files have names that nobody
  else uses.
- *It deletes nothing that a later driver has written.* :class:`FencedStorage` checks the lease
  after the caller has chosen the names and before it deletes them. If no later claim exists then,
  everything that the caller had seen was written by this driver or an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muntin.runtime.frames import Buffer
from muntin.spark.storage.interface import Location, Storage

_MARK = "@"


class Fence:
    """The right to change a checkpoint; this one is for checkpoints that nobody contends for."""

    @property
    def token(self) -> str:
        """Return the token of the holder; tokens of later holders are greater as texts."""
        return ""

    def check(self) -> None:
        """Raise CheckpointError if a later holder exists."""

    def starts(self) -> dict[str, int]:
        """Return the batch after which the last holder and those before it began, by token."""
        return {}


@dataclass(frozen=True)
class LentFence(Fence):
    """The right of a driver as its tasks have it: they write under its token, and delete nothing.

    A task may outlive the right of its driver. What it writes then is ignored, like what the driver
    itself would write.
    """

    lent: str
    """The token of the driver."""
    begun: Mapping[str, int]

    @property
    def token(self) -> str:
        """The token of the driver."""
        return self.lent

    def check(self) -> None:
        """Refuse: only the driver knows whether it still has the right to delete."""
        raise AssertionError("tasks delete nothing of what their driver replaces")

    def starts(self) -> dict[str, int]:
        """Return after which batches the driver and those before it began, by token."""
        return dict(self.begun)


def counts(batch: int, token: str, starts: Mapping[str, int]) -> bool:
    """Return whether what a holder has written for a batch counts.

    It does not if a later holder has begun after an earlier batch: the batch was not complete then.
    """
    return all(batch <= after for later, after in starts.items() if later > token)


def versioned(name: str, token: str) -> str:
    """Return the name of the version of a file that the holder of a token writes."""
    return f"{name}{_MARK}{token}" if token else name


def split_version(name: str) -> tuple[str, str]:
    """Return the name of a file without its token, and the token.

    >>> split_version("planned@00000003-12ab34cd"), split_version("planned")
    (('planned', '00000003-12ab34cd'), ('planned', ''))
    """
    plain, _, token = name.partition(_MARK)
    return plain, token


@dataclass(frozen=True)
class FencedStorage(Storage):
    """A storage that deletes only as long as a fence holds."""

    inner: Storage
    fence: Fence

    @property
    def place(self) -> Location:
        """Return where it is."""
        return self.inner.place

    @property
    def url(self) -> str:
        """Its folder as Spark names it."""
        return self.inner.url

    def below(self, folder: str) -> FencedStorage:
        """Return the storage of a folder, behind the same fence."""
        return type(self)(self.inner.below(folder), self.fence)

    def put(self, name: str, content: Buffer, *, durable: bool = True) -> None:
        """Store a file whose name nobody else uses."""
        self.inner.put(name, content, durable=durable)

    def find(self, name: str) -> Buffer | None:
        """Return the content of a file."""
        return self.inner.find(name)

    def start_of(self, name: str, length: int) -> bytes | None:
        """Return the first bytes of a file."""
        return self.inner.start_of(name, length)

    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files in a folder."""
        return self.inner.names(folder)

    def tree(self, folder: str = "") -> list[str]:
        """Return the names of all files below a folder."""
        return self.inner.tree(folder)

    def delete(self, names: Iterable[str]) -> None:
        """Delete files that were chosen before the call."""
        chosen = list(names)
        if chosen:
            self.fence.check()
            self.inner.delete(chosen)

    def half_written(self) -> list[str]:
        """Return the names of half-written files."""
        return self.inner.half_written()

    def sweep(self) -> None:
        """Delete half-written files; the check after they were listed spares later drivers'."""
        FencedStorage.delete(self, self.half_written())


@dataclass(frozen=True)
class VersionedStorage(FencedStorage):
    """A storage in which each driver writes versions of files under its own token."""

    def put(self, name: str, content: Buffer, *, durable: bool = True) -> None:
        """Store the version of this driver; without a token, replace the one that is read."""
        own = versioned(name, self.fence.token) if self.fence.token else self._newest(name)
        self.inner.put(own or name, content, durable=durable)

    def find(self, name: str) -> Buffer | None:
        """Return the content of the newest version."""
        newest = self._newest(name)
        return None if newest is None else self.inner.find(newest)

    def adopt(self, name: str) -> Buffer | None:
        """Return the content of the newest version and store it as that of this driver.

        If there is none, an empty version takes its place. So no version counts that a replaced
        driver writes from now on, unless it is deleted: write an empty one instead.
        """
        newest = self._newest(name)
        content = None if newest is None else self.inner.find(newest)
        if self.fence.token and newest != versioned(name, self.fence.token):
            self.put(name, b"" if content is None else content)
        return content

    def counting(self, batches: Mapping[str, int]) -> list[str]:
        """Return the files whose newest version counts, see :func:`counts`."""
        starts = self.fence.starts()
        newest: dict[str, str] = {}
        for folder in {name.rpartition("/")[0] for name in batches}:
            for version in self.inner.names(folder):
                plain, token = split_version(f"{folder}/{version}" if folder else version)
                newest[plain] = max(newest.get(plain, ""), token)
        return [
            name for name, batch in batches.items() if counts(batch, newest.get(name, ""), starts)
        ]

    def start_of(self, name: str, length: int) -> bytes | None:
        """Return the first bytes of the newest version."""
        newest = self._newest(name)
        return None if newest is None else self.inner.start_of(newest, length)

    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files in a folder, without tokens."""
        return sorted({split_version(name)[0] for name in self.inner.names(folder)})

    def tree(self, folder: str = "") -> list[str]:
        """Return the names of all files below a folder, without tokens."""
        return sorted({split_version(name)[0] for name in self.inner.tree(folder)})

    def delete(self, names: Iterable[str]) -> None:
        """Delete all versions of files."""
        wanted = set(names)
        folders = {name.rpartition("/")[0] for name in wanted}
        versions = [
            full
            for folder in folders
            for name in self.inner.names(folder)
            if split_version(full := f"{folder}/{name}" if folder else name)[0] in wanted
        ]
        super().delete(versions)

    def where(self, name: str) -> str:
        """Return the path or URL of the newest version, for errors."""
        return self.inner.where(self._newest(name) or name)

    def retire(self) -> None:
        """Delete the files at the top that a newer version has replaced."""
        newest: dict[str, str] = {}
        replaced = []
        for name in sorted(self.inner.names(), key=split_version):
            plain = split_version(name)[0]
            if plain in newest:
                replaced.append(newest[plain])
            newest[plain] = name
        super().delete(replaced)

    def _versions(self, name: str) -> list[str]:
        """Return the full names of all versions, oldest first."""
        folder, slash, plain = name.rpartition("/")
        found = [one for one in self.inner.names(folder) if split_version(one)[0] == plain]
        return [f"{folder}{slash}{one}" for one in sorted(found, key=split_version)]

    def _newest(self, name: str) -> str | None:
        return next(reversed(self._versions(name)), None)
