"""Ownership of the folders of sinks: one query of one run, named in a file ``_muntin``.

Exactly-once hazard: batches are numbered from 0 in every run, so two runs in one folder would
overwrite each other's files, and a changed query would leave rows there that nothing retracts. A
folder with batches is therefore closed to everyone but its owner, unless the user asks to replace
them. Spark and Arrow skip files whose names start with an underscore, and a pattern like
``*.parquet`` does not match it.
"""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from muntin.errors import RunError, SettingError
from muntin.spark.storage import Storage

MARKER = "_muntin"
_BATCH = re.compile(r"batch-(\d+)(?:-\d+)?\.\w+|batch=(\d+)")
_PART = re.compile(r"\.batch-.*\.part")
"""Results of a batch that did not become complete."""
_SHORT = 8


def batch_number(name: str) -> int:
    """Return the batch of which a file or folder has results; -1 if it has none."""
    found = _BATCH.fullmatch(name)
    return int(found[1] or found[2]) if found else -1


@dataclass(frozen=True)
class SinkOwner:
    """A query of a run; ``incarnation`` differs when a query is dropped and registered again."""

    run: str
    query: str
    incarnation: str
    checkpoint: str

    @classmethod
    def from_text(cls, text: str) -> SinkOwner:
        """Return the owner in the text of a marker; raise ValueError if it names none."""
        try:
            return cls(**{name: str(value) for name, value in json.loads(text).items()})
        except (TypeError, AttributeError) as error:
            raise ValueError("the marker names no owner") from error

    def is_same(self, other: SinkOwner) -> bool:
        """Return whether both are the same query of the same run, even if its checkpoint moved."""
        return (self.run, self.incarnation) == (other.run, other.incarnation)


class Folder(ABC):
    """A folder of batches on some file system."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of its files and folders; none if it does not exist."""

    @abstractmethod
    def read(self) -> str | None:
        """Return the text of the marker, if there is one."""

    @abstractmethod
    def write(self, text: str, *, create: bool) -> bool:
        """Write the marker; with ``create`` only if there is none; return whether it was."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a batch."""

    def batches(self) -> list[str]:
        """Return the names of the batches in it."""
        return sorted(name for name in self.names() if _BATCH.fullmatch(name))

    def obstacle(self, owner: SinkOwner) -> str:
        """Return the obstacle to an owner; empty if there is none."""
        return self._obstacle(owner, self.read())

    def _obstacle(self, owner: SinkOwner, text: str | None) -> str:
        if not self.batches():
            return ""
        if text is None:
            return f"{self.name} holds batches of an unknown writer"
        try:
            other = SinkOwner.from_text(text)
        except ValueError:
            return f"{self.name}/{MARKER} does not name who wrote the batches there"
        if owner.is_same(other):
            return ""
        if owner.run != other.run:
            theirs = (
                f"query {other.query} of run {other.run[:_SHORT]} (checkpoint {other.checkpoint})"
            )
            return f"{self.name} holds results of {theirs}; this is run {owner.run[:_SHORT]}"
        before = (
            "" if other.query != owner.query else " from before it was registered again or changed"
        )
        return f"{self.name} holds results of query {other.query}{before}"

    def claim(self, owner: SinkOwner, *, replace: bool) -> None:
        """Make a query the owner; with ``replace``, remove the batches of any other owner.

        Raises
        ------
        SettingError
            When the folder belongs to another owner.
        """
        text = self.read()  # once: a later change is noticed when the marker is written
        obstacle = self._obstacle(owner, text)
        if obstacle and not replace:
            raise occupied(obstacle, "SparkEngine(..., replace=True)")
        try:
            self._take(owner, text, everything=bool(obstacle))
        except OSError as error:
            raise RunError(
                f"the folder {self.name} cannot be written to: {error.strerror}",
                hint="Give a folder that this process may write to, with room on its disk",
            ) from error

    def _take(self, owner: SinkOwner, text: str | None, *, everything: bool) -> None:
        """Remove half-written batches, with ``everything`` all batches, and write the marker."""
        for name in self.names():
            if _PART.fullmatch(name) or (everything and _BATCH.fullmatch(name)):
                self.remove(name)
        if text != _text(owner) and not self.write(_text(owner), create=text is None):
            raise occupied(f"{self.name} was taken by another run at this moment")

    def keep(self, owner: SinkOwner) -> None:
        """Check before a write that the owner still has the folder; mark it if it was emptied.

        Raises
        ------
        SettingError
            When another run has taken it meanwhile.
        """
        if not self.is_owned_by(owner) and (
            self.read() is not None or not self.write(_text(owner), create=True)
        ):
            raise occupied(f"{self.name} was taken over by another run")

    def is_owned_by(self, owner: SinkOwner) -> bool:
        """Return whether the marker names an owner."""
        try:
            return owner.is_same(SinkOwner.from_text(self.read() or ""))
        except ValueError:
            return False


