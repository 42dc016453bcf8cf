"""What partitions hold while nothing runs: built from the shares in the checkpoint, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.partition_keys import partition_keys
from muntin.spark.partition.recovery import KeptPartition, recalled


def held_at_rest(
    spark: SparkSession, checkpoint: Path, program: Deployment, exports: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], list[pa.Table]]:
    """The rows that lanes hold of streams, a table for each partition, after the last batch that is complete."""
    found: dict[tuple[str, str], list[pa.Table]] = {}
    reader = spark.read.format("statestore").option("stateVarName", "shares")
    shares = reader.load(str(checkpoint)).selectExpr(
        "key.partition AS partition", "user_map_key.batch AS batch", "user_map_value.share AS share"
    )
    for number, key in enumerate(partition_keys(spark, program.partitions)):
        kept = shares.where(shares["partition"] == key).orderBy("batch").collect()
        partition = KeptPartition.rebuilt(
            program, number, (recalled(bytes(row["share"])) for row in kept)
        )
        for lane, stream in exports:
            found.setdefault((lane, stream), []).append(partition.held(lane, stream))
    return found
