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

from muntin.spark.messages import TIMELESS, Part, Share
from muntin.spark.resident import Memory, Resident, ResidentError, remembered
from muntin.spark.tally import STATS

OUTPUT = "kind string, name string, rows long, blob binary"
PACKED = "bucket int, stream string, scheme int, task int, newest long, moment long, blob binary"
NO_TIME = -(2**63)


class BucketProcessor(StatefulProcessor):
    """Runs the buckets of a program; ``keys`` are the numbers under which Spark knows them."""

    def __init__(self, program: bytes, run: str, keys: tuple[int, ...], epochs: tuple[int, ...]) -> None:
        self._program = program
        self._run = run
        self._keys = keys
        self._epochs = epochs
        """The batches from which on the changes of the program are in force."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's states."""
        self._header = handle.getValueState("header", "oldest long, newest long, kept long")
        self._shares = handle.getMapState("shares", "batch long", "share binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 (Spark's)
        """Apply a bucket's share of the batch."""
        del timerValues
        number = self._keys.index(int(key[0]))
        share = self._share(rows)
        header = self._header.get()
        oldest, version, kept = (int(number) for number in header) if header is not None else (share.batch, -1, 0)
        resident = Resident(self._run, number, os.getppid())
        applied = resident.apply(self._program, version, share, lambda: self._recall(oldest, version, kept))
        self._shares.updateValue((share.batch,), (remembered(applied.note, applied.snapshot or share),))
        for batch in applied.gone:
            self._shares.removeKey((batch,))
        first = applied.gone[-1] + 1 if applied.gone else oldest
        self._header.update((first, share.batch, kept + 1 - len(applied.gone)))
        outputs = [(output.kind, output.name, output.rows, output.blob) for output in applied.outputs]
        outputs.append((STATS, "", 0, replace(applied.stats, worker=os.getpid()).to_blob()))
        yield pd.DataFrame(outputs, columns=["kind", "name", "rows", "blob"])

    def _share(self, frames: Iterator[pd.DataFrame]) -> Share:
        context = TaskContext.get()
        assert context is not None, "Spark calls this in a task"
        batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        newest: dict[str, int] = {}
        moment: int | None = None
        parts = []
        for frame in frames:
            columns = [frame[name].tolist() for name in ("stream", "scheme", "task", "newest", "moment", "blob")]
            for stream, scheme, task, time, beat, blob in zip(*columns, strict=True):
                if beat != NO_TIME:
                    moment = beat if moment is None else max(moment, beat)
                if time != NO_TIME:
                    newest[stream] = max(newest.get(stream, NO_TIME), time)
                if scheme >= 0 or scheme == TIMELESS:
                    parts.append(Part(scheme, stream, task, bytes(blob)))
        epoch = sum(start <= batch for start in self._epochs)
        return Share(batch, epoch, newest, tuple(parts), moment)

    def _recall(self, oldest: int, newest: int, kept: int) -> Iterator[Memory]:
        """The shares that are kept, oldest first; a batch without input has none."""
        found = 0
        for batch in range(oldest, newest + 1):
            value = self._shares.getValue((batch,))
            if value is not None:
                found += 1
                yield bytes(value[0])
        if found != kept:
            raise ResidentError(f"the checkpoint has {found} of {kept} batches that windows reach", hint="Restore it, or begin a new one")

    def close(self) -> None:
        """Nothing is open."""
