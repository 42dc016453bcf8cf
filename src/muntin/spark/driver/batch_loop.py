"""The batches of a run: run the partitions, write their outputs, then make the batch complete.

Spark calls :meth:`BatchLoop.write` before it commits a micro-batch and calls it again with the same
one after a failure. Controls that no micro-batch takes get a batch without rows. Batches have
their own numbers, without gaps; a manifest says up to which of Spark's micro-batches the state
goes.

A driver that was replaced without noticing does no harm to the checkpoint, but sinks know nothing
of leases. So it lists the claims before it plans a batch and again before the first sink.

The order of the steps keeps repetition safe: the controls of a batch are written down before it
runs; sinks replace what they have for a batch; changes of queries are written with the number of
the next batch; then the manifest makes the batch complete. Everything that only this batch needed
is removed after that.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from muntin.model.clock import BEFORE_ALL
from muntin.runtime.codec import decode
from muntin.spark.driver.batch_outputs import BatchOutputs
from muntin.spark.driver.change_queue import ChangeQueue
from muntin.spark.driver.checkpoint import Checkpoint
from muntin.spark.driver.control_queue import ControlQueue
from muntin.spark.driver.idle_sources import IdleSources
from muntin.spark.driver.load_controller import LoadController
from muntin.spark.driver.output_writer import OutputWriter
from muntin.spark.driver.phase_clock import PhaseClock
from muntin.spark.driver.query_changes import PendingChange, settled
from muntin.spark.driver.query_reports import QueryReports
from muntin.spark.driver.registry import SparkRegistry
from muntin.spark.driver.run_state import RunState
from muntin.spark.driver.shutdown import BatchInterrupted
from muntin.spark.driver.stage_job import StageJob
from muntin.spark.driver.subscriptions import Subscriptions
from muntin.spark.exchange.carried_rows import remove_carried, remove_unclaimed
from muntin.spark.exchange.controls import Controls
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.partition_metrics import STATS
from muntin.spark.exchange.shipped_functions import ShippedFunctions
from muntin.spark.partition.manifests import PartitionChange
from muntin.spark.partition.push_channel import Address
from muntin.spark.partition.task import ORDER, STATE, BatchOrder, PartitionStage, previous_files

_JOB = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
"""The local properties of Spark that name a job."""


def control_jobs(run: str) -> str:
    """Return the name of the group of the jobs that bring controls without rows."""
    return f"muntin-controls-{run}"


class BatchesEnded(Exception):  # noqa: N818 (the error that ended them is reported elsewhere)
    """Refuses a batch because no further one of this run may begin."""


@dataclass(frozen=True)
class BatchParts:
    """The parts of an engine that a batch touches, each in one step."""

    state: RunState
    checkpoint: Checkpoint
    controls: ControlQueue
    registry: SparkRegistry
    writer: OutputWriter
    load: LoadController
    changes: ChangeQueue
    subscriptions: Subscriptions
    reports: QueryReports
    idle: IdleSources


class BatchLoop:
    """Writes the batches of an engine, one after the other."""

    def __init__(self, parts: BatchParts) -> None:
        self._state = parts.state
        self._checkpoint = parts.checkpoint
        self._registry = parts.registry
        self._writer = parts.writer
        self._controls = parts.controls
        self._load = parts.load
        self._changes = parts.changes
        self._subscriptions = parts.subscriptions
        self._reports = parts.reports
        self._idle = parts.idle
        self._stage: PartitionStage
        self._stage_job: StageJob
        self._report: Callable[[float], None] = lambda _: None
        self._repeated = -1
        """The micro-batch of Spark that was begun before this start."""
        self._lock = threading.Lock()
        """Held while a batch runs: at most one does."""
        self._ended = ""
        """Why no batch of this run may begin any more, if so."""

    def begin(
        self, deployment: Deployment, driver: Address, report: Callable[[float], None]
    ) -> PartitionStage:
        """Prepare for the first batch of a run; return the stage that its batches run.

        ``driver`` takes results for subscribers; ``report`` is called after a batch without rows,
        of which Spark reports nothing, with the seconds it took.
        """
        checkpoint, run = self._checkpoint, self._state.run
        functions = ShippedFunctions.of(deployment.functions)
        tasks = replace(checkpoint.tasks, functions=functions)
        self._stage = PartitionStage(tasks, checkpoint.storage, run, driver)
        self._stage_job = StageJob(self._stage, checkpoint.lease)
        self._report = report
        self._repeated = self._checkpoint.logs.last_planned()
        self._checkpoint.manifests.sweep()
        self._controls.load()
        self._controls.stamping = any(stream.arrival for stream in deployment.streams)
        self._writer.begin(deployment, self._next(), run)
        self._writer.metrics.due = BEFORE_ALL
        self._writer.spool.clear()
        remove_unclaimed(deployment, self._checkpoint.shared.below("carried"))
        self._ended = ""
        return self._stage

    def end(self, seconds: float | None = None) -> bool:
        """Begin no batch before :meth:`begin`; return whether none runs within ``seconds``."""
        self._ended = self._ended or "the engine has released its checkpoint"
        if not self._lock.acquire(timeout=-1 if seconds is None else seconds):
            return False
        self._lock.release()
        return True

    def _next(self) -> int:
        """Return the number of the next batch."""
        return self._checkpoint.manifests.state.batch + 1

    # -- the two kinds of batches ----------------------------------------------------------------

    def write(self, outputs: DataFrame, spark: int) -> None:
        """Run the batch of a micro-batch of Spark, unless it is complete."""
        try:
            with self._one_batch():
                if spark <= self._checkpoint.manifests.state.spark:
                    return
                self._finish_interrupted(outputs.sparkSession)
                repeated = spark <= self._repeated
                controls = self._plan(has_rows=True, repeated=repeated)
                self._run(outputs, controls, spark)
        except Exception:
            if self._state.stopping:
                raise BatchInterrupted from None
            raise

    def write_controls(self, session: SparkSession) -> bool:
        """Run a batch without rows if an urgent control waits; return whether none waits now.

        While a micro-batch is outstanding that an earlier process had begun, nothing else may run.
        """
        if self._state.stopping:
            return not self._controls.urgent.is_set()
        with self._one_batch():
            if self._repeated > self._checkpoint.manifests.state.spark:
                return not self._controls.urgent.is_set()
            self._finish_interrupted(session)
            if self._controls.urgent.is_set() and not self._state.stopping:
                self._run_controls(session)
            return not self._controls.urgent.is_set()

    @contextmanager
    def _one_batch(self) -> Iterator[None]:
        """Run one batch at a time, and none after one that has failed.

        Sinks may have the results of the failed one, and Spark may have planned its rows. So only
        the next start, which runs the same batch again, may use its number.
        """
        with self._lock:
            if self._ended:
                raise BatchesEnded(self._ended)
            try:
                yield
            except BaseException as error:
                self._ended = f"an earlier batch has failed: {error}"
                raise

    def _finish_interrupted(self, session: SparkSession) -> None:
        """Run a batch without rows again that an earlier process had begun."""
        planned = self._controls.interrupted(self._next())
        if planned is not None and not planned.has_rows:
            self._run_controls(session)

    def _plan(self, *, has_rows: bool, repeated: bool = False) -> Controls:
        """Return the controls of the next batch; a driver that was replaced plans none."""
        self._checkpoint.lease.check()
        return self._controls.plan(self._next(), has_rows=has_rows, repeated=repeated)

    def _run_controls(self, session: SparkSession) -> None:
        controls = self._plan(has_rows=False)
        partitions = self._state.current().partitions
        nothing = session.range(0, partitions, 1, partitions).where("id < 0")
        context = session.sparkContext
        names = (*_JOB, ORDER)
        before: dict[str, Any] = {name: context.getLocalProperty(name) for name in names}
        context.setJobGroup(control_jobs(self._state.run), "", interruptOnCancel=False)
        try:
            self._run(self._stage.over(nothing), controls, None)
        finally:  # the thread may be the user's
            for name, value in before.items():
                context.setLocalProperty(name, value)

    # -- one batch -------------------------------------------------------------------------------

    def _run(self, outputs: DataFrame, controls: Controls, spark: int | None) -> None:
        """Run the partitions, and complete the batch."""
        clock, began = PhaseClock(self._writer.metrics.phases), time.monotonic()
        batch = self._next()
        context = outputs.sparkSession.sparkContext
        self._name_jobs(context, batch)
        queries = list(self._registry.queries.values())
        results = self._writer.plan(batch, queries, self._subscriptions.names())
        state = self._checkpoint.manifests.state
        order = BatchOrder(
            batch, state.version, state.token, controls, results, previous_files(state)
        )
        order.give(context)
        clock.end("plan")
        with ThreadPoolExecutor(1) as pool:  # beside the job, as it waits for the disk
            synced = None if spark is None else pool.submit(self._checkpoint.logs.sync, spark)
            found = self._writer.run(outputs, batch, self._stage_job)
        if synced is not None:
            synced.result()
        clock.end("partitions")
        self._checkpoint.lease.check()
        self._writer.write(found, batch, self._registry.queries, self._registry.streams())
        for name in self._writer.suspended:
            # Partitions in which it still runs must not push results.
            self._subscriptions.forget(name)
        clock.end("sinks")
        if self._state.live:
            metrics = [json.loads(row["blob"]) for row in found.get((STATS, ""), ())]
            self._load.observe(batch, time.monotonic() - began, metrics)
            self._idle.observe(metrics)
        if spark is not None:
            self._writer.metrics.note(spark, self._reports.counts())
        settled_changes = self._settle_changes(found, controls)
        changes = [
            decode(bytes(row["blob"]), STATE, PartitionChange, "the state of a partition")
            for row in found.get((STATE, ""), ())
        ]
        partitions = self._state.current().partitions
        assert len(changes) in {0, partitions}, "a batch has work for all partitions or for none"
        self._checkpoint.manifests.commit(changes, spark)
        self._controls.complete(controls)
        self._changes.settle(settled_changes)
        self._writer.spool.clear()
        done = self._checkpoint.manifests.state.version
        remove_carried(self._state.current(), done, self._checkpoint.shared.below("carried"))
        clock.end("commit")
        if spark is None:
            self._report(time.monotonic() - began)

    def _name_jobs(self, context: SparkContext, batch: int) -> None:
        """Show the queries on Spark's pages."""
        names = ", ".join(
            registered.query.name for registered in list(self._registry.queries.values())
        )
        context.setJobDescription(f"Muntin batch {batch}: {names or 'no queries'}")

    def _settle_changes(self, found: BatchOutputs, controls: Controls) -> Sequence[PendingChange]:
        """Write the changes that came with a batch; they are in force from the next one on."""
        arrived = self._changes.arrived(controls.names())
        if not arrived:
            return ()
        held = self._writer.held(found)
        deployment = self._state.current()
        for change in arrived:
            deployment = settled(
                deployment,
                change,
                self._next() + 1,
                held.get(change.name, {}),
                self._checkpoint.tasks.carried,
            )
        self._checkpoint.write(self._state.run, deployment)
        self._state.deployment = deployment
        self._writer.follow(deployment)
        # Partitions have yet to report the next deadline of the new queries.
        self._writer.metrics.due = BEFORE_ALL
        return arrived
