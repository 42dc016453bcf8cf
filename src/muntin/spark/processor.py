"""What Spark runs for each bucket and micro-batch: its share to the resident, the share into the state store, outputs on.

State: the shares that windows still reach, one entry of a map each, and a header that says which batches those are. Both belong
to Spark, which commits them with the batch; a batch that is tried again finds them as they were before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from muntin.errors import RunError
from muntin.spark.changing import brought
from muntin.spark.checkpoint import ProgramFile
from muntin.spark.messages import CONTROL, TIMELESS, Part, Share
from muntin.spark.program import Program
from muntin.spark.rebuilding import Memory, intact, remembered
from muntin.spark.releasing import Address, Outlet
from muntin.spark.resident import Request, Resident, ResidentError
from muntin.spark.subscribing import subscribed
from muntin.spark.tally import STATS

OUTPUT = "kind string, name string, rows long, blob binary, file string"
PACKED = "bucket int, stream string, scheme int, task int, epoch int, newest long, moment long, blob binary"
NO_TIME = -(2**63)


def current_batch() -> int:
    """The number of the micro-batch whose task this is."""
    context = TaskContext.get()
    assert context is not None, "Spark calls this in a task"
    return int(context.getLocalProperty("streaming.sql.batchId") or 0)


class BucketProcessor(StatefulProcessor):
    """Runs the buckets of a program; ``keys`` are the numbers under which Spark knows them, ``driver`` is where subscribers are."""

    def __init__(self, program: ProgramFile, run: str, keys: tuple[int, ...], driver: Address) -> None:
        self._program = program
        self._run = run
        self._keys = keys
        self._driver = driver

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's states."""
        self._header = handle.getValueState("header", "oldest long, newest long, kept long")
        self._shares = handle.getMapState("shares", "batch long", "share binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 (Spark's)
        """Apply a bucket's share of the batch."""
        del timerValues
        number = self._keys.index(int(key[0]))
        content, program = self._program.read()
        share = self._share(rows, program)
        header = self._header.get()
        oldest, version, kept = (int(number) for number in header) if header is not None else (share.batch, -1, 0)
        if program.epoch(version) < share.epoch:
            share = replace(share, carried=brought(program, range(program.epoch(version), share.epoch), number, self._program.carried))
        resident = Resident(self._run, number, os.getppid())
        wanted = subscribed(self._program.subscribed)
        outlet = Outlet(self._driver, number, wanted) if wanted else None
        request = Request(content, version, share, self._program.outbox, outlet)
        answer = resident.apply(request, lambda: self._recall(oldest, version, kept))
        self._shares.updateValue((share.batch,), (remembered(answer.note, answer.snapshot or share),))
        for batch in answer.gone:
            self._shares.removeKey((batch,))
        first = answer.gone[-1] + 1 if answer.gone else oldest
        self._header.update((first, share.batch, kept + 1 - len(answer.gone)))
        outputs = [(sent.kind, sent.name, sent.rows, sent.blob, sent.file) for sent in answer.sent]
        outputs.append((STATS, "", 0, replace(answer.stats, worker=os.getpid()).to_blob(), ""))
        yield pd.DataFrame(outputs, columns=["kind", "name", "rows", "blob", "file"])

    def _share(self, frames: Iterator[pd.DataFrame], program: Program) -> Share:
        batch = current_batch()
        epoch = program.epoch(batch)
        newest: dict[str, int] = {}
        moment: int | None = None
        parts = []
        controls = []
        for frame in frames:
            columns = [frame[name].tolist() for name in ("stream", "scheme", "task", "epoch", "newest", "moment", "blob")]
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
                if scheme >= 0 or scheme == TIMELESS:
                    parts.append(Part(scheme, stream, task, bytes(blob)))
                if scheme == CONTROL:
                    controls.append(bytes(blob).decode())
        return Share(batch, epoch, newest, tuple(parts), moment, tuple(sorted(controls)))

    def _recall(self, oldest: int, newest: int, kept: int) -> Iterator[Memory]:
        """The shares that are kept, oldest first; a batch without input has none."""
        found = 0
        for batch in range(oldest, newest + 1):
            value = self._shares.getValue((batch,))
            if value is not None:
                found += 1
                if not intact(bytes(value[0])):
                    raise ResidentError(f"the rows of batch {batch} in the checkpoint are damaged", hint="Restore it, or begin a new one")
                yield bytes(value[0])
        if found != kept:
            raise ResidentError(f"the checkpoint has {found} of {kept} batches that windows reach", hint="Restore it, or begin a new one")

    def close(self) -> None:
        """Nothing is open."""
