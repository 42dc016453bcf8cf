"""What buckets hold while nothing runs: built from the shares in the checkpoint, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from muntin.spark.pipeline import bucket_keys
from muntin.spark.program import Program
from muntin.spark.rebuilding import KeptBucket, recalled


def held_at_rest(
    spark: SparkSession, checkpoint: Path, program: Program, exports: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], list[pa.Table]]:
    """The rows that lanes hold of streams, a table for each bucket, after the last batch that is complete."""
    found: dict[tuple[str, str], list[pa.Table]] = {}
    reader = spark.read.format("statestore").option("stateVarName", "shares")
    shares = reader.load(str(checkpoint)).selectExpr("key.bucket AS bucket", "user_map_key.batch AS batch", "user_map_value.share AS share")
    for number, key in enumerate(bucket_keys(spark, program.buckets)):
        kept = shares.where(shares["bucket"] == key).orderBy("batch").collect()
        bucket = KeptBucket.rebuilt(program, number, (recalled(bytes(row["share"])) for row in kept))
        for lane, stream in exports:
            found.setdefault((lane, stream), []).append(bucket.held(lane, stream))
    return found
