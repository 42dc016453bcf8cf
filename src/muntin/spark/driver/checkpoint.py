"""The checkpoint folder of an engine: Spark's files, and beside them the deployment and our output.

Invariant: one engine at a time. A file lock guards the folder until the process ends, however it
ends. The deployment is replaced atomically, before Spark commits the batch that brought the change,
so a restart finds either all of a change or none of it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from muntin.model.catalog import Stream
from muntin.runtime.frames import CheckpointError, write_file, writing
from muntin.spark.driver.resume_plan import ResumePlan, plan_resume
from muntin.spark.driver.spark_logs import SparkLogs
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.deployment_file import DeploymentFile, encode_deployment, read_stored
from muntin.spark.partition.manifests import CommittedState, ManifestLog
from muntin.spark.storage import LocalStorage

__all__ = ["Checkpoint", "CheckpointError"]


class Checkpoint:
    """A checkpoint folder on a file system that this process can write to.

    ``held`` is an object that must live as long, for example the guard of a temporary folder.
    """

    def __init__(self, folder: Path, held: object = None) -> None:
        self.folder = folder
        self.ours = folder / "muntin"
        self.deployment_file = self.ours / "program"
        self.logs = SparkLogs(self.spark)
        self.storage = LocalStorage(self.ours)
        self.manifests = ManifestLog(self.storage)
        self._held = held
        self._lock: IO[str] | None = None

    @property
    def tasks(self) -> DeploymentFile:
        """The deployment as tasks find it."""
        return DeploymentFile(str(self.deployment_file))

    @property
    def spark(self) -> Path:
        """The folder that Spark calls its checkpoint."""
        return self.folder / "spark"

    def acquire(self) -> None:
        """Lock the folder until :meth:`release`, or until this process ends, however it ends.

        Raises
        ------
        CheckpointError
            When another engine has locked it, in this process or another, or when the folder cannot
            be written to.
        """
        if self._lock is not None:
            return
        path = self.ours / "lock"
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
                    f"{self.folder} is in use by another engine ({holder or 'unknown'})",
                    hint="Stop that one first, or give each engine a separate checkpoint",
                ) from error
            raise CheckpointError(
                f"{path} cannot be locked: {error.strerror}",
                hint="Put the checkpoint on a file system that supports locks",
            ) from error
        self._lock = lock
        with writing(self.folder):
            lock.truncate(0)
            lock.write(f"process {os.getpid()} on {os.uname().nodename}\n")
            lock.flush()
            for part in path.parent.rglob("*.part"):  # of a process killed while it wrote
                part.unlink(missing_ok=True)

    def release(self) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def last_batch(self) -> int:
        """Return the last batch that is complete, or -1."""
        return self.manifests.last()

    def begun(self) -> bool:
        """Return whether any batch was planned; before that, the deployment may be replaced."""
        return self.logs.last_planned() >= 0

    def resume(
        self,
        declared: Deployment,
        restarted: frozenset[str] = frozenset(),
        *,
        may_replace: bool = False,
    ) -> ResumePlan:
        """Return the run and the deployment to resume with, and the queries to drop and add.

        Parameters
        ----------
        declared : Deployment
            The deployment as it is declared now.
        restarted : frozenset of str
            Queries that start again although the checkpoint may have them.
        may_replace : bool
            Whether output that is in the way may be deleted.

        Raises
        ------
        CheckpointError
            When the checkpoint belongs to other declarations, or cannot be read.
        """
        stored = read_stored(self.deployment_file)
        state = self.manifests.load()
        # Batches without rows may have come before the first one of Spark.
        begun = self.begun() or (state.batch >= 0 and state.spark < 0)
        if stored is None or not begun:
            if self.logs.last_complete() >= 0:
                raise CheckpointError(
                    f"{self.folder} holds Spark's files but no deployment",
                    hint="Use an empty folder, or restore it",
                )
            self._clear_output(may_replace=may_replace)
            run = uuid.uuid4().hex
            self.write(run, declared)
            return ResumePlan(run, declared)
        self._check_fits(stored.deployment, declared)
        self._check_state(state)
        # A change for a batch after an incomplete one has not come into force anywhere.
        changes = tuple(
            change for change in stored.deployment.changes if change.batch <= self.last_batch() + 1
        )
        deployment = replace(
            stored.deployment,
            changes=changes,
            max_advance=declared.max_advance,
            partitions=declared.partitions,
        )
        return plan_resume(
            replace(stored, deployment=deployment), declared, restarted, may_replace=may_replace
        )

    def _clear_output(self, *, may_replace: bool) -> None:
        """Remove the output of an earlier run whose Spark files are gone: batches start at 0 again.

        Raises
        ------
        CheckpointError
            When it contains results or late rows, unless they may be deleted.
        """
        batches = [
            path
            for kind in ("results", "late")
            for path in (self.ours / kind).glob("*/batch-0*.parquet")
        ]
        if batches and not may_replace:
            raise CheckpointError(
                f"{self.ours} holds results of a run whose Spark files are gone",
                hint="Restore the folder from a copy, use an empty one, or delete them with "
                "replace=True or muntin run --replace",
            )
        for path in batches:
            path.unlink(missing_ok=True)
        for name in ("global", "carried", "spool"):
            shutil.rmtree(self.ours / name, ignore_errors=True)
        self.manifests.clear()
        self.storage.delete(["planned"])

    def write(self, run: str, deployment: Deployment) -> None:
        """Replace the deployment; tasks of batches that are planned from now on read it."""
        with writing(self.folder):
            write_file(self.deployment_file, encode_deployment(run, deployment))

    def _check_state(self, state: CommittedState) -> None:
        """Raise if Spark is ahead of the state after the last complete batch."""
        done = self.logs.last_complete()
        if state.spark < done:
            raise CheckpointError(
                f"{self.folder} has lost the state after Spark's batch {done}, which is complete",
                hint="Restore the entire folder from a copy, or begin a new checkpoint",
            )

    def _check_fits(self, before: Deployment, declared: Deployment) -> None:
        difference = _stream_difference(before.streams, declared.streams)
        if difference:
            raise CheckpointError(
                f"{self.folder} belongs to another deployment: {difference}",
                hint="Declare the same streams, or begin a new checkpoint",
            )
        if dict(before.tables) != dict(declared.tables):
            raise CheckpointError(
                f"{self.folder} was made with other stored tables",
                hint="Stored tables must stay as they are; begin a new checkpoint",
            )


def _stream_difference(before: Sequence[Stream], declared: Sequence[Stream]) -> str:
    names = [stream.name for stream in before], [stream.name for stream in declared]
    if names[0] != names[1]:
        return f"its streams are {', '.join(names[0])}, not {', '.join(names[1])}"
    for old, new in zip(before, declared, strict=True):
        if (old.schema, old.time, old.slack) != (new.schema, new.time, new.slack):
            return f"stream {old.name} was declared with other columns, time or slack"
    return ""
