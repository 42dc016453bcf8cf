"""The checkpoint of an engine: Spark's files, and beside them the deployment and our output.

Invariant: one engine at a time (:mod:`muntin.spark.driver.lease`). The deployment is replaced
before the manifest that completes the batch that brought the change, so a restart finds either all
of a change or none of it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from muntin.model.catalog import Stream
from muntin.runtime.frames import CheckpointError
from muntin.spark.driver.lease import Lease
from muntin.spark.driver.resume_plan import ResumePlan, plan_resume
from muntin.spark.driver.spark_logs import SparkLogs
from muntin.spark.driver.suspended_queries import SUSPENDED
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.deployment_file import (
    PROGRAM,
    DeploymentFile,
    StoredDeployment,
    encode_deployment,
    read_stored,
)
from muntin.spark.partition.manifests import CommittedState, ManifestLog
from muntin.spark.replacement import NOTHING, Replacement
from muntin.spark.storage import LocalStorage, Storage
from muntin.spark.storage.fence import FencedStorage, VersionedStorage

__all__ = ["Checkpoint", "CheckpointError"]

_BATCH = re.compile(r"[^/]+/batch-\d+\.parquet")


class Checkpoint:
    """A checkpoint in a folder or a storage.

    ``storage`` has everything that is ours; tasks use it. The driver uses ``files`` for what it
    replaces and ``shared`` for files that have names of their own. ``held`` is an object that must
    live as long, for example the guard of a temporary folder.
    """

    def __init__(self, root: Storage | Path, held: object = None) -> None:
        root = LocalStorage(root) if isinstance(root, Path) else root
        self.name = root.place.url
        self.spark = root.below("spark").place.url
        """The folder that Spark calls its checkpoint."""
        self.logs = SparkLogs(root.below("spark"))
        self.storage = root.below("muntin")
        self.lease = Lease(self.storage, self.name)
        self.files = VersionedStorage(self.storage, self.lease)
        self.shared = FencedStorage(self.storage, self.lease)
        self.manifests = ManifestLog(self.storage, self.lease)
        self._held = held
        self._retired = ""

    @property
    def tasks(self) -> DeploymentFile:
        """Return the deployment as tasks find it."""
        return DeploymentFile(self.storage, self.lease.token)

    def acquire(self) -> None:
        """Claim the checkpoint until :meth:`release`, or until this process ends, however it ends.

        Raises
        ------
        CheckpointError
            When another engine has it, in this process or another, or when it cannot be written to.
        """
        self.lease.acquire()
        self.shared.sweep()

    def release(self) -> None:
        """Let other engines have it."""
        self.lease.release()

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
        replacement: Replacement = NOTHING,
    ) -> ResumePlan:
        """Return the run and the deployment to resume with, and the queries to drop and add.

        Parameters
        ----------
        declared : Deployment
            The deployment as it is declared now.
        restarted : frozenset of str
            Queries that start again although the checkpoint may have them.
        replacement : Replacement
            The queries to replace.

        Raises
        ------
        CheckpointError
            When the checkpoint belongs to other declarations, or cannot be read.
        """
        stored = self.stored(declared, replacement)
        if stored is None:
            return ResumePlan(uuid.uuid4().hex, declared, begins=True)
        return plan_resume(stored, declared, restarted, replacement)

    def stored(self, declared: Deployment, replacement: Replacement) -> StoredDeployment | None:
        """Return what declared queries resume from; None if a run begins.

        Changes of queries that never came into force are left out. Without a claim, this only
        reads.

        Raises
        ------
        CheckpointError
            When the checkpoint belongs to other declarations, or cannot be read.
        """
        stored = read_stored(self.files)
        state = self.manifests.load()
        self.lease.begin(state.batch)
        # Batches without rows may have come before the first one of Spark.
        begun = self.begun() or (state.batch >= 0 and state.spark < 0)
        if stored is None or not begun:
            if self.logs.last_complete() >= 0:
                raise CheckpointError(
                    f"{self.name} holds Spark's files but no deployment",
                    hint="Use an empty folder, or restore it",
                )
            self._check_clearable(state, replacement)
            return None
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
            functions=declared.functions,
        )
        return replace(stored, deployment=deployment)

    def _check_clearable(self, state: CommittedState, replacement: Replacement) -> None:
        """Raise if there is state or output of an earlier run, unless it may be deleted."""
        if replacement.everything or (state.batch < 0 and not self._output()):
            return
        raise CheckpointError(
            f"{self.storage.place.url} holds "
            f"{'the state' if state.batch >= 0 else 'results'} of a run whose Spark files are gone",
            hint="Restore the folder from a copy, use an empty one, or delete them: "
            + replacement.remedy_for_all(),
        )

    def _output(self) -> list[tuple[Storage, str]]:
        """Return the files of results and late rows in the checkpoint."""
        return [
            (files, name)
            for files in (self.shared.below("results"), self.files.below("late"))
            for name in files.tree()
            if _BATCH.fullmatch(name)
        ]

    def clear(self) -> None:
        """Remove what is left of an earlier run: batches start at 0 again."""
        for files, name in self._output():
            files.delete([name])
        for folder in ("global", "carried", "spool"):
            self.shared.delete_tree(folder)
        self.manifests.clear()
        self.lease.begin(-1)
        self.files.delete(["planned", "arrival", SUSPENDED])

    def write(self, run: str, deployment: Deployment) -> None:
        """Replace the deployment; tasks of batches that are planned from now on read it."""
        self.files.put(PROGRAM, encode_deployment(run, deployment))
        if self._retired != self.lease.token:
            self.files.retire()
            self._retired = self.lease.token

    def _check_state(self, state: CommittedState) -> None:
        """Raise if Spark is ahead of the state after the last complete batch, or behind it.

        If it is behind, it plans a micro-batch of a known number again, with other input, which
        would be taken for a repetition.
        """
        done = self.logs.last_complete()
        if state.spark < done:
            raise CheckpointError(
                f"{self.name} has lost the state after Spark's batch {done}, which is complete",
                hint="Restore the entire folder from a copy, or begin a new checkpoint",
            )
        planned = self.logs.last_planned()
        if state.spark > planned:
            raise CheckpointError(
                f"{self.name} has the state after Spark's batch {state.spark}, but the offsets in "
                f"{self.spark} end with batch {planned}: rows would be skipped",
                hint="Restore the entire folder from one copy, Spark's part and Muntin's together, "
                "or begin a new checkpoint",
            )

    def _check_fits(self, before: Deployment, declared: Deployment) -> None:
        difference = _stream_difference(before.streams, declared.streams)
        if difference:
            raise CheckpointError(
                f"{self.name} belongs to another deployment: {difference}",
                hint="Declare the same streams, or begin a new checkpoint",
            )
        if dict(before.tables) != dict(declared.tables):
            raise CheckpointError(
                f"{self.name} was made with other stored tables",
                hint="Stored tables must stay as they are; begin a new checkpoint",
            )
        known = {str(function) for function in declared.functions}
        missing = [str(each) for each in before.functions if str(each) not in known]
        if missing:
            raise CheckpointError(
                f"{self.name} was made with the functions {', '.join(missing)}",
                hint="Declare them with engine.function before the engine starts",
            )


def _stream_difference(before: Sequence[Stream], declared: Sequence[Stream]) -> str:
    names = [stream.name for stream in before], [stream.name for stream in declared]
    if names[0] != names[1]:
        return f"its streams are {', '.join(names[0])}, not {', '.join(names[1])}"
    for old, new in zip(before, declared, strict=True):
        if (old.schema, old.time, old.slack) != (new.schema, new.time, new.slack):
            return f"stream {old.name} was declared with other columns, time or slack"
    return ""
