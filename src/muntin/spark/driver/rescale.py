"""Bring the state in a checkpoint to another number of partitions, before a run resumes.

Safe under failures: the new files and the new logs of global stages count when another manifest of
the last complete batch lists them. Before that, a start finds the old state and begins again. No
batch number is used up: a batch that was interrupted runs again under its number, by which sinks
recognize it.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from muntin.spark.driver.checkpoint import Checkpoint
from muntin.spark.driver.output_writer import OutputWriter
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.rescale import emitted, redistributed
from muntin.spark.partition.stored_batches import (
    StoredBatch,
    encode_batch,
    new_file,
    read_batches,
)

_log = logging.getLogger("muntin.spark")


def rescale(checkpoint: Checkpoint, deployment: Deployment, writer: OutputWriter) -> None:
    """Redistribute the state over the partitions of a deployment, if it has another number."""
    state, storage = checkpoint.manifests.state, checkpoint.storage
    count = len(state.partitions)
    if not count or count == deployment.partitions:
        return
    began = time.monotonic()
    old = replace(deployment, partitions=count)
    before = [
        RecoverablePartition.rebuilt(old, number, read_batches(storage, state.stored(number)))
        for number in range(count)
    ]
    rows = sum(partition.rows() for partition in before)
    spread = redistributed(before, deployment)
    placed = deployment.placed()
    if any(one.distribution.last is not None for one in placed):
        changes = emitted(spread, deployment)
        writer.stages.rescale(deployment, placed, old, state.batch, changes)
    stored = {}
    for number, (note, snapshot) in enumerate(spread):
        file = new_file(number, state.batch)
        storage.put(file, encode_batch(snapshot))
        stored[number] = StoredBatch(file, note)
    checkpoint.manifests.replace(stored)
    _log.info(
        "redistributed %s rows from %d to %d partitions in %.2f s",
        f"{rows:,}",
        count,
        deployment.partitions,
        time.monotonic() - began,
    )
