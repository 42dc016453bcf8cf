"""The work of a Spark task on one partition of a micro-batch.

It assembles the partition batch from what the packing tasks sent, sends it to the state server and
stores it in the checkpoint meanwhile. What it returns are the outputs, and the change of the
partition's durable state, which counts once the driver has put it into a manifest.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema

from muntin.errors import RunError
from muntin.runtime.codec import encode
from muntin.spark.exchange.carried_rows import carried_parts
from muntin.spark.exchange.controls import Controls
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.deployment_file import DeploymentFile
from muntin.spark.exchange.messages import TIMELESS, Part, PartitionBatch
from muntin.spark.exchange.partition_metrics import STATS
from muntin.spark.partition.manifests import stored_for
from muntin.spark.partition.push_channel import Address, PushTarget
from muntin.spark.partition.state_client import Request, StateClient
from muntin.spark.partition.stored_batches import encode_batch, new_file
from muntin.spark.partition.wire import Answer, Order, digest_of
from muntin.spark.storage import LocalStorage
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


@cache
def freeze() -> None:
    """Exempt everything that is loaded from garbage collection, once in this process.

    PySpark collects garbage after every task, which takes longer than a small batch otherwise.
    """
    gc.freeze()


@dataclass(frozen=True)
class PartitionTask:
    """Applies a micro-batch to the partitions of a run.

    Parameters
    ----------
    deployment_file, storage, run : DeploymentFile, LocalStorage, str
        The deployment, the checkpoint and the name of the run.
    driver : Address
        The address to which results for subscribers are sent.
    batch : int
        The number of the batch; the one before it is complete.
    version : int
        The last batch in which partitions had work.
    controls : Controls
        What it brings besides rows.
    """

    deployment_file: DeploymentFile
    storage: LocalStorage
    run: str
    driver: Address
    batch: int
    version: int
    controls: Controls

    def __call__(self, packed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Apply the batch of a partition and yield its outputs; nothing if it got nothing."""
        context = TaskContext.get()
        assert context is not None, "Spark calls this in a task"
        received = [batch for batch in packed if batch.num_rows]
        if received or self.controls:
            yield self._outputs(context.partitionId(), received)
        freeze()

    def _outputs(self, number: int, received: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
        loaded = self.deployment_file.read()
        batch = self._partition_batch(received, loaded.deployment)
        batch = self._with_carried(batch, loaded.deployment, number)
        queries = self.deployment_file.subscribed_queries()
        order = Order(
            digest_of(loaded.content),
            self.version,
            new_file(number, batch.batch),
            self.storage,
            self.deployment_file.spool,
            PushTarget(self.driver, number, queries) if queries else None,
        )
        stored = partial(stored_for, self.storage, self.batch - 1, number)
        request = Request(loaded.content, order, encode_batch(batch), stored)
        answer = self._applied(StateClient(self.run, number, os.getppid()), request)
        rows = [(sent.kind, sent.name, sent.rows, sent.blob, sent.file) for sent in answer.sent]
        rows.append((STATE, "", 0, encode(answer.change, STATE), ""))
        rows.append((STATS, "", 0, replace(answer.stats, worker=os.getpid()).to_blob(), ""))
        columns = zip(zip(*rows, strict=True), _OUTPUT.types, strict=True)
        arrays = [pa.array(values, kind) for values, kind in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=_OUTPUT)

    def _with_carried(
        self, batch: PartitionBatch, deployment: Deployment, number: int
    ) -> PartitionBatch:
        """Return a batch with the first rows of the dataflows that are opened in it."""
        known = deployment.epoch(self.version)
        if known >= batch.epoch:
            return batch
        epochs, folder = range(known, batch.epoch), self.deployment_file.carried
        return replace(batch, carried=carried_parts(deployment, epochs, number, folder))

    def _applied(self, client: StateClient, request: Request) -> Answer:
        """Apply a batch while it is written to the checkpoint."""
        order = request.order
        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(self.storage.put, order.file, request.frame)
            answer = client.apply(request)
            written.result()
        if answer.change.added.file != order.file:
            self.storage.delete([order.file])  # a snapshot has replaced it
        return answer

    def _partition_batch(
        self, received: Iterable[pa.RecordBatch], deployment: Deployment
    ) -> PartitionBatch:
        """Return what the packing tasks sent to a partition, and the controls."""
        batch, epoch = self.batch, deployment.epoch(self.batch)
        newest: dict[str, int] = {}
        segments: dict[str, list[Segment]] = {}
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
                if about.partitioning >= 0 or about.partitioning == TIMELESS:
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
            self.controls.moment,
            self.controls.rows,
            segments=merged,
            max_advance=deployment.max_advance,
        )
