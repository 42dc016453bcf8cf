"""Files below a folder of a file system that is mounted on every machine."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from muntin.runtime.frames import (
    Buffer,
    CheckpointError,
    sync,
    unreadable,
    write_file,
    writing,
)
from muntin.spark.storage.interface import Location, Storage

_PART = ".part"
"""The end of the name of a half-written file."""


@dataclass(frozen=True)
class LocalStorage(Storage):
    """Files below a folder; ``checkpoint`` is its name in errors, by default the folder."""

    folder: Path
    checkpoint: Path | None = field(default=None, compare=False)

    @property
    def place(self) -> Location:
        """Return the path of the folder."""
        return Location(str(self.folder))

    @property
    def url(self) -> str:
        """Return the folder as Spark names it."""
        return f"file://{self.folder}"

    def below(self, folder: str) -> LocalStorage:
        """Return the storage of a folder."""
        return LocalStorage(self.folder / folder, self.checkpoint or self.folder)

    def put(self, name: str, content: Buffer, *, durable: bool = True) -> None:
        """Write a file, then rename it; a durable one is synchronized with the disk."""
        with writing(self.checkpoint or self.folder):
            write_file(self.folder / name, content, durable=durable)

    def find(self, name: str) -> Buffer | None:
        """Return the content of a file, mapped into memory."""
        path = self.folder / name
        try:
            with path.open("rb") as file:
                if not os.fstat(file.fileno()).st_size:
                    return b""  # an empty file cannot be mapped
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(str(path), error) from error

    def start_of(self, name: str, length: int) -> bytes | None:
        """Return the first bytes of a file."""
        path = self.folder / name
        try:
            # Opened every time, because network file systems check for newer content then.
            with path.open("rb") as file:
                return file.read(length)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(str(path), error) from error

    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files in a folder, without half-written ones."""
        path = self.folder / folder
        try:
            with os.scandir(path) as entries:
                found = [entry.name for entry in entries if not entry.is_dir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            if not path.exists():  # because a file is in the place of a folder above
                return []
            raise unreadable(str(path), error) from error
        return sorted(name for name in found if not name.endswith(_PART))

    def tree(self, folder: str = "") -> list[str]:
        """Return the names of all files below a folder, without half-written ones."""
        top = self.folder / folder
        found = [
            Path(path, name).relative_to(top).as_posix()
            for path, _, names in os.walk(top)
            for name in names
        ]
        return sorted(name for name in found if not name.endswith(_PART))

    def delete(self, names: Iterable[str]) -> None:
        """Delete files, and folders that are empty then."""
        for name in names:
            path = self.folder / name
            try:
                path.unlink(missing_ok=True)
                if "/" in name:
                    with suppress(OSError):  # it is not empty
                        path.parent.rmdir()
            except OSError as error:
                raise CheckpointError(
                    f"{path} cannot be deleted: {error.strerror}",
                    hint="Give this process the right to delete files in the checkpoint",
                ) from error

    def sync(self, names: Iterable[str]) -> None:
        """Synchronize files with the disk, then the folders up to this one."""
        with writing(self.checkpoint or self.folder):
            folders = {self.folder}
            for path in (self.folder / name for name in names):
                with suppress(FileNotFoundError):
                    sync(path)
                    folders |= {above for above in path.parents if self.folder in above.parents}
            for folder in folders:
                sync(folder)

    def half_written(self) -> list[str]:
        """Return the names of half-written files."""
        with writing(self.checkpoint or self.folder):
            parts = self.folder.rglob(f"*{_PART}")
            return sorted(part.relative_to(self.folder).as_posix() for part in parts)
