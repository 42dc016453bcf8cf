"""What Muntin keeps in a checkpoint folder beside Spark's own files: the program, so that a restart goes on with it or says why not.

Tasks read the program from there, too: a change that is written before a batch is committed is known to all tasks of the next one.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from muntin.errors import InputError
from muntin.model.catalog import Stream
from muntin.spark.deployment import DeployedQuery, Deployment
from muntin.spark.driver.resume_plan import resumption
from muntin.spark.exchange.codec import decode, encode
from muntin.spark.exchange.frames import PREFIX, CheckpointError, read_file, write_file, writing

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "DeploymentFile",
    "LoadedDeployment",
    "Resumed",
    "content_of",
    "program_of",
]

_KIND = "program"
_MOST_LOADED = 8
"""Programs that a process keeps; a worker of Spark serves several engines one after the other."""


@dataclass(frozen=True)
class _Stored:
    run: str
    deployment: Deployment


@dataclass(frozen=True)
class Resumed:
    """The name of the run and its program; queries that are to be dropped and added before it goes on."""

    run: str
    deployment: Deployment
    dropped: tuple[str, ...] = ()
    added: tuple[DeployedQuery, ...] = ()


@dataclass(frozen=True)
class DeploymentFile:
    """The program as tasks know it."""

    path: str

    def read(self) -> LoadedDeployment:
        """Return the program as it is now."""
        # Opened anew each time: network file systems look for newer content then.
        with open(self.path, "rb") as file:  # noqa: PTH123 (workers call this for every batch)
            start = file.read(PREFIX)
            known = _loaded.get(self.path)
            if known is None or known.content[:PREFIX] != start:
                content = start + file.read()
                known = LoadedDeployment(content, program_of(content, self.path))
                _loaded.pop(self.path, None)
                _loaded[self.path] = known
                while len(_loaded) > _MOST_LOADED:
                    del _loaded[next(iter(_loaded))]
        return known

    @property
    def folder(self) -> Path:
        """The folder in which it is."""
        return Path(self.path).parent

    @property
    def carried(self) -> Path:
        """The folder of rows that are put aside for lanes to begin with."""
        return self.folder / "carried"

    @property
    def subscribed(self) -> Path:
        """The file with the names of queries that have subscribers, while there are any."""
        return self.folder / "subscribed"

    @property
    def spool(self) -> Path:
        """The folder in which partitions leave outputs for the driver."""
        return self.folder / "spool"


@dataclass(frozen=True, eq=False)
class LoadedDeployment:
    """A program as bytes and as an object."""

    content: bytes
    deployment: Deployment


_loaded: dict[str, LoadedDeployment] = {}
"""The newest version of each program file that this process has read; its first bytes, a checksum among them, tell versions apart."""


def content_of(run: str, program: Deployment) -> bytes:
    """Return the bytes of the file of a run's program."""
    return encode(_Stored(run, program), _KIND)


def program_of(content: bytes, where: str = "the program of the engine") -> Deployment:
    """Return the program in the bytes of its file."""
    return decode(content, _KIND, _Stored, where).deployment