def _text(owner: SinkOwner) -> str:
    return json.dumps(asdict(owner)) + "\n"


def occupied(obstacle: str, remedy: str = "") -> SettingError:
    """Return the error for a folder that belongs to another owner; ``remedy`` deletes its output.

    Without one, the other run is still at work.
    """
    delete = f", or delete that output: {remedy}" if remedy else ""
    return SettingError(obstacle, hint=f"Give the query another folder{delete}")


class LocalFolder(Folder):
    """A local folder that this process writes to."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path

    def names(self) -> list[str]:
        """Return the names of its files and folders."""
        return [path.name for path in self._path.iterdir()] if self._path.is_dir() else []

    def read(self) -> str | None:
        """Return the text of the marker."""
        try:
            return (self._path / MARKER).read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, text: str, *, create: bool) -> bool:
        """Write the marker in one step."""
        self._path.mkdir(parents=True, exist_ok=True)
        part = self._path / f".{MARKER}.{os.getpid()}.part"
        part.write_text(text, encoding="utf-8")
        try:
            if create:
                os.link(part, self._path / MARKER)
            else:
                part.replace(self._path / MARKER)
        except FileExistsError:
            return False
        finally:
            part.unlink(missing_ok=True)
        return True

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self._path / name).unlink(missing_ok=True)


class StorageFolder(Folder):
    """A folder of the checkpoint, which the lease of a run keeps others out of."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage.place.url)
        self._storage = storage

    def names(self) -> list[str]:
        """Return the names of its files."""
        return self._storage.names()

    def read(self) -> str | None:
        """Return the text of the marker."""
        found = self._storage.find(MARKER)
        return None if found is None else bytes(found).decode(errors="replace")

    def write(self, text: str, *, create: bool) -> bool:
        """Write the marker."""
        if create and self._storage.find(MARKER) is not None:
            return False
        self._storage.put(MARKER, text.encode())
        return True

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._storage.delete([name])


class HadoopFolder(Folder):
    """A folder that Spark reaches: ``hdfs``, ``s3a`` and others, and local ones it writes to."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        super().__init__(path)
        self._spark = spark

    def _hadoop(self) -> tuple[Any, Any]:
        jvm: Any = self._spark._jvm  # noqa: SLF001 (Spark has no public way to a file system)
        path = jvm.org.apache.hadoop.fs.Path(self.name)
        session = self._spark._jsparkSession  # noqa: SLF001 (same)
        return path, path.getFileSystem(session.sessionState().newHadoopConf())

    def _child(self, name: str) -> Any:
        jvm: Any = self._spark._jvm  # noqa: SLF001 (same)
        return jvm.org.apache.hadoop.fs.Path(self.name, name)

    def names(self) -> list[str]:
        """Return the names of its files and folders."""
        path, system = self._hadoop()
        return (
            [status.getPath().getName() for status in system.listStatus(path)]
            if system.exists(path)
            else []
        )

    def read(self) -> str | None:
        """Return the text of the marker."""
        _, system = self._hadoop()
        marker = self._child(MARKER)
        if not system.exists(marker):
            return None
        stream = system.open(marker)
        try:
            jvm: Any = self._spark._jvm  # noqa: SLF001 (same)
            return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, text: str, *, create: bool) -> bool:
        """Write the marker; without atomic creation, two owners may pass at the same moment."""
        _, system = self._hadoop()
        if create and system.exists(self._child(MARKER)):
            return False
        stream = system.create(self._child(MARKER), True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()
        return True

    def remove(self, name: str) -> None:
        """Remove a folder of a batch."""
        _, system = self._hadoop()
        system.delete(self._child(name), True)
