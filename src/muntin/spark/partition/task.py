"""The work of a Spark task on one partition of a micro-batch.

It sends the partition batch to the state server, stores it in Spark's state and returns the
outputs. The state consists of the batches that windows still reach, one entry of a map each, and a
header with the numbers of these batches. Spark commits both with the micro-batch; a micro-batch
that is tried again finds them as they were before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import MapState, ValueState

from muntin.errors import RunError
from muntin.runtime.frames import is_intact
from muntin.spark.exchange.carried_rows import carried_parts
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.deployment_file import DeploymentFile
from muntin.spark.exchange.messages import CONTROL, TIMELESS, Part, PartitionBatch
from muntin.spark.exchange.partition_metrics import STATS
from muntin.spark.partition.push_channel import Address, PushTarget
from muntin.spark.partition.recovery import RetainedFrame, encode_retained
from muntin.spark.partition.state_client import Request, StateClient, StateServerError
from muntin.state.advance_limit import Segment, merge_segments, unpack_segments

OUTPUT = "kind string, name string, rows long, blob binary, file string"
PACKED = (
    "partition int, stream string, partitioning int, task int, epoch int, newest long, "
    "moment long, blob binary"
)
NO_TIME = -(2**63)


def current_batch() -> int:
    """Return the number of the micro-batch of this task."""
    context = TaskContext.get()
    assert context is not None, "Spark calls this in a task"
    return int(context.getLocalProperty("streaming.sql.batchId") or 0)


@dataclass(frozen=True)
class Handler:
    """Processes the partitions of a deployment.

    ``keys`` are the keys of the partitions in Spark, ``driver`` is where results for subscribers
    are sent.
    """

    deployment_file: DeploymentFile
    run: str
    keys: tuple[int, ...]
    driver: Address

    def handle(
        self, key: int, rows: Iterator[pd.DataFrame], header_state: ValueState, retained: MapState
    ) -> pd.DataFrame:
        """Apply the batch of a partition and return its outputs."""
        number = self.keys.index(key)
        loaded = self.deployment_file.read()
        deployment = loaded.deployment
        batch = _partition_batch(rows, deployment)
        header = header_state.get()
        oldest, version, count = (
            (int(number) for number in header) if header is not None else (batch.batch, -1, 0)
        )
        known = deployment.epoch(version)
        if known < batch.epoch:
            epochs, folder = range(known, batch.epoch), self.deployment_file.carried
            batch = replace(batch, carried=carried_parts(deployment, epochs, number, folder))
        client = StateClient(self.run, number, os.getppid())
        queries = self.deployment_file.subscribed_queries()
        target = PushTarget(self.driver, number, queries) if queries else None
        request = Request(loaded.content, version, batch, self.deployment_file.spool, target)
        answer = client.apply(request, lambda: retained_frames(retained, oldest, version, count))
        frame = encode_retained(answer.note, answer.snapshot or batch)
        retained.updateValue((batch.batch,), (frame,))
        for gone in answer.gone:
            retained.removeKey((gone,))
        first = answer.gone[-1] + 1 if answer.gone else oldest
        header_state.update((first, batch.batch, count + 1 - len(answer.gone)))
        outputs = [(sent.kind, sent.name, sent.rows, sent.blob, sent.file) for sent in answer.sent]
        outputs.append((STATS, "", 0, replace(answer.stats, worker=os.getpid()).to_blob(), ""))
        return pd.DataFrame(outputs, columns=["kind", "name", "rows", "blob", "file"])


def _partition_batch(frames: Iterator[pd.DataFrame], deployment: Deployment) -> PartitionBatch:
    batch = current_batch()
    epoch = deployment.epoch(batch)
    newest: dict[str, int] = {}
    segments: dict[str, list[Segment]] = {}
    moment: int | None = None
    parts = []
    controls = []
    for frame in frames:
        columns = [
            frame[name].tolist()
            for name in ("stream", "partitioning", "task", "epoch", "newest", "moment", "blob")
        ]
        for stream, partitioning, task, known, time, beat, blob in zip(*columns, strict=True):
            if known != epoch:
                raise RunError(
                    f"a task of batch {batch} has {known} changes of the deployment, "
                    f"another has {epoch}",
                    hint="The checkpoint's file system shows old content: "
                    "mount it without caching of attributes",
                )
            if beat != NO_TIME:
                moment = beat if moment is None else max(moment, beat)
            if time != NO_TIME:
                newest[stream] = max(newest.get(stream, NO_TIME), time)
                segments.setdefault(stream, []).extend(unpack_segments(bytes(blob)))
            if partitioning >= 0 or partitioning == TIMELESS:
                parts.append(Part(partitioning, stream, task, bytes(blob)))
            if partitioning == CONTROL:
                controls.append(bytes(blob).decode())
    merged = {
        stream: tuple(merge_segments(found, deployment.max_advance))
        for stream, found in segments.items()
    }
    return PartitionBatch(
        batch,
        epoch,
        newest,
        tuple(parts),
        moment,
        tuple(sorted(controls)),
        segments=merged,
        max_advance=deployment.max_advance,
    )


def retained_frames(
    retained: MapState, oldest: int, newest: int, count: int
) -> Iterator[RetainedFrame]:
    """Yield the retained batches, oldest first; a micro-batch without input has none.

    Raises
    ------
    StateServerError
        When one is damaged, or there are not ``count`` of them.
    """
    found = 0
    for batch in range(oldest, newest + 1):
        value = retained.getValue((batch,))
        if value is not None:
            found += 1
            if not is_intact(bytes(value[0])):
                raise StateServerError(
                    f"the rows of batch {batch} in the checkpoint are damaged",
                    hint="Restore it, or begin a new one",
                )
            yield bytes(value[0])
    if found != count:
        raise StateServerError(
            f"the checkpoint has {found} of {count} batches that windows reach",
            hint="Restore it, or begin a new one",
        )
