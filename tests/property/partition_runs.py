"""How property tests run partitions that are rebuilt from what they have retained."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.messages import PartitionBatch, PartitionOutput
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.retained_batches import RetainedBatch


def run_partitions(
    deployment: Deployment, batches: Iterable[Sequence[PartitionBatch]], restarts: Collection[int]
) -> list[PartitionOutput]:
    """Return all outputs of all partitions, which are rebuilt before some batches, by number."""
    running = [RecoverablePartition(deployment, number) for number in range(deployment.partitions)]
    stores: list[dict[int, tuple[RetainedBatch, PartitionBatch]]] = [{} for _ in running]
    outputs = []
    for number, batch in enumerate(batches):
        for partition, partition_batch in enumerate(batch):
            store = stores[partition]
            if number in restarts:
                running[partition] = RecoverablePartition.rebuilt(
                    deployment, partition, store.values()
                )
            applied = running[partition].apply(partition_batch)
            store[partition_batch.batch] = (applied.note, applied.snapshot or partition_batch)
            for gone in applied.gone:
                del store[gone]
            outputs += applied.outputs
    return outputs
