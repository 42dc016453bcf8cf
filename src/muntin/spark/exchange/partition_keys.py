"""The grouping keys of partitions: one key per Spark partition, so that each gets its own task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def partition_keys(spark: SparkSession, partitions: int) -> tuple[int, ...]:
    """Return, for each partition, a number that Spark hashes into a different shuffle partition."""
    rows = spark.sql(
        f"SELECT CAST(id AS INT) AS id, pmod(hash(CAST(id AS INT)), {partitions}) AS place "
        f"FROM range({200 * partitions})"
    ).collect()
    first: dict[int, int] = {}
    for row in rows:
        first.setdefault(int(row["place"]), int(row["id"]))
    assert len(first) == partitions, "200 numbers per partition reach all of them"
    return tuple(first[place] for place in range(partitions))
