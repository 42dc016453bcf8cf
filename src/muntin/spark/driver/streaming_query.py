"""The streaming query: every source packed by partition, one exchange, the partitions, one output of tagged blobs."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from muntin.model.catalog import Stream
from muntin.spark.deployment import Deployment
from muntin.spark.driver.checkpoint import DeploymentFile, LoadedDeployment
from muntin.spark.exchange.controls import ControlLog
from muntin.spark.exchange.messages import CONTROL
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition.processor import PartitionProcessor
from muntin.spark.partition.push_channel import Address
from muntin.spark.partition.task import NO_TIME, OUTPUT, PACKED, Handler, current_batch
from muntin.spark.sources import Source, decode_file
from muntin.state.advance_limit import pack_segments

_PACKED = pa.schema([
    ("partition", pa.int32()), ("stream", pa.string()), ("scheme", pa.int32()), ("task", pa.int32()), ("epoch", pa.int32()),
    ("newest", pa.int64()), ("moment", pa.int64()), ("blob", pa.binary()),
])  # fmt: skip


def partition_keys(spark: SparkSession, partitions: int) -> tuple[int, ...]:
    """For each partition a number that Spark's hash puts into a partition of its own."""
    rows = spark.sql(
        f"SELECT CAST(id AS INT) AS id, pmod(hash(CAST(id AS INT)), {partitions}) AS place FROM range({200 * partitions})"
    ).collect()
    first: dict[int, int] = {}
    for row in rows:
        first.setdefault(int(row["place"]), int(row["id"]))
    assert len(first) == partitions, "two hundred numbers a partition reach all of them"
    return tuple(first[place] for place in range(partitions))


_packers: WeakKeyDictionary[LoadedDeployment, dict[tuple[str, int], Packer]] = WeakKeyDictionary()
"""Packers by stream and epoch; those of a program go with it when a newer version of its file is read."""

atexit.register(_packers.clear)  # DuckDB complains of connections that outlive it


def _packer(loaded: LoadedDeployment, stream: str, epoch: int) -> Packer:
    found = _packers.setdefault(loaded, {})
    if (stream, epoch) not in found:
        found[stream, epoch] = Packer(loaded.deployment, stream, epoch)
    return found[stream, epoch]


Batches = Iterator[pa.RecordBatch]


def _record(epoch: int, rows: list[tuple[int, str, int, int, int, int, bytes]]) -> pa.RecordBatch:
    columns = zip(*[(*row[:4], epoch, *row[4:]) for row in rows], strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, _PACKED.types, strict=True)],
        schema=_PACKED,
    )


def packing(
    program: DeploymentFile, stream: Stream, keys: tuple[int, ...], *, files: bool
) -> Callable[[Batches], Batches]:
    """The function that packs a task's rows of a stream; every partition hears of the segments of its times, rows or not."""

    def pack(batches: Batches) -> Batches:
        tables = [
            table
            for batch in batches
            for table in (_decoded(batch, stream) if files else [pa.Table.from_batches([batch])])
        ]
        table = pa.concat_tables(tables) if tables else stream.schema.empty_table()
        if not len(table):
            return
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        loaded = program.read()
        epoch = loaded.deployment.epoch(current_batch())
        packer = _packer(loaded, stream.name, epoch)
        segments = packer.segments(table)
        newest = segments[-1][1] if segments else NO_TIME
        rows = [
            (key, stream.name, -1, task, newest, NO_TIME, pack_segments(segments)) for key in keys
        ]
        for partition, part in packer.pack(table, task):
            rows.append(
                (keys[partition], stream.name, part.partitioning, task, NO_TIME, NO_TIME, part.blob)
            )
        yield _record(epoch, rows)

    return pack


def _decoded(batch: pa.RecordBatch, stream: Stream) -> list[pa.Table]:
    paths, contents = batch.column("path").to_pylist(), batch.column("content").to_pylist()
    return [
        decode_file(content, path, stream) for path, content in zip(paths, contents, strict=True)
    ]


def telling(program: DeploymentFile, keys: tuple[int, ...]) -> Callable[[Batches], Batches]:
    """The function that tells every partition of moments and controls."""

    def tell(batches: Batches) -> Batches:
        for batch in batches:
            moment = pc.max(batch.column(0)).as_py()
            rows = [(key, "", -1, 0, NO_TIME, moment, b"") for key in keys if moment is not None]
            for control in batch.column(1).drop_null().to_pylist():
                rows += [(key, "", CONTROL, 0, NO_TIME, NO_TIME, control.encode()) for key in keys]
            if rows:
                yield _record(program.read().deployment.epoch(current_batch()), rows)

    return tell


@dataclass(frozen=True)
class StreamingInputs:
    """What the streaming query of a program is made of: where tasks find the program, what is read, where the driver listens."""

    program: DeploymentFile
    sources: Mapping[str, Source]
    controls: ControlLog
    run: str
    driver: Address


def build(spark: SparkSession, program: Deployment, plumbing: StreamingInputs) -> DataFrame:
    """The streaming DataFrame of outputs."""
    keys = partition_keys(spark, program.partitions)
    packed = []
    for stream in program.streams:
        source = plumbing.sources[stream.name]
        packed.append(
            source.frame.mapInArrow(
                packing(plumbing.program, stream, keys, files=source.files), PACKED
            )
        )
    packed.append(plumbing.controls.read(spark).mapInArrow(telling(plumbing.program, keys), PACKED))
    together = reduce(DataFrame.unionAll, packed)
    processor = PartitionProcessor(Handler(plumbing.program, plumbing.run, keys, plumbing.driver))
    return together.groupBy("partition").transformWithStateInPandas(
        statefulProcessor=processor, outputStructType=OUTPUT, outputMode="Append", timeMode="None"
    )
