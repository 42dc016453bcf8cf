"""The work of the driver after each micro-batch: write the outputs, then make everything durable.

Spark calls :meth:`BatchLoop.write` before it commits a batch and calls it again with the same batch
after a failure. The order of the steps keeps that safe: sinks replace what they have for a batch;
changes of queries are written with the number of the next batch; spooled outputs are removed only
after the sinks have them, and carried rows only after the batch that used them is complete.
"""

from __future__ import annotations

import json
import time

from pyspark.sql import DataFrame

from muntin.model.clock import BEFORE_ALL
from muntin.spark.driver.change_queue import ChangeQueue
from muntin.spark.driver.checkpoint import Checkpoint
from muntin.spark.driver.load_controller import LoadController
from muntin.spark.driver.output_writer import BatchOutputs, OutputWriter
from muntin.spark.driver.query_changes import settled
from muntin.spark.driver.query_reports import QueryReports
from muntin.spark.driver.registry import SparkRegistry
from muntin.spark.driver.run_state import RunState
from muntin.spark.driver.shutdown import BatchInterrupted
from muntin.spark.driver.subscriptions import Subscriptions
from muntin.spark.exchange.carried_rows import remove_carried, remove_unclaimed
from muntin.spark.exchange.controls import CONTROLS
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.partition_metrics import STATS


class BatchLoop:
    """Writes the batches of an engine, one after the other."""

    def __init__(  # noqa: PLR0913 (the parts that a batch touches, each used in one step)
        self,
        state: RunState,
        checkpoint: Checkpoint,
        registry: SparkRegistry,
        writer: OutputWriter,
        *,
        load: LoadController,
        changes: ChangeQueue,
        subscriptions: Subscriptions,
        reports: QueryReports,
    ) -> None:
        self._state = state
        self._checkpoint = checkpoint
        self._registry = registry
        self._writer = writer
        self._load = load
        self._changes = changes
        self._subscriptions = subscriptions
        self._reports = reports
        self._last_busy = -1
        """The last batch since this process began in which partitions had work."""

    def begin(self, deployment: Deployment) -> None:
        """Prepare for the first batch of a run."""
        self._writer.begin(deployment, self._checkpoint.last_batch() + 1)
        self._writer.metrics.due = BEFORE_ALL
        self._writer.spool.clear()
        remove_unclaimed(deployment, self._checkpoint.tasks.carried)

    def write(self, outputs: DataFrame, batch: int) -> None:
        """Write the outputs of a batch, then settle the changes that arrived with it."""
        try:
            self._write(outputs, batch)
        except Exception:
            if self._state.stopping:
                raise BatchInterrupted from None
            raise

    def _write(self, outputs: DataFrame, batch: int) -> None:
        began = time.monotonic()
        found = self._writer.collect(outputs)
        self._writer.write(found, batch, self._registry.queries, self._registry.streams())
        for name in self._writer.suspended:
            # Partitions in which it still runs must not push results.
            self._subscriptions.forget(name)
        if self._state.live:
            metrics = [json.loads(row["blob"]) for row in found.get((STATS, ""), ())]
            self._load.observe(batch, time.monotonic() - began, metrics)
        self._writer.metrics.note(batch, self._reports.counts())
        self._settle_changes(found, batch)
        self._writer.spool.clear()
        remove_carried(self._state.current(), self._last_busy, self._checkpoint.tasks.carried)
        if (STATS, "") in found:
            self._last_busy = batch

    def _settle_changes(self, found: BatchOutputs, batch: int) -> None:
        """Write the changes that arrived with a batch; they are in force from the next one on."""
        arrived = self._changes.arrived({name for kind, name in found if kind == CONTROLS})
        if not arrived:
            return
        held = self._writer.held(found)
        deployment = self._state.current()
        for change in arrived:
            deployment = settled(
                deployment,
                change,
                batch + 1,
                held.get(change.name, {}),
                self._checkpoint.tasks.carried,
            )
        self._state.deployment = deployment
        self._checkpoint.write(self._state.run, deployment)
        self._writer.follow(deployment)
        # Partitions have yet to report the next deadline of the new queries.
        self._writer.metrics.due = BEFORE_ALL
        self._changes.settle(arrived)
