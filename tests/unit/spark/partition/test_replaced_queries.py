"""Queries that are replaced between two batches, once or several times, in one partition."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.model.catalog import Stream
from muntin.spark.exchange.deployment import DeployedQuery, Deployment, QueryChange
from muntin.spark.exchange.messages import Part, PartitionBatch, to_blob
from muntin.spark.partition.partition import RESULTS
from muntin.spark.partition.recovery import RecoverablePartition

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
SECOND = 1_000_000
SHORT = DeployedQuery("short", "SELECT k FROM A WINDOW 2 SECONDS", {})
LONG = DeployedQuery("q", "SELECT k FROM A WINDOW 1 MINUTE", {})


def deployment(*changes: QueryChange) -> Deployment:
    return Deployment((Stream("A", SCHEMA, "ts", 0),), {}, (SHORT, LONG), changes, 1)


def batch_of(deployed: Deployment, batch: int, *seconds: int) -> PartitionBatch:
    times = pa.array([second * SECOND for second in seconds]).cast(pa.timestamp("us"))
    rows = to_blob(pa.table([pa.array(seconds, pa.int64()), times], schema=SCHEMA))
    newest = {"A": max(seconds) * SECOND}
    return PartitionBatch(batch, deployed.epoch(batch), newest, (Part(0, "A", 0, rows),))


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_query_replaced_several_times_before_a_batch_begins_once(times: int) -> None:
    """A start that was killed and repeated leaves several changes for the same batch."""
    counting = DeployedQuery("q", "SELECT COUNT(*) AS n FROM A WINDOW 9 SECONDS EMIT CHANGES", {})
    again = (QueryChange(1, dropped="q"), QueryChange(1, added=counting, dataflow="0"))
    found, once = results(deployment(*again * times)), results(deployment(*again))
    assert found == once
    assert found


def results(deployed: Deployment) -> list[dict[str, object]]:
    """Return the results of q in batch 1."""
    partition = RecoverablePartition(deployed, 0)
    partition.apply(batch_of(deployed, 0, 1, 2))
    outputs = partition.apply(batch_of(deployed, 1, 3, 4)).outputs
    tables = [one.table for one in outputs if one.kind == RESULTS and one.name != "short"]
    return [row for table in tables for row in table.to_pylist()]


def test_rows_that_only_a_replaced_query_held_are_released() -> None:
    deployed = deployment(QueryChange(2, dropped="q"))
    partition = RecoverablePartition(deployed, 0)
    for batch, seconds in enumerate([(1, 5), (9, 10)]):
        partition.apply(batch_of(deployed, batch, *seconds))
    assert partition.held("0", "A").column("k").to_pylist() == [1, 5, 9, 10]
    partition.release()
    assert partition.held("0", "A").column("k").to_pylist() == [9, 10]
