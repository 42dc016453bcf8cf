"""The batches without rows of a run: what starts and reports them, and what a failure does."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from muntin.errors import RunError
from muntin.spark.driver.batch_loop import BatchesEnded, control_jobs
from muntin.spark.driver.engine_parts import EngineParts
from muntin.spark.driver.heartbeat import ControlRunner, Heartbeat
from muntin.spark.driver.idle_sources import IdleSources, idle_limits
from muntin.spark.driver.listener import RunListener
from muntin.spark.driver.run_failures import RunFailures
from muntin.spark.driver.shutdown import end_query

_log = logging.getLogger("muntin.spark")

_END = 60.0
"""Seconds in which Spark has to end a run that has failed."""


class ControlBatches:
    """Runs the batches without rows of an engine.

    ``failure`` is the error of one that ended the run; ``listener`` gets the
    progress of each.
    """

    def __init__(self, spark: SparkSession, parts: EngineParts, failures: RunFailures) -> None:
        self._spark = spark
        self._parts = parts
        self._failures = failures
        self._heartbeat: Heartbeat | None = None
        self._idle: IdleSources | None = None
        self._runner: ControlRunner | None = None
        self.listener: RunListener | None = None
        self.failure: RunError | None = None

    def start(self, delay: int | None) -> None:
        """Start the threads of a live run; with ``delay``, one that sends heartbeats.

        A heartbeat is a promise for all streams, so it is held back by the largest slack, too.
        """
        controls = self._parts.controls
        self._runner = ControlRunner(controls, self._run_when_idle, self._fail)
        self._idle = self._parts.idle
        self._idle.start(idle_limits(self._parts.registry.streams()))
        if delay is not None:
            due = lambda: self._parts.writer.metrics.due  # noqa: E731
            slack = max((each.slack for each in self._parts.registry.streams()), default=0)
            self._heartbeat = Heartbeat(controls.send_moment, delay + slack, due)

    def run(self) -> bool:
        """Run a batch for the controls that wait, if any does; return whether none waits now."""
        try:
            return self._parts.batches.write_controls(self._spark)
        except (Py4JError, PySparkException, RunError) as error:
            raise self._failures.explained(str(error)) from error

    def run_or_end(self) -> None:
        """Run such a batch in a live run, which ends if the batch fails."""
        try:
            self.run()
        except Exception as error:
            if not self._parts.state.stopping:
                self._fail(error)
            raise

    def _run_when_idle(self) -> bool:
        """Run such a batch once no rows wait that could take the controls along."""
        self._streaming.processAllAvailable()
        return self.run()

    @property
    def _streaming(self) -> StreamingQuery:
        streaming = self._parts.state.streaming
        assert streaming is not None, "it was started"
        return streaming

    def report(self, seconds: float) -> None:
        """Report a batch that took some seconds, in the form of Spark's progress."""
        if self._parts.state.streaming is None or self.listener is None:
            return
        progress = self._parts.state.controls_progress = {
            "id": str(self._streaming.id),
            "runId": str(self._streaming.runId),
            "name": self._streaming.name,
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "batchId": self._parts.checkpoint.manifests.state.batch,
            "numInputRows": 0,
            "durationMs": {"triggerExecution": round(seconds * 1000)},
            "sources": [],
            "muntin": self._parts.reports.counts(),
        }
        self.listener.report_controls(progress)

    def _fail(self, error: Exception) -> None:
        """End the run because a batch has failed."""
        if isinstance(error, BatchesEnded) or not self._streaming.isActive:
            return  # the query has already ended, and its own error says why
        self.failure = (
            error if isinstance(error, RunError) else self._failures.explained(str(error))
        )
        _log.error("the run ends: %s", self.failure)
        end_query(self._spark, self._streaming, _END)

    def end(self, seconds: float) -> None:
        """End the heartbeat, cancel the batch that runs, if any, and start no other one."""
        if self._heartbeat is not None:
            self._heartbeat.stop(seconds)
            self._heartbeat = None
        if self._idle is not None:
            self._idle.stop(seconds)
            self._idle = None
        if self._runner is not None:
            self._runner.end()
            self._spark.sparkContext.cancelJobGroup(control_jobs(self._parts.state.run))

    def join(self, seconds: float) -> bool:
        """Wait until nothing runs any more; return whether that took at most ``seconds``."""
        runner, self._runner = self._runner, None
        return runner is None or runner.join(seconds)
