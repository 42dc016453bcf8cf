"""The work of a Spark task on one partition of a micro-batch.

It assembles the partition batch from what the packing tasks sent, sends it to the state server and
stores it in the checkpoint meanwhile. What it returns are the outputs, and the change of the
partition's durable state, which counts once the driver has put it into a manifest.
"""

from __future__ import annotations

import gc
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import NamedTuple

import pyarrow as pa
from pyspark import SparkContext, TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from muntin.errors import RunError
from muntin.runtime.codec import decode, encode
from muntin.spark.exchange.carried_rows import carried_parts
from muntin.spark.exchange.controls import Controls
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.deployment_file import DeploymentFile
from muntin.spark.exchange.messages import SOURCES, TIMELESS, UNREADABLE, Part, PartitionBatch
from muntin.spark.exchange.partition_metrics import STATS
from muntin.spark.exchange.source_times import merge_newest
from muntin.spark.partition.manifests import CommittedState, stored_for
from muntin.spark.partition.push_channel import Address, PushTarget
from muntin.spark.partition.result_writer import ResultPlan
from muntin.spark.partition.spool import Sent
from muntin.spark.partition.state_client import Request, StateClient
from muntin.spark.partition.stored_batches import encode_batch, new_file
from muntin.spark.partition.wire import Answer, Order, digest_of
from muntin.spark.storage import Storage
from muntin.state.advance_limit import Segment, merge_segments, unpack_segments

_OUTPUT = pa.schema(
    [
        ("kind", pa.string()),
        ("name", pa.string()),
        ("rows", pa.int64()),
        ("blob", pa.binary()),
        ("file", pa.string()),
    ]
)
OUTPUT = from_arrow_schema(_OUTPUT)
"""The columns of outputs; as a type, because Spark would parse a text again in every batch."""

PACKED = pa.schema([("partition", pa.int32()), ("about", pa.string()), ("blob", pa.binary())])
"""Packed rows: ``about`` is :class:`About` as JSON. Every column costs some of a batch's time."""
NO_TIME = -(2**63)

ORDER = "muntin.order"
"""The local property of Spark's jobs that has the :class:`BatchOrder`."""

STATE = "state"
"""The kind of output that carries a :class:`muntin.spark.partition.manifests.PartitionChange`."""


class About(NamedTuple):
    """What a packed blob is: rows under a partitioning, or the segments of the times of all rows.

    ``newest`` is the newest time of the segments, or :data:`NO_TIME`.
    """

    stream: str
    partitioning: int
    task: int
    epoch: int
    newest: int = NO_TIME


