"""Build the streaming query: sources packed by partition, one shuffle, the partitions, one output.

Invariant: every packed row carries the epoch under which its task packed it. A partition refuses a
batch whose rows disagree, so a task that read an old deployment cannot mix partitionings.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from muntin.model.catalog import Stream
from muntin.spark.exchange.controls import ControlLog
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.deployment_file import DeploymentFile, LoadedDeployment
from muntin.spark.exchange.messages import CONTROL
from muntin.spark.exchange.packer import Packer
from muntin.spark.exchange.partition_keys import partition_keys
from muntin.spark.partition.processor import PartitionProcessor
from muntin.spark.partition.push_channel import Address
from muntin.spark.partition.task import NO_TIME, OUTPUT, PACKED, Handler, current_batch
from muntin.spark.sources import SparkSource, decode_file
from muntin.state.advance_limit import pack_segments

_PACKED = pa.schema(
    [
        ("partition", pa.int32()),
        ("stream", pa.string()),
        ("partitioning", pa.int32()),
        ("task", pa.int32()),
        ("epoch", pa.int32()),
        ("newest", pa.int64()),
        ("moment", pa.int64()),
        ("blob", pa.binary()),
    ]
)

Batches: TypeAlias = Iterator[pa.RecordBatch]

_packers: WeakKeyDictionary[LoadedDeployment, dict[tuple[str, int], Packer]] = WeakKeyDictionary()
"""Packers by stream and epoch; they live as long as their version of the deployment."""

atexit.register(_packers.clear)  # DuckDB warns about connections that outlive it


def _packer(loaded: LoadedDeployment, stream: str, epoch: int) -> Packer:
    found = _packers.setdefault(loaded, {})
    if (stream, epoch) not in found:
        found[stream, epoch] = Packer(loaded.deployment, stream, epoch)
    return found[stream, epoch]


def _record(epoch: int, rows: list[tuple[int, str, int, int, int, int, bytes]]) -> pa.RecordBatch:
    columns = zip(*[(*row[:4], epoch, *row[4:]) for row in rows], strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, _PACKED.types, strict=True)],
        schema=_PACKED,
    )


def row_packer(
    tasks: DeploymentFile, stream: Stream, keys: tuple[int, ...], *, files: bool
) -> Callable[[Batches], Batches]:
    """Return the function that packs a task's rows of a stream.

    Every partition gets the segments of the times of all rows, even if it gets no rows.
    """

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
        loaded = tasks.read()
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


def control_packer(tasks: DeploymentFile, keys: tuple[int, ...]) -> Callable[[Batches], Batches]:
    """Return the function that sends moments and control rows to every partition."""

    def pack(batches: Batches) -> Batches:
        for batch in batches:
            moment = pc.max(batch.column(0)).as_py()
            rows = [(key, "", -1, 0, NO_TIME, moment, b"") for key in keys if moment is not None]
            for control in batch.column(1).drop_null().to_pylist():
                rows += [(key, "", CONTROL, 0, NO_TIME, NO_TIME, control.encode()) for key in keys]
            if rows:
                yield _record(tasks.read().deployment.epoch(current_batch()), rows)

    return pack


@dataclass(frozen=True)
class StreamingInputs:
    """The inputs of the streaming query: deployment file, sources, control rows, run and driver."""

    tasks: DeploymentFile
    sources: Mapping[str, SparkSource]
    controls: ControlLog
    run: str
    driver: Address


def build(spark: SparkSession, deployment: Deployment, inputs: StreamingInputs) -> DataFrame:
    """Return the streaming DataFrame of outputs."""
    keys = partition_keys(spark, deployment.partitions)
    packed = []
    for stream in deployment.streams:
        source = inputs.sources[stream.name]
        pack = row_packer(inputs.tasks, stream, keys, files=source.files)
        packed.append(source.frame.mapInArrow(pack, PACKED))
    controls = inputs.controls.read(spark)
    packed.append(controls.mapInArrow(control_packer(inputs.tasks, keys), PACKED))
    together = reduce(DataFrame.unionAll, packed)
    processor = PartitionProcessor(Handler(inputs.tasks, inputs.run, keys, inputs.driver))
    return together.groupBy("partition").transformWithStateInPandas(
        statefulProcessor=processor, outputStructType=OUTPUT, outputMode="Append", timeMode="None"
    )
