"""FIRST and LAST in a global stage identify rows by their positions.

A rebuilt partition gives its rows the same positions as before.
"""

from __future__ import annotations

import random
import tempfile
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import muntin
from muntin.expressions.duck import Duck
from muntin.model.catalog import Stream
from muntin.spark.driver.global_stages import GlobalStages
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import Part, PartitionBatch, PartitionOutput
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.spark.storage import LocalStorage
from muntin.testing.compare import assert_same_changes
from tests.unit.spark.partition.test_recovery import newest_of

SECOND = 1_000_000
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
ALONE = "SELECT LAST(v) AS newest, FIRST(v) AS oldest, COUNT(*) AS n FROM A WINDOW 5 SECONDS"
JOINED = (
    "SELECT LAST(A.v + B.v) AS newest, FIRST(A.v - B.v) AS oldest FROM A, B WHERE A.k = B.k "
    "WINDOW 5 SECONDS"
)
STREAMS = ("A", "B")


def _rows(stream: str, slack: int, at_once: int = 1) -> list[tuple[int, int, int]]:
    """Return rows of one stream in arrival order, at most ``slack`` seconds late.

    The two streams have no time in common.
    """
    place = STREAMS.index(stream)
    rows = [
        (number % 3, 7 * number % 11, number // at_once * SECOND + 1_000 * place)
        for number in range(60)
    ]
    shuffled = random.Random(place)
    return sorted(rows, key=lambda row: row[2] + shuffled.randint(0, slack * SECOND))


def _table(rows: list[tuple[int, int, int]]) -> pa.Table:
    columns = [pa.array([row[place] for row in rows], pa.int64()) for place in range(3)]
    return pa.table([*columns[:2], columns[2].cast(pa.timestamp("us"))], schema=SCHEMA)


def _on_partitions(sql: str, slack: int, again: frozenset[int], at_once: int = 1) -> pa.Table:
    """Run batches of three rows per stream; before some of them everything is rebuilt."""
    streams = tuple(Stream(name, SCHEMA, "ts", slack * SECOND) for name in STREAMS)
    deployment = Deployment(streams, {}, (DeployedQuery("q", sql, {}),), (), 2)
    (placed,) = deployment.placed()
    assert placed.distribution.last is not None
    read = placed.streams
    packers = {name: Packer(deployment, name) for name in read}
    duck, found, dropped = Duck(), [], 0
    partitions = [RecoverablePartition(deployment, number) for number in range(2)]
    stores: list[dict[int, tuple[RetainedBatch, PartitionBatch]]] = [{}, {}]
    with tempfile.TemporaryDirectory() as folder:
        stages = GlobalStages(LocalStorage(Path(folder)), duck)
        for batch in range(21):
            if batch in again:
                partitions = [
                    RecoverablePartition.rebuilt(deployment, number, store.values())
                    for number, store in enumerate(stores)
                ]
                stages = GlobalStages(LocalStorage(Path(folder)), duck)
            parts: list[list[Part]] = [[], []]
            newest = {}
            for name in read if batch < 20 else ():
                rows = _table(_rows(name, slack, at_once)[3 * batch : 3 * batch + 3])
                newest[name] = newest_of(packers[name], rows) or 0
                for owner, part in packers[name].pack(rows, 0):
                    parts[owner].append(part)
            outputs: list[PartitionOutput] = []
            for partition, own, store in zip(partitions, parts, stores, strict=True):
                partition_batch = PartitionBatch(
                    batch, 0, newest, tuple(own), None if batch < 20 else 90 * SECOND
                )
                applied = partition.apply(partition_batch)
                store[batch] = (applied.note, partition_batch)
                for gone in applied.gone:
                    del store[gone]
                dropped += len(applied.gone)
                outputs += applied.outputs
            places = stages.begin(deployment, [placed], batch)
            found.append(stages.result(places["q"], placed, batch, partial(_tables, outputs)))
    assert dropped > 4, "shares go, and with them the rows from which one could count"
    return pa.concat_tables(found)


def _tables(outputs: list[PartitionOutput], kind: str, name: str) -> list[pa.Table]:
    return [output.table for output in outputs if (output.kind, output.name) == (kind, name)]


@pytest.mark.parametrize("slack", [0, 4])
@pytest.mark.parametrize("sql", [ALONE, JOINED])
def test_results_are_those_in_process_after_any_rebuild(sql: str, slack: int) -> None:
    engine = muntin.Engine()
    for name in STREAMS:
        engine.execute(
            f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts TIMESTAMP) "
            f"WITH (time = 'ts', slack = '{slack} seconds')"
        )
    q = engine.query(sql)
    for name in STREAMS:
        engine.push(name, _table(sorted(_rows(name, slack), key=lambda row: row[2])))
    engine.advance(90 * SECOND)
    expected = q.poll()
    assert_same_changes(expected, _on_partitions(sql, slack, frozenset()))
    assert_same_changes(expected, _on_partitions(sql, slack, frozenset({8, 13, 14, 20})))


@pytest.mark.parametrize("sql", [ALONE, JOINED])
def test_rows_of_one_time_have_the_same_order_in_every_run(sql: str) -> None:
    once = _on_partitions(sql, 0, frozenset(), at_once=4)
    assert_same_changes(once, _on_partitions(sql, 0, frozenset({4, 9, 14, 15, 20}), at_once=4))
    newest = once.column(2).to_pylist()
    assert len(set(newest)) > 5, "there is something to compare"
