"""The rows that partitions hold while no engine runs, rebuilt in this process from a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.partition_keys import partition_keys
from muntin.spark.partition.recovery import RecoverablePartition, decode_retained


def rows_in_checkpoint(
    spark: SparkSession,
    checkpoint: Path,
    deployment: Deployment,
    exports: Sequence[tuple[str, str]],
) -> dict[tuple[str, str], list[pa.Table]]:
    """Return the rows that dataflows hold of streams after the last complete batch.

    ``exports`` are pairs of a dataflow and a stream; each gets one table per partition.
    """
    found: dict[tuple[str, str], list[pa.Table]] = {}
    reader = spark.read.format("statestore").option("stateVarName", "shares")
    batches = reader.load(str(checkpoint)).selectExpr(
        "key.partition AS partition", "user_map_key.batch AS batch", "user_map_value.share AS frame"
    )
    for number, key in enumerate(partition_keys(spark, deployment.partitions)):
        retained = batches.where(batches["partition"] == key).orderBy("batch").collect()
        partition = RecoverablePartition.rebuilt(
            deployment, number, (decode_retained(bytes(row["frame"])) for row in retained)
        )
        for dataflow, stream in exports:
            found.setdefault((dataflow, stream), []).append(partition.held(dataflow, stream))
    return found
