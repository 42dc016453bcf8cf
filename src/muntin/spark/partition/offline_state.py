"""The rows that partitions hold while no engine runs, rebuilt in this process from a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from muntin.spark.exchange.deployment import Deployment
from muntin.spark.partition.manifests import CommittedState
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.stored_batches import read_batches
from muntin.spark.storage import Storage


def rows_in_checkpoint(
    storage: Storage,
    state: CommittedState,
    deployment: Deployment,
    exports: Sequence[tuple[str, str]],
) -> dict[tuple[str, str], list[pa.Table]]:
    """Return the rows that dataflows hold of streams in a committed state.

    Rows that only dropped queries hold are not among them, even if the drop comes into force with
    the next batch: a query that is replaced finds what it would find after it was dropped.

    ``exports`` are pairs of a dataflow and a stream; each gets one table per partition.
    """
    found: dict[tuple[str, str], list[pa.Table]] = {}
    for number in range(deployment.partitions):
        partition = RecoverablePartition.rebuilt(
            deployment, number, read_batches(storage, state.stored(number))
        )
        partition.release()
        for dataflow, stream in exports:
            found.setdefault((dataflow, stream), []).append(partition.held(dataflow, stream))
    return found
