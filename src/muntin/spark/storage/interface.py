"""The interface of the files of a checkpoint.

A file is complete and durable when :meth:`Storage.put` returns; until then readers see the earlier
file of that name, or none. Nothing relies on locks, modification times or renames, so an object
store can take the place of a local folder.

Storages are picklable and travel inside tasks. A state server gets the :class:`Location` instead
and opens it there (:func:`muntin.spark.storage.storage_at`), because it unpickles nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from muntin.runtime.frames import Buffer, missing


@dataclass(frozen=True)
class Location:
    """Where a storage is: a local path or a URL, and the settings that reach it.

    Settings may hold credentials. They are never written to a checkpoint or a log, so they are not
    part of the text of a place.
    """

    url: str
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def below(self, folder: str) -> Location:
        """Return the place of a folder below this one."""
        return replace(self, url=f"{self.url.rstrip('/')}/{folder}")


class Storage(ABC):
    """Files by name; a name may contain folders, separated by slashes."""

    @property
    @abstractmethod
    def place(self) -> Location:
        """Return where it is."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Its folder as Spark names it."""

    @abstractmethod
    def below(self, folder: str) -> Storage:
        """Return the storage of a folder."""

    @abstractmethod
    def put(self, name: str, content: Buffer, *, durable: bool = True) -> None:
        """Store a file; replace an earlier one of that name.

        A file that need not outlive a power failure is cheaper if it is not ``durable``.

        Raises
        ------
        CheckpointError
            When it cannot be written.
        """

    @abstractmethod
    def find(self, name: str) -> Buffer | None:
        """Return the content of a file, or None if there is none.

        Raises
        ------
        CheckpointError
            When it cannot be read.
        """

    @abstractmethod
    def start_of(self, name: str, length: int) -> bytes | None:
        """Return the first bytes of a file, or None if there is none."""

    @abstractmethod
    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files in a folder, without the folder, sorted."""

    @abstractmethod
    def tree(self, folder: str = "") -> list[str]:
        """Return the names of all files below a folder, relative to it, sorted."""

    @abstractmethod
    def delete(self, names: Iterable[str]) -> None:
        """Delete files; those that do not exist are ignored."""

    def adopt(self, name: str) -> Buffer | None:
        """Return the content of a file, as :meth:`find` does; what others write later is ignored.

        Without drivers that replace each other there are no others. An empty file stands for none.
        """
        return self.find(name)

    def counting(self, batches: Mapping[str, int]) -> list[str]:
        """Return those of some files, given with their batches, that no replaced driver left."""
        return list(batches)

    def half_written(self) -> list[str]:
        """Return the names of the files that processes are writing, or were when they ended.

        Most storages show none.
        """
        return []

    def sweep(self) -> None:
        """Delete what processes left that were killed while they wrote."""
        self.delete(self.half_written())

    def sync(self, names: Iterable[str]) -> None:  # noqa: B027 (most stores have nothing to do)
        """Make files durable that something else wrote; those that do not exist are ignored."""

    def get(self, name: str) -> Buffer:
        """Return the content of a file.

        Raises
        ------
        CheckpointError
            When it is missing or cannot be read.
        """
        content = self.find(name)
        if content is None:
            raise missing(self.where(name))
        return content

    def where(self, name: str) -> str:
        """Return the path or URL of a file, for errors."""
        return f"{self.place.url.rstrip('/')}/{name}"

    def delete_tree(self, folder: str) -> None:
        """Delete all files below a folder."""
        start = f"{folder}/" if folder else ""
        self.delete([f"{start}{name}" for name in self.tree(folder)])
