"""Build the streaming query: all sources, their rows packed by partition, and the partitions.

Invariant: every packed row carries the epoch under which its task packed it. A partition refuses a
batch whose rows disagree, so a task that read an old deployment cannot mix partitionings.
"""

from __future__ import annotations

import atexit
import json
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from muntin.model.catalog import Stream
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.deployment_file import DeploymentFile, LoadedDeployment
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition.task import (
    NO_TIME,
    PACKED,
    About,
    BatchOrder,
    PartitionStage,
    freeze,
)
from muntin.spark.sources import SparkSource, decode_file
from muntin.state.advance_limit import pack_segments

Batches: TypeAlias = Iterator[pa.RecordBatch]
PackedRow: TypeAlias = tuple[int, About, memoryview | bytes]
"""Partition, what the blob is, and the blob."""

_PACKED = from_arrow_schema(PACKED)

_packers: WeakKeyDictionary[LoadedDeployment, dict[tuple[str, int], Packer]] = WeakKeyDictionary()
"""Packers by stream and epoch; they live as long as their version of the deployment."""

atexit.register(_packers.clear)  # DuckDB warns about connections that outlive it


def _packer(loaded: LoadedDeployment, stream: str, epoch: int) -> Packer:
    found = _packers.setdefault(loaded, {})
    if (stream, epoch) not in found:
        found[stream, epoch] = Packer(loaded.deployment, stream, epoch)
    return found[stream, epoch]


def _record(rows: list[PackedRow]) -> pa.RecordBatch:
    partitions, abouts, blobs = zip(*rows, strict=True)
    columns = (partitions, [json.dumps(about) for about in abouts], blobs)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, PACKED.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED)


def row_packer(
    tasks: DeploymentFile, stream: Stream, partitions: int, *, files: bool
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
        order = BatchOrder.taken()
        epoch = loaded.deployment.epoch(order.batch)
        packer = _packer(loaded, stream.name, epoch)
        if stream.arrival:
            assert order.controls.arrival is not None, "a batch with rows has a time of arrival"
            table = stream.stamped(table, order.controls.arrival)
        segments = [] if stream.arrival else packer.segments(table)
        newest = segments[-1][1] if segments else NO_TIME
        rows: list[PackedRow] = [
            (partition, About(stream.name, -1, task, epoch, newest), pack_segments(segments))
            for partition in range(partitions)
        ]
        for partition, part in packer.pack(table, task):
            about = About(stream.name, part.partitioning, task, epoch)
            rows.append((partition, about, part.blob))
        yield _record(rows)
        freeze()

    return pack


def _decoded(batch: pa.RecordBatch, stream: Stream) -> list[pa.Table]:
    files = zip(batch.column("path").to_pylist(), batch.column("content"), strict=True)
    return [decode_file(content.as_buffer(), path, stream) for path, content in files]


def build(
    deployment: Deployment, stage: PartitionStage, sources: Mapping[str, SparkSource]
) -> DataFrame:
    """Return the streaming DataFrame of the outputs of partitions.

    It is the same for all batches: what differs comes with the jobs (:class:`BatchOrder`), so that
    nothing is built or shipped again for a batch.
    """
    packed = []
    for stream in deployment.streams:
        source = sources[stream.name]
        tasks = stage.deployment_file
        pack = row_packer(tasks, stream, deployment.partitions, files=source.files)
        packed.append(source.frame.mapInArrow(pack, _PACKED))
    rows = reduce(DataFrame.unionAll, packed)
    return stage.over(rows.repartitionById(deployment.partitions, "partition"))
