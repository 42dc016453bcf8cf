"""Build the streaming query: all sources, their rows packed by partition, and the partitions.

Invariant: every packed row carries the epoch under which its task packed it. A partition refuses a
batch whose rows disagree, so a task that read an old deployment cannot mix partitionings.
"""

from __future__ import annotations

import atexit
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from muntin.spark.exchange.messages import SOURCES, UNREADABLE, to_blob
from muntin.spark.exchange.packer import Packer
from muntin.spark.exchange.source_times import merge_newest
from muntin.spark.malformed import DEAD_LETTER, split_messages
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


@dataclass(frozen=True)
class Decoded:
    """What a task has read: rows, and messages that cannot be read.

    ``sources`` has the source of each row of streams that have several.
    """

    tables: Sequence[pa.Table]
    malformed: pa.Table = field(default_factory=DEAD_LETTER.empty_table)
    sources: pa.ChunkedArray | None = None


Decode: TypeAlias = Callable[[pa.RecordBatch, Stream], Decoded]


def _decoded_rows(batch: pa.RecordBatch, _: Stream) -> Decoded:
    return Decoded([pa.Table.from_batches([batch])])


def _decoded_files(batch: pa.RecordBatch, stream: Stream) -> Decoded:
    files = zip(batch.column("path").to_pylist(), batch.column("content"), strict=True)
    return Decoded([decode_file(content.as_buffer(), path, stream) for path, content in files])


def _decoded_messages(batch: pa.RecordBatch, _: Stream) -> Decoded:
    rows, malformed, sources = split_messages(pa.Table.from_batches([batch]))
    return Decoded([rows], malformed, sources)


def decoder(source: SparkSource) -> Decode:
    """Return the function that reads the rows of a source."""
    if source.messages:
        return _decoded_messages
    return _decoded_files if source.files else _decoded_rows


def row_packer(
    tasks: DeploymentFile, stream: Stream, partitions: int, decode: Decode
) -> Callable[[Batches], Batches]:
    """Return the function that packs a task's rows of a stream; ``decode`` reads what Spark has.

    Every partition gets the segments of the times of all rows, even if it gets no rows.
    """

    def pack(batches: Batches) -> Batches:
        read = [decode(batch, stream) for batch in batches]
        tables = [table for each in read for table in each.tables]
        letters = [each.malformed for each in read if len(each.malformed)]
        table = pa.concat_tables(tables) if tables else stream.schema.empty_table()
        if not len(table) and not letters:
            return
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        loaded = tasks.read()
        order = BatchOrder.taken()
        epoch = loaded.deployment.epoch(order.batch)
        packer = _packer(loaded, stream.name, epoch)
        if stream.arrival and len(table):
            assert order.controls.arrival is not None, "a batch with rows has a time of arrival"
            table = stream.stamped(table, order.controls.arrival)
        segments = [] if stream.arrival else packer.segments(table)
        newest = segments[-1][1] if segments else NO_TIME
        newest_of: dict[str, int] = {}
        for each in read if not stream.arrival else ():
            if each.sources is not None:
                merge_newest(newest_of, packer.newest_by_source(each.tables[0], each.sources))
        rows: list[PackedRow] = [
            (partition, About(stream.name, -1, task, epoch, newest), pack_segments(segments))
            for partition in range(partitions)
        ]
        for partition, part in packer.pack(table, task):
            about = About(stream.name, part.partitioning, task, epoch)
            rows.append((partition, about, part.blob))
        for partition in range(partitions) if newest_of else ():
            about = About(stream.name, SOURCES, task, epoch)
            rows.append((partition, about, json.dumps(newest_of).encode()))
        if letters:
            about = About(stream.name, UNREADABLE, task, epoch)
            rows.append((0, about, to_blob(pa.concat_tables(letters), compressed=False)))
        yield _record(rows)
        freeze()

    return pack


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
        pack = row_packer(tasks, stream, deployment.partitions, decoder(source))
        packed.append(source.frame.mapInArrow(pack, _PACKED))
    rows = reduce(DataFrame.unionAll, packed)
    return stage.over(rows.repartitionById(deployment.partitions, "partition"))
