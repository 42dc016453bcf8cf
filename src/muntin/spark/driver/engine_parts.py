"""The parts of an engine on Spark, and how they are wired."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from muntin.engine.declarations import Declarations
from muntin.spark.driver.batch_loop import BatchLoop, BatchParts
from muntin.spark.driver.change_queue import ChangeQueue
from muntin.spark.driver.checkpoint import Checkpoint
from muntin.spark.driver.control_queue import ControlQueue
from muntin.spark.driver.idle_sources import IdleSources
from muntin.spark.driver.load_controller import LoadController
from muntin.spark.driver.output_writer import OutputWriter
from muntin.spark.driver.query_reports import QueryReports
from muntin.spark.driver.registry import SparkRegistry
from muntin.spark.driver.run_state import RunState
from muntin.spark.driver.subscriptions import Subscriptions
from muntin.spark.partition.spool import Spool
from muntin.spark.sinks import SinkMaker

_CHANGE = 300.0
"""Seconds in which a batch has to apply a change of queries, besides two trigger intervals."""


@dataclass(frozen=True)
class EngineParts(BatchParts):
    """The parts of an engine; each has one job and uses only the parts it is given."""

    batches: BatchLoop

    @classmethod
    def make(
        cls,
        declared: Declarations,
        checkpoint: Checkpoint,
        sinks: SinkMaker,
        *,
        partitions: int,
        interval: float,
    ) -> EngineParts:
        """Return the parts of a new engine; ``interval`` is the trigger in seconds."""
        state, subscriptions = RunState(), Subscriptions()
        controls = ControlQueue(checkpoint.files)
        registry = SparkRegistry(declared, sinks)
        spool = Spool(checkpoint.shared.below("spool"))
        writer = OutputWriter(checkpoint.files, spool, subscriptions.take)
        load = LoadController(partitions, interval, partial(controls.send, urgent=False))
        changes = ChangeQueue(state, controls, _CHANGE + 2 * interval, writer.is_calling_sink)
        reports = QueryReports(state, registry, writer, load, subscriptions)
        parts = BatchParts(
            state,
            checkpoint,
            controls,
            registry,
            writer,
            load,
            changes,
            subscriptions,
            reports,
            IdleSources(controls.send),
        )
        return cls(**vars(parts), batches=BatchLoop(parts))
