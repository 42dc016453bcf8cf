"""The files of a checkpoint in a folder: rows in chunks, a state, and the manifest that counts.

A checkpoint writes new files beside those that are there, synchronizes them with the disk, and
replaces the manifest, the only file that is ever replaced. So the manifest always names complete
files: a crash at any moment leaves the checkpoint before. Files that no manifest names are deleted
after that.

Rows that an earlier checkpoint of the same writer has written are not written again: rows that only
come at the end are kept in chunks, and a checkpoint adds one. A new chunk absorbs those before it
that are not larger than itself, so there are O(log n) of them, and each row is written O(log n)
times; all are written anew when less than half of their rows are held.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.runtime.codec import decode, encode
from muntin.runtime.frames import (
    CheckpointError,
    make_folder,
    missing,
    unreadable,
    write_file,
    writing,
)

T = TypeVar("T")
Positions = npt.NDArray[np.int64]

MANIFEST = "MANIFEST"
_OURS = re.compile(r"(rows|state)-[0-9]{8}(-[0-9]{4})?(\.[0-9a-f]{8}\.part)?|MANIFEST\..*\.part")
_FEW = 1_024
"""Rows that may be in chunks beyond twice those that are held."""


@dataclass(frozen=True)
class CheckpointManifest:
    """The checkpoint that counts; ``token`` is new with every one."""

    generation: int
    token: str
    state: str


@dataclass(frozen=True)
class RowChunks:
    """Rows in chunks, of which those at some positions count: runs of a start and a stop."""

    chunks: tuple[str, ...]
    runs: Positions


@dataclass(frozen=True)
class Chunk:
    """The rows in one file, and their positions as runs."""

    runs: Positions
    rows: pa.Table


@dataclass(frozen=True)
class _Written:
    """A chunk that was written: its file, how many rows it has, and its first and last position."""

    file: str
    rows: int
    first: int
    last: int

    def held(self, positions: Positions) -> int:
        """Return how many of its rows are still held; positions are in order."""
        first = np.searchsorted(positions, self.first)
        return int(np.searchsorted(positions, self.last, side="right") - first)


def runs_of(positions: Positions) -> Positions:
    """Return ascending positions as runs.

    >>> runs_of(np.array([3, 4, 5, 9])).tolist()
    [[3, 6], [9, 10]]
    """
    if not len(positions):
        return np.empty((0, 2), np.int64)
    breaks = np.flatnonzero(np.diff(positions) != 1)
    starts = positions[np.append(0, breaks + 1)]
    stops = positions[np.append(breaks, len(positions) - 1)] + 1
    return np.stack([starts, stops], axis=1)


def positions_of(runs: Positions) -> Positions:
    """Return the positions of runs.

    >>> positions_of(np.array([[3, 6], [9, 10]])).tolist()
    [3, 4, 5, 9]
    """
    lengths = runs[:, 1] - runs[:, 0]
    ends = np.cumsum(lengths)
    begins = np.repeat(runs[:, 0] - (ends - lengths), lengths)
    return begins + np.arange(int(lengths.sum()))


class CheckpointWriter:
    """Writes the checkpoints of one engine to one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._token = ""
        self._written: dict[str, list[_Written]] = {}
        self._now: dict[str, list[_Written]] = {}
        self._generation = 0

    @contextmanager
    def checkpoint(self) -> Iterator[None]:
        """Write a checkpoint inside; it counts once :meth:`publish` has returned.

        No other process writes to the folder meanwhile. Chunks of an earlier checkpoint are used
        again only if it is still the one that counts.
        """
        with writing(self.folder):
            make_folder(self.folder)
            lock = os.open(self.folder / "LOCK", os.O_CREAT | os.O_RDWR, 0o644)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise CheckpointError(
                    f"another engine writes to the checkpoint {self.folder}",
                    hint="Give every engine a separate folder",
                ) from error
            before = read_manifest(self.folder) if (self.folder / MANIFEST).exists() else None
            if before is None or before.token != self._token:
                self._written = {}
            self._generation = before.generation + 1 if before is not None else 0
            self._now = {}
            with writing(self.folder):
                yield
        finally:
            os.close(lock)

    def store(self, key: str, positions: Positions, rows: pa.Table) -> RowChunks:
        """Store rows; a position of a key always has the same row, and positions ascend."""
        chunks = [each for each in self._written.get(key, ()) if each.held(positions)]
        if sum(each.rows for each in chunks) > 2 * len(positions) + _FEW:
            chunks = []
        start = int(np.searchsorted(positions, chunks[-1].last, side="right")) if chunks else 0
        while start < len(positions) and chunks and chunks[-1].rows <= len(positions) - start:
            start = int(np.searchsorted(positions, chunks.pop().first))
        if start < len(positions):
            added = positions[start:]
            file = f"rows-{self._generation:08}-{len(self._files()):04}"
            self._write(file, Chunk(runs_of(added), rows.slice(start, len(added))), "rows")
            chunks.append(_Written(file, len(added), int(added[0]), int(added[-1])))
        self._now[key] = chunks
        return RowChunks(tuple(each.file for each in chunks), runs_of(positions))

    def _files(self) -> list[str]:
        return [each.file for chunks in self._now.values() for each in chunks]

    def _write(self, file: str, value: object, kind: str) -> None:
        write_file(self.folder / file, encode(value, kind))

    def publish(self, state: object) -> None:
        """Make the checkpoint of a state and the rows that were stored the one that counts."""
        file, token = f"state-{self._generation:08}", secrets.token_hex(16)
        self._write(file, state, "engine")
        self._write(
            MANIFEST, CheckpointManifest(self._generation, token, file), "engine checkpoint"
        )
        self._token, self._written = token, self._now
        used = {MANIFEST, file, *self._files()}
        for path in self.folder.iterdir():
            if path.name not in used and _OURS.fullmatch(path.name):
                path.unlink(missing_ok=True)


def read_manifest(folder: Path) -> CheckpointManifest:
    """Return the manifest in a folder; raise if there is none."""
    if not (folder / MANIFEST).exists():
        raise CheckpointError(
            f"there is no checkpoint in {folder}",
            hint="Give the folder that engine.checkpoint() has written to",
        )
    return _read(folder / MANIFEST, "engine checkpoint", CheckpointManifest)


def read_state(folder: Path, cls: type[T]) -> T:
    """Return the state of the checkpoint that counts."""
    return _read(folder / read_manifest(folder).state, "engine", cls)


def read_rows(folder: Path, stored: RowChunks, schema: pa.Schema) -> tuple[Positions, pa.Table]:
    """Return stored rows and their positions."""
    wanted = positions_of(stored.runs)
    chunks = [_read(folder / file, "rows", Chunk) for file in stored.chunks]
    found = [positions_of(chunk.runs) for chunk in chunks]
    rows = pa.concat_tables([schema.empty_table(), *(chunk.rows for chunk in chunks)])
    kept = np.isin(np.concatenate([np.empty(0, np.int64), *found]), wanted)
    return wanted, rows if kept.all() else rows.filter(pa.array(kept))


def _read(path: Path, kind: str, cls: type[T]) -> T:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise missing(str(path)) from None
    except OSError as error:
        raise unreadable(str(path), error) from error
    return decode(content, kind, cls, str(path))


def read_all(
    folder: Path, stored: Mapping[str, RowChunks], schemas: Mapping[str, pa.Schema]
) -> dict[str, pa.Table]:
    """Return stored rows by name."""
    return {name: read_rows(folder, each, schemas[name])[1] for name, each in stored.items()}
