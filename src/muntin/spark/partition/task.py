"""What is done for each partition and micro-batch: its share to the resident, the share into the state store, outputs on.

State: the shares that windows still reach, one entry of a map each, and a header that says which batches those are. Both belong
to Spark, which commits them with the batch; a batch that is tried again finds them as they were before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import MapState, ValueState

from muntin.errors import RunError
from muntin.spark.exchange.carried_rows import carried_parts
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.deployment_file import DeploymentFile
from muntin.spark.exchange.frames import is_intact
from muntin.spark.exchange.messages import CONTROL, TIMELESS, Part, PartitionBatch
from muntin.spark.exchange.partition_metrics import STATS
from muntin.spark.partition.push_channel import Address, Outlet
from muntin.spark.partition.recovery import Memory, remembered
from muntin.spark.partition.state_server import Request, Resident, ResidentError
from muntin.state.advance_limit import Segment, merge_segments, unpack_segments

OUTPUT = "kind string, name string, rows long, blob binary, file string"
PACKED = "partition int, stream string, partitioning int, task int, epoch int, newest long, moment long, blob binary"
NO_TIME = -(2**63)


def current_batch() -> int:
    """The number of the micro-batch whose task this is."""
    context = TaskContext.get()
    assert context is not None, "Spark calls this in a task"
    return int(context.getLocalProperty("streaming.sql.batchId") or 0)


@dataclass(frozen=True)
class Handler:
    """Handles the partitions of a program; ``keys`` are the numbers under which Spark knows them, ``driver`` is where subscribers are."""

    program: DeploymentFile
    run: str
    keys: tuple[int, ...]
    driver: Address

    def handle(
        self, key: int, rows: Iterator[pd.DataFrame], header_state: ValueState, shares: MapState
    ) -> pd.DataFrame:
        """Apply the share of a partition; what comes of it."""
        number = self.keys.index(key)
        loaded = self.program.read()
        program = loaded.deployment
        share = _share(rows, program)
        header = header_state.get()
        oldest, version, kept = (
            (int(number) for number in header) if header is not None else (share.batch, -1, 0)
        )
        if program.epoch(version) < share.epoch:
            share = replace(
                share,
                carried=carried_parts(
                    program,
                    range(program.epoch(version), share.epoch),
                    number,
                    self.program.carried,
                ),
            )
        resident = Resident(self.run, number, os.getppid())
        wanted = self.program.subscribed_queries()
        outlet = Outlet(self.driver, number, wanted) if wanted else None
        request = Request(loaded.content, version, share, self.program.spool, outlet)
        answer = resident.apply(request, lambda: recall(shares, oldest, version, kept))
        shares.updateValue((share.batch,), (remembered(answer.note, answer.snapshot or share),))
        for batch in answer.gone:
            shares.removeKey((batch,))
        first = answer.gone[-1] + 1 if answer.gone else oldest
        header_state.update((first, share.batch, kept + 1 - len(answer.gone)))
        outputs = [(sent.kind, sent.name, sent.rows, sent.blob, sent.file) for sent in answer.sent]
        outputs.append((STATS, "", 0, replace(answer.stats, worker=os.getpid()).to_blob(), ""))
        return pd.DataFrame(outputs, columns=["kind", "name", "rows", "blob", "file"])


def _share(frames: Iterator[pd.DataFrame], program: Deployment) -> PartitionBatch:
    batch = current_batch()
    epoch = program.epoch(batch)
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
        for stream, scheme, task, known, time, beat, blob in zip(*columns, strict=True):
            if known != epoch:
                raise RunError(
                    f"a task of batch {batch} knows {known} changes of the program, another {epoch}",
                    hint="The checkpoint's file system shows old content: mount it without caching of attributes",
                )
            if beat != NO_TIME:
                moment = beat if moment is None else max(moment, beat)
            if time != NO_TIME:
                newest[stream] = max(newest.get(stream, NO_TIME), time)
                segments.setdefault(stream, []).extend(unpack_segments(bytes(blob)))
            if scheme >= 0 or scheme == TIMELESS:
                parts.append(Part(scheme, stream, task, bytes(blob)))
            if scheme == CONTROL:
                controls.append(bytes(blob).decode())
    merged = {
        stream: tuple(merge_segments(found, program.max_advance))
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
        max_advance=program.max_advance,
    )


def recall(shares: MapState, oldest: int, newest: int, kept: int) -> Iterator[Memory]:
    """The shares that are kept, oldest first; a batch without input has none."""
    found = 0
    for batch in range(oldest, newest + 1):
        value = shares.getValue((batch,))
        if value is not None:
            found += 1
            if not is_intact(bytes(value[0])):
                raise ResidentError(
                    f"the rows of batch {batch} in the checkpoint are damaged",
                    hint="Restore it, or begin a new one",
                )
            yield bytes(value[0])
    if found != kept:
        raise ResidentError(
            f"the checkpoint has {found} of {kept} batches that windows reach",
            hint="Restore it, or begin a new one",
        )