def outputs_of(sent: Sequence[Sent]) -> pa.RecordBatch:
    """Return outputs as rows of :data:`OUTPUT`."""
    rows = [(one.kind, one.name, one.rows, one.blob, one.file) for one in sent]
    values = zip(*rows, strict=True) if rows else ([] for _ in _OUTPUT)
    arrays = [pa.array(list(one), kind) for one, kind in zip(values, _OUTPUT.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_OUTPUT)


@cache
def freeze() -> None:
    """Exempt everything that is loaded from garbage collection, once in this process.

    PySpark collects garbage after every task, which takes longer than a small batch otherwise.
    """
    gc.freeze()


@dataclass(frozen=True)
class BatchOrder:
    """What the tasks of one batch need besides rows.

    Parameters
    ----------
    batch : int
        The number of the batch; the one before it is complete.
    version : int
        The last batch in which partitions had work.
    token : str
        The token of the driver that completed the batch before.
    controls : Controls
        What it brings besides rows.
    results : ResultPlan
        Where results go.
    previous : tuple of str or None
        The files of batch ``version`` by partition, see :func:`previous_files`. With None, a state
        server is trusted if it has applied any batch of that number.
    """

    batch: int
    version: int
    token: str
    controls: Controls
    results: ResultPlan
    previous: tuple[str, ...] | None = None

    def give(self, context: SparkContext) -> None:
        """Give it to the tasks of all jobs that this thread starts from now on."""
        context.setLocalProperty(ORDER, b64encode(encode(self, ORDER)).decode())

    def previous_of(self, partition: int) -> str | None:
        """Return the file of the batch before in a partition; empty before the first."""
        if self.previous is None:
            return None
        return self.previous[partition] if partition < len(self.previous) else ""

    @staticmethod
    def taken() -> BatchOrder:
        """Return the order of the batch of this task."""
        context = TaskContext.get()
        assert context is not None, "Spark calls this in a task"
        text = context.getLocalProperty(ORDER)
        assert text is not None, "given by the driver"
        return _decoded_order(text)


def previous_files(state: CommittedState) -> tuple[str, ...]:
    """Return the files of the last batch in which partitions had work, by partition.

    They identify the state that the next batch is based on.
    """
    return tuple(state.stored(number)[-1].file for number in sorted(state.partitions))


@lru_cache(maxsize=8)
def _decoded_order(text: str) -> BatchOrder:
    return decode(b64decode(text), ORDER, BatchOrder, "the order of a batch")


@dataclass(frozen=True)
class PartitionStage:
    """The second stage of every batch of a run: a task for each partition.

    Parameters
    ----------
    deployment_file, storage, run : DeploymentFile, Storage, str
        The deployment, the checkpoint and the name of the run.
    driver : Address
        The address to which results for subscribers are sent.
    """

    deployment_file: DeploymentFile
    storage: Storage
    run: str
    driver: Address

    def __call__(self, packed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Apply the batch of a partition and yield its outputs; nothing if it got nothing."""
        context = TaskContext.get()
        assert context is not None, "Spark calls this in a task"
        received = [batch for batch in packed if batch.num_rows]
        order = BatchOrder.taken()
        if received or order.controls:
            task = PartitionTask(self, order, context.partitionId())
            yield task.outputs(received)
        freeze()

    def over(self, parts: DataFrame) -> DataFrame:
        """Return the outputs of the partitions, given their parts of the rows."""
        return parts.mapInArrow(self.__call__, OUTPUT)


@dataclass(frozen=True)
class PartitionTask:
    """Applies a batch to the partition ``number``."""

    stage: PartitionStage
    order: BatchOrder
    number: int

    def outputs(self, received: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
        """Apply what was received; return the outputs."""
        stage, number = self.stage, self.number
        loaded = stage.deployment_file.read()
        batch = self._partition_batch(received, loaded.deployment)
        batch = self._with_carried(batch, loaded.deployment)
        queries = stage.deployment_file.subscribed_queries()
        order = Order(
            digest_of(loaded.content),
            self.order.version,
            new_file(number, batch.batch),
            stage.storage.place,
            stage.deployment_file.spool.place,
            self.order.results,
            PushTarget(stage.driver, number, queries) if queries else None,
            self.order.previous_of(number),
        )
        before = (batch.batch - 1, self.order.token)
        stored = partial(stored_for, stage.storage, before, number)
        request = Request(loaded.content, order, encode_batch(batch), stored)
        functions = stage.deployment_file.functions
        client = StateClient(stage.run, number, os.getppid(), functions)
        answer = self._applied(client, request)
        stats = replace(answer.stats, worker=os.getpid())
        return outputs_of(
            [
                *answer.sent,
                Sent(STATE, "", 0, encode(answer.change, STATE), ""),
                Sent(STATS, "", 0, stats.to_blob(), ""),
            ]
        )

    def _with_carried(self, batch: PartitionBatch, deployment: Deployment) -> PartitionBatch:
        """Return a batch with the first rows of the dataflows that are opened in it."""
        known = deployment.epoch(self.order.version)
        if known >= batch.epoch:
            return batch
        epochs, storage = range(known, batch.epoch), self.stage.deployment_file.carried
        return replace(batch, carried=carried_parts(deployment, epochs, self.number, storage))

    def _applied(self, client: StateClient, request: Request) -> Answer:
        """Apply a batch while it is written to the checkpoint."""
        order, storage = request.order, self.stage.storage
        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(storage.put, order.file, request.frame)
            answer = client.apply(request)
            written.result()
        if answer.change.added.file != order.file:
            storage.delete([order.file])  # a snapshot has replaced it
        return answer

    def _partition_batch(
        self, received: Iterable[pa.RecordBatch], deployment: Deployment
    ) -> PartitionBatch:
        """Return what the packing tasks sent to a partition, and the controls."""
        batch, controls = self.order.batch, self.order.controls
        epoch = deployment.epoch(batch)
        newest: dict[str, int] = {}
        segments: dict[str, list[Segment]] = {}
        sources: dict[str, dict[str, int]] = {}
        parts = []
        for columns in received:
            blobs = (memoryview(blob.as_buffer()) for blob in columns.column("blob"))
            for text, blob in zip(columns.column("about").to_pylist(), blobs, strict=True):
                about = About(*json.loads(text))
                stream = about.stream
                if about.epoch != epoch:
                    raise RunError(
                        f"a task of batch {batch} has {about.epoch} changes of the deployment, "
                        f"another has {epoch}",
                        hint="The checkpoint's file system shows old content: "
                        "mount it without caching of attributes",
                    )
                if about.newest != NO_TIME:
                    newest[stream] = max(newest.get(stream, NO_TIME), about.newest)
                    segments.setdefault(stream, []).extend(unpack_segments(bytes(blob)))
                if about.partitioning == SOURCES:
                    merge_newest(sources.setdefault(stream, {}), json.loads(bytes(blob)))
                if about.partitioning >= 0 or about.partitioning in {TIMELESS, UNREADABLE}:
                    parts.append(Part(about.partitioning, stream, about.task, blob))
        merged = {
            stream: tuple(merge_segments(found, deployment.max_advance))
            for stream, found in segments.items()
        }
        return PartitionBatch(
            batch,
            epoch,
            newest,
            tuple(parts),
            controls.moment,
            controls.rows,
            segments=merged,
            max_advance=deployment.max_advance,
            sources=sources,
            stamps={}
            if controls.arrival is None
            else {each.name: controls.arrival + 1 for each in deployment.streams if each.arrival},
        )
