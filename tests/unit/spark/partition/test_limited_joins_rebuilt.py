"""Partitions with limited joins that are rebuilt choose alike, and take back what they made.

Some are rebuilt from batches, others from snapshots, which stand in for all batches before them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from muntin.model.catalog import Stream
from muntin.spark.exchange.controls import ControlRow, ProbeLimits
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import PartitionBatch, PartitionOutput
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition import recovery
from muntin.spark.partition.partition import RESULTS
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.retained_batches import RetainedBatch

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
SECOND = 1_000_000
SQL = (
    "SELECT A.ts AS a, B.ts AS b, C.ts AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k "
    "WINDOW 1 SECOND"
)
ALWAYS, NEVER = -(10**9), 10**9
"""How many rows are retained beyond those held before a snapshot is taken."""
ADAPT = {"overload": "adapt", "sharing": "off", "replan": "off", "tree": "((A, B), C)"}


def partition_batches(
    deployment: Deployment, seed: int, join: str = "q"
) -> Iterator[PartitionBatch]:
    """Yield fourteen batches of random rows; some of them set other limits."""
    drawn = np.random.default_rng(seed)
    packers = {name: Packer(deployment, name) for name in "ABC"}
    at = 0
    for batch in range(14):
        length = int(drawn.integers(1, 4)) * SECOND // 2
        parts, newest = [], {}
        for name, packer in packers.items():
            times = np.sort(drawn.integers(at, at + length, 20))
            rows = pa.table(
                {"k": drawn.integers(0, 3, 20), "ts": pa.array(times).cast(pa.timestamp("us"))}
            )
            newest[name] = int(times[-1])
            parts += [part for partition, part in packer.pack(rows, 0) if partition == 0]
        at += length
        controls: tuple[str, ...] = ()
        if drawn.random() < 0.5:
            rates = tuple(
                None if drawn.random() < 0.3 else float(drawn.integers(0, 40)) for _ in range(4)
            )
            controls = (
                ControlRow(
                    str(batch),
                    limits=(ProbeLimits(join, (rates,), (float(drawn.integers(20, 120)),)),),
                ).to_text(),
            )
        yield PartitionBatch(batch, 0, newest, tuple(parts), controls=controls)


def results(outputs: list[PartitionOutput]) -> list[str]:
    return [
        str(row) for output in outputs if output.kind == RESULTS for row in output.table.to_pylist()
    ]


@pytest.mark.parametrize("choice", ["oldest", "newest", "random"])
@pytest.mark.parametrize("seed", range(4))
def test_a_limited_partition_rebuilt_before_any_batch_makes_the_same_choices(
    choice: str, seed: int
) -> None:
    streams = tuple(Stream(name, SCHEMA, "ts", 0) for name in "ABC")
    deployment = Deployment(
        streams, {}, (DeployedQuery("q", SQL, {**ADAPT, "probe_choice": choice}),), (), 1
    )
    plain = Deployment(streams, {}, (DeployedQuery("q", SQL, {}),), (), 1)
    unbroken, complete = RecoverablePartition(deployment, 0), RecoverablePartition(plain, 0)
    store: dict[int, tuple[RetainedBatch, PartitionBatch]] = {}
    made, possible = 0, 0
    for partition_batch in partition_batches(deployment, seed):
        kept = RecoverablePartition.rebuilt(deployment, 0, store.values())
        applied = kept.apply(partition_batch)
        store[partition_batch.batch] = (applied.note, partition_batch)
        for gone in applied.gone:
            del store[gone]
        expected = results(unbroken.apply(partition_batch).outputs)
        assert results(applied.outputs) == expected
        every = results(complete.apply(partition_batch).outputs)
        assert set(expected) <= set(every)
        made, possible = made + len(expected), possible + len(every)
    assert 0 < made < possible
    assert min(store) > 0, "some shares were let go"


JOIN = "FROM A, B, C WHERE A.k = B.k AND B.k = C.k"
PAIR = "FROM A, B WHERE A.k = B.k"
QUERIES = {
    "group": (f"SELECT A.k AS k, COUNT(*) AS n {JOIN} GROUP BY A.k WINDOW 1 SECOND", "q/1"),
    "pair": (f"SELECT A.k AS k, COUNT(*) AS n {PAIR} GROUP BY A.k WINDOW 1 SECOND", "q/1"),
    "changes": (SQL, "q"),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("seed", range(4))
def test_a_partition_rebuilt_before_any_batch_takes_back_exactly_what_it_made(
    name: str, seed: int
) -> None:
    sql, join = QUERIES[name]
    sql = f"{sql} EMIT CHANGES"
    streams = tuple(Stream(each, SCHEMA, "ts", 0) for each in "ABC")
    deployment = Deployment(streams, {}, (DeployedQuery("q", sql, ADAPT),), (), 1)
    plain = Deployment(streams, {}, (DeployedQuery("q", sql, {}),), (), 1)
    unbroken, complete = RecoverablePartition(deployment, 0), RecoverablePartition(plain, 0)
    store: dict[int, tuple[RetainedBatch, PartitionBatch]] = {}
    held: Counter[str] = Counter()
    fewer = snapshots = first = 0
    last = PartitionBatch(14, 0, {}, (), 100 * SECOND)
    for batch in [*partition_batches(deployment, seed, join), last]:
        kept = RecoverablePartition.rebuilt(deployment, 0, store.values())
        few = ALWAYS if batch.batch % 5 == 4 else NEVER
        with patch.object(recovery, "MANY", 0), patch.object(recovery, "FEW", few):
            applied, expected = kept.apply(batch), results(unbroken.apply(batch).outputs)
        store[batch.batch] = (applied.note, applied.snapshot or batch)
        for gone in applied.gone:
            del store[gone]
        if applied.snapshot is not None:
            snapshots, first = snapshots + 1, batch.batch
        assert list(store) == list(range(first, batch.batch + 1)), "all batches since a snapshot"
        assert results(applied.outputs) == expected
        fewer += results(complete.apply(batch).outputs) != expected
        for change in applied.outputs:
            for row in change.table.to_pylist() if change.kind == RESULTS else ():
                sign = row.pop("_op")
                del row["_ts"]
                held[str(row)] += 1 if sign == "+" else -1
                assert held[str(row)] >= 0, "only what is there is taken back"
    assert not +held, "everything has gone"
    assert fewer, "the join was limited"
    assert snapshots == 3