class Checkpoint:
    """A checkpoint folder on a file system that this process can write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program_file = folder / "muntin" / "program"
        self._lock: IO[str] | None = None

    @property
    def tasks(self) -> DeploymentFile:
        """The program as tasks find it."""
        return DeploymentFile(str(self.program_file))

    @property
    def spark(self) -> Path:
        """The folder that Spark calls its checkpoint."""
        return self.folder / "spark"

    def acquire(self) -> None:
        """Keep other engines out until :meth:`release`, or until this process ends, however it ends.

        Raises
        ------
        CheckpointError
            When another engine has it, here or in another process; when the folder cannot be written to.
        """
        if self._lock is not None:
            return
        path = self.program_file.with_name("lock")
        with writing(self.folder):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            with lock:
                lock.seek(0)
                holder = lock.read().strip()
            if error.errno in {errno.EACCES, errno.EAGAIN}:
                raise CheckpointError(
                    f"{self.folder} is in use by another engine ({holder or 'of which we know nothing'})",
                    hint="Stop that one first, or give each engine a checkpoint of its own",
                ) from error
            raise CheckpointError(
                f"{path} cannot be locked: {error.strerror}",
                hint="Put the checkpoint on a file system that has locks",
            ) from error
        self._lock = lock
        with writing(self.folder):
            lock.truncate(0)
            lock.write(f"process {os.getpid()} on {os.uname().nodename}\n")
            lock.flush()
            for part in path.parent.rglob("*.part"):  # of a process that was killed while it wrote
                part.unlink(missing_ok=True)

    def release(self) -> None:
        """Let other engines in."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def last_batch(self) -> int:
        """The last batch that is complete, or -1."""
        return _last(self.spark / "commits")

    def check_logs(self) -> None:
        """Raise when Spark's notes on the last batches are not whole, and name the file; Spark's own words for it are few."""
        begun, done = _last(self.spark / "offsets"), self.last_batch()
        wanted = [
            self.spark / "offsets" / str(batch) for batch in sorted({begun, done}) if batch >= 0
        ]
        wanted += [self.spark / "commits" / str(done)] if done >= 0 else []
        for path in wanted:
            try:
                version, *lines = path.read_text(encoding="utf-8").splitlines()
                whole = (
                    version.startswith("v")
                    and bool(lines)
                    and all(line == "-" or json.loads(line) is not None for line in lines)
                )
            except (OSError, ValueError):
                whole = False
            if not whole:
                raise CheckpointError(
                    f"{path} is {'damaged' if path.exists() else 'missing'}",
                    hint="Restore the folder as a whole from a copy, or begin a new checkpoint",
                )

    def check_planned(self) -> None:
        """Raise when a file is gone that the batch under way was planned with: Spark would go on without its rows, and never ask again."""
        offsets = self.spark / "offsets"
        batch = _last(offsets)
        if batch <= self.last_batch():
            return
        before, after = _positions(offsets / str(batch - 1)), _positions(offsets / str(batch))
        for number, position in after.items():
            log = self.spark / "sources" / str(number)
            for path in _files_of(log, before.get(number, -1), position):
                if not path.exists() or (path.suffix == ".parquet" and not path.stat().st_size):
                    raise InputError(
                        f"batch {batch} was begun with {path}, which is {'empty' if path.exists() else 'gone'}",
                        hint="Put it back, or a file of the same name that has no rows, then start again",
                    )

    def begun(self) -> bool:
        """Whether any batch was planned; before, another program may take the place of the stored one."""
        return _last(self.spark / "offsets") >= 0

    def resume(
        self, wanted: Deployment, anew: frozenset[str] = frozenset(), *, may_replace: bool = False
    ) -> Resumed:
        """Return what to resume with: the stored program, and what is new in the wanted one.

        Parameters
        ----------
        wanted : Deployment
            The program as it was declared.
        anew : frozenset of str
            Queries that start anew, although the checkpoint may have them.
        may_replace : bool
            Whether output that is in the way may be deleted.

        Raises
        ------
        CheckpointError
            When the checkpoint belongs to another program, or cannot be read.
        """
        stored = self._load()
        if stored is None or not self.begun():
            if self.last_batch() >= 0:
                raise CheckpointError(
                    f"{self.folder} holds Spark's files but not our program",
                    hint="Use an empty folder, or restore it",
                )
            self._clear_output(may_replace=may_replace)
            run = uuid.uuid4().hex
            self.write(run, wanted)
            return Resumed(run, wanted)
        self._check_fits(stored.deployment, wanted)
        # A change that was written for a batch after one that is not complete has not come into force anywhere.
        changes = [
            change for change in stored.deployment.changes if change.batch <= self.last_batch() + 1
        ]
        program = replace(stored.deployment, changes=tuple(changes), max_advance=wanted.max_advance)
        found = resumption(program, wanted, anew, may_replace=may_replace)
        return Resumed(stored.run, found.deployment, found.dropped, found.added)

    def _clear_output(self, *, may_replace: bool) -> None:
        """Remove what an earlier run left whose Spark files are gone: a new run starts with batch 0 again.

        Raises
        ------
        CheckpointError
            When there are results or late rows among it, unless they may be deleted.
        """
        ours = self.program_file.parent
        batches = [
            path
            for kind in ("results", "late")
            for path in (ours / kind).glob("*/batch-0*.parquet")
        ]
        if batches and not may_replace:
            raise CheckpointError(
                f"{ours} holds results of a run whose Spark files are gone",
                hint="Restore the folder from a copy, use an empty one, or delete them with replace=True or muntin run --replace",
            )
        for path in batches:
            path.unlink(missing_ok=True)
        for name in ("global", "carried", "spool"):
            shutil.rmtree(ours / name, ignore_errors=True)

    def write(self, run: str, program: Deployment) -> None:
        """Replace the program by one with further changes; tasks of batches that are planned from now on see it."""
        with writing(self.folder):
            write_file(self.program_file, content_of(run, program))

    def _check_fits(self, before: Deployment, wanted: Deployment) -> None:
        if before.partitions != wanted.partitions:
            raise CheckpointError(
                f"{self.folder} was made with {before.partitions} partitions, not {wanted.partitions}",
                hint=f"Pass partitions={before.partitions}, or begin a new checkpoint",
            )
        difference = _stream_difference(before.streams, wanted.streams)
        if difference:
            raise CheckpointError(
                f"{self.folder} belongs to another program: {difference}",
                hint="Declare the same streams, or begin a new checkpoint",
            )
        if dict(before.tables) != dict(wanted.tables):
            raise CheckpointError(
                f"{self.folder} was made with other stored tables",
                hint="Stored tables must stay as they are; begin a new checkpoint",
            )

    def _load(self) -> _Stored | None:
        if not self.program_file.exists():
            return None
        return decode(read_file(self.program_file), _KIND, _Stored, str(self.program_file))


