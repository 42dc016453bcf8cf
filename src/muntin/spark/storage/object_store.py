"""Files in an object store or a distributed file system, through Arrow.

Executors' Python workers and state servers have no Java, so Hadoop's connectors cannot be used
there. Arrow's file systems are configured with the same settings of Hadoop
(:mod:`muntin.spark.storage.file_systems`). Requests have timeouts and a bounded number of retries
where Arrow offers that; every action has a deadline (:mod:`muntin.spark.storage.deadline`).

S3 and Google Cloud Storage show a file when it is complete. HDFS and Azure show it from its
beginning on, so there a file is written under another name and renamed. If it replaces one, the
complete new file waits under a third name while the old one is deleted; readers that do not find
the old one look there. So a process may be killed at any step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from pyarrow import fs

from muntin.runtime.frames import Buffer, CheckpointError
from muntin.spark.storage.deadline import within_deadline
from muntin.spark.storage.file_systems import file_system, shows_half_written
from muntin.spark.storage.interface import Location, Storage

T = TypeVar("T")

_SECONDS = 600.0
"""The longest that an action may take: far more than the retries of one request together."""

_PART = ".part"
_NEW = ".new"
_AT_ONCE = 8
"""Files that are deleted at the same time; there is no request for several."""


@dataclass(frozen=True)
class ObjectStorage(Storage):
    """Files below a URL."""

    where_it_is: Location

    @property
    def place(self) -> Location:
        """Return the URL, and the settings that reach it."""
        return self.where_it_is

    @property
    def url(self) -> str:
        """Return the URL."""
        return self.where_it_is.url

    def below(self, folder: str) -> ObjectStorage:
        """Return the storage of a folder."""
        return ObjectStorage(self.where_it_is.below(folder))

    def put(self, name: str, content: Buffer, *, durable: bool = True) -> None:
        """Write a file; all of these stores make it durable."""
        del durable
        self._tried(name, "written", self._put, content)

    def _put(self, system: Any, path: str, content: Buffer) -> None:
        if not shows_half_written(self.url):
            _write(system, path, content)
            return
        system.create_dir(path.rpartition("/")[0], recursive=True)
        _write(system, path + _PART, content)
        if system.get_file_info(path).type is fs.FileType.NotFound:
            system.move(path + _PART, path)
            return
        _remove(system, path + _NEW)
        system.move(path + _PART, path + _NEW)
        _remove(system, path)
        system.move(path + _NEW, path)

    def find(self, name: str) -> Buffer | None:
        """Return the content of a file."""
        return self._tried(name, "read", self._find, None)

    def start_of(self, name: str, length: int) -> bytes | None:
        """Return the first bytes of a file."""
        found = self._tried(name, "read", self._find, length)
        return None if found is None else bytes(found)

    def _find(self, system: Any, path: str, length: int | None) -> Buffer | None:
        places = [path, path + _NEW, path] if shows_half_written(self.url) else [path]
        for place in places:  # the last: it may have been renamed while we looked
            try:
                with system.open_input_file(place) as file:
                    return memoryview(file.read_buffer(length))
            except FileNotFoundError:
                continue
        return None

    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files in a folder."""
        return self._listed(folder, recursive=False)

    def tree(self, folder: str = "") -> list[str]:
        """Return the names of all files below a folder."""
        return self._listed(folder, recursive=True)

    def _listed(self, folder: str, *, recursive: bool) -> list[str]:
        def listed(system: Any, path: str) -> set[str]:
            top = path.rstrip("/")
            wanted = fs.FileSelector(top, allow_not_found=True, recursive=recursive)
            found = (
                info.path.removeprefix(top).lstrip("/")
                for info in system.get_file_info(wanted)
                if info.type is fs.FileType.File
            )
            if not shows_half_written(self.url):
                return set(found)
            return {name.removesuffix(_NEW) for name in found if not name.endswith(_PART)}

        return sorted(self._tried(folder, "listed", listed))

    def delete(self, names: Iterable[str]) -> None:
        """Delete files, several at a time."""
        chosen = list(names)
        if len(chosen) == 1:
            self._delete(chosen[0])
        elif chosen:
            with ThreadPoolExecutor(min(_AT_ONCE, len(chosen))) as pool:
                list(pool.map(self._delete, chosen))

    def _delete(self, name: str) -> None:
        def delete(system: Any, path: str) -> None:
            _remove(system, path)
            if shows_half_written(self.url):
                _remove(system, path + _NEW)

        self._tried(name, "deleted", delete)

    def half_written(self) -> list[str]:
        """Return the names of half-written files, where they are visible."""
        if not shows_half_written(self.url):
            return []

        def listed(system: Any, path: str) -> list[str]:
            wanted = fs.FileSelector(path, allow_not_found=True, recursive=True)
            found = (info.path for info in system.get_file_info(wanted))
            return [name.removeprefix(path).lstrip("/") for name in found if name.endswith(_PART)]

        return self._tried("", "listed", listed)

    def _tried(self, name: str, verb: str, action: Callable[..., T], *arguments: Any) -> T:
        """Run an action on a file; turn its failure into an error that names the file."""
        try:
            system, root = within_deadline(_SECONDS, lambda: file_system(self.where_it_is))
            path = f"{root}/{name}".rstrip("/")
            return within_deadline(_SECONDS, lambda: action(system, path, *arguments))
        except OSError as error:
            cause = error.strerror or str(error).splitlines()[0]
            raise CheckpointError(
                f"{self.where(name)} cannot be {verb}: {cause}",
                hint="Check that every machine reaches the store, and its credentials in Spark's "
                "Hadoop settings; then start again",
            ) from error


def _write(system: Any, path: str, content: Buffer) -> None:
    with system.open_output_stream(path, compression=None) as stream:
        stream.write(content)


def _remove(system: Any, path: str) -> None:
    with suppress(FileNotFoundError):
        system.delete_file(path)
