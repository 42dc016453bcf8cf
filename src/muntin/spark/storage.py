"""The files of a checkpoint behind one interface.

A file is complete and durable when :meth:`Storage.put` returns; until then readers see the earlier
file of that name, or none. Nothing here relies on locks, modification times or renames across
folders, so an object store can take the place of a local folder.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from muntin.runtime.frames import Buffer, CheckpointError, missing, unreadable, write_file, writing


class Storage(ABC):
    """Files by name; a name may contain folders, separated by slashes."""

    @abstractmethod
    def put(self, name: str, content: Buffer) -> None:
        """Store a file; replace an earlier one of that name.

        Raises
        ------
        CheckpointError
            When it cannot be written.
        """

    @abstractmethod
    def get(self, name: str) -> Buffer:
        """Return the content of a file.

        Raises
        ------
        CheckpointError
            When it is missing or cannot be read.
        """

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, without the folder, sorted."""

    @abstractmethod
    def delete(self, names: Iterable[str]) -> None:
        """Delete files; those that do not exist are ignored."""


@dataclass(frozen=True)
class LocalStorage(Storage):
    """Files below a folder of a file system that is mounted on every machine."""

    folder: Path

    def put(self, name: str, content: Buffer) -> None:
        """Write a file, then rename it; both are synchronized with the disk."""
        with writing(self.folder):
            write_file(self.folder / name, content)

    def get(self, name: str) -> Buffer:
        """Return the content of a file, mapped into memory."""
        path = self.folder / name
        try:
            with path.open("rb") as file:
                if not path.stat().st_size:
                    return b""  # an empty file cannot be mapped
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except FileNotFoundError as error:
            raise missing(str(path)) from error
        except OSError as error:
            raise unreadable(str(path), error) from error

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, without half-written ones."""
        try:
            found = [path.name for path in (self.folder / folder).iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unreadable(str(self.folder / folder), error) from error
        return sorted(name for name in found if not name.endswith(".part"))

    def delete(self, names: Iterable[str]) -> None:
        """Delete files."""
        for name in names:
            try:
                (self.folder / name).unlink(missing_ok=True)
            except OSError as error:
                raise CheckpointError(
                    f"{self.folder / name} cannot be deleted: {error.strerror}",
                    hint="Give this process the right to delete files in the checkpoint",
                ) from error