def _last(log: Path) -> int:
    """The greatest number that a file in one of Spark's logs has, or -1."""
    return (
        max((int(path.name) for path in log.iterdir() if path.name.isdecimal()), default=-1)
        if log.is_dir()
        else -1
    )


def _positions(offsets: Path) -> dict[int, int]:
    """How far each source of files was read, by Spark's numbers; what is not understood is left to Spark."""
    try:
        lines = [
            json.loads(line) if line.startswith("{") else None
            for line in offsets.read_text(encoding="utf-8").splitlines()[2:]
        ]
    except (OSError, ValueError):
        return {}
    return {
        number: line["logOffset"]
        for number, line in enumerate(lines)
        if line is not None and type(line.get("logOffset")) is int
    }


def _files_of(log: Path, after: int, last: int) -> Iterator[Path]:
    """The local files in a source's log, of the entries behind ``after`` up to ``last``."""
    for number in range(after + 1, last + 1):
        file = next(
            (path for path in (log / str(number), log / f"{number}.compact") if path.is_file()),
            None,
        )
        for line in file.read_text(encoding="utf-8").splitlines()[1:] if file else ():
            with suppress(ValueError):
                entry = json.loads(line)
                place = urlsplit(entry["path"])
                if entry["batchId"] == number and place.scheme == "file":
                    yield Path(unquote(place.path))


def _stream_difference(before: Sequence[Stream], wanted: Sequence[Stream]) -> str:
    names = [stream.name for stream in before], [stream.name for stream in wanted]
    if names[0] != names[1]:
        return f"its streams are {', '.join(names[0])}, not {', '.join(names[1])}"
    for old, new in zip(before, wanted, strict=True):
        if (old.schema, old.time, old.slack) != (new.schema, new.time, new.slack):
            return f"stream {old.name} was declared with other columns, time or slack"
    return ""
