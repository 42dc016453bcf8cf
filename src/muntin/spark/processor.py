"""What Spark runs for each bucket and micro-batch: its share to the resident, the share into the state store, outputs on.

State: the shares that windows still reach, one entry of a map each, and a header with the ledger. Both belong to Spark, which
commits them with the batch; a batch that is tried again finds them as they were before it.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from muntin.spark.bucket import Ledger
from muntin.spark.messages import Part, Share
from muntin.spark.resident import Resident, ResidentError
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
        self._header = handle.getValueState("header", "ledger binary")
        self._shares = handle.getMapState("shares", "batch long", "share binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 (Spark's)
        """Apply a bucket's share of the batch."""
        del timerValues
        number = self._keys.index(int(key[0]))
        share = self._share(rows)
        header = self._header.get()
        ledger: Ledger = pickle.loads(bytes(header[0])) if header is not None else Ledger()  # noqa: S301 (our own, from the checkpoint)
        version = ledger.kept[-1].batch if ledger.kept else -1
        resident = Resident(self._run, number, os.getppid())
        applied, ledger = resident.apply(self._program, version, share, lambda: (ledger, self._recall(ledger)))
        self._shares.updateValue((share.batch,), (pickle.dumps(share),))
        for batch in applied.gone:
            self._shares.removeKey((batch,))
        self._header.update((pickle.dumps(ledger),))
        outputs = [(output.kind, output.name, output.rows, output.blob) for output in applied.outputs]
        outputs.append((STATS, "", 0, applied.stats.to_blob()))
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
                    moment = max(moment or NO_TIME, beat)
                if time != NO_TIME:
                    newest[stream] = max(newest.get(stream, NO_TIME), time)
                if scheme >= 0:
                    parts.append(Part(scheme, stream, task, bytes(blob)))
        epoch = sum(start <= batch for start in self._epochs)
        return Share(batch, epoch, newest, tuple(parts), moment)

    def _recall(self, ledger: Ledger) -> Iterator[Share]:
        for kept in ledger.kept:
            value = self._shares.getValue((kept.batch,))
            if value is None:
                raise ResidentError(
                    f"the checkpoint lacks the rows of batch {kept.batch}", hint="Restore it from a copy, or begin a new one"
                )
            yield pickle.loads(bytes(value[0]))  # noqa: S301

    def close(self) -> None:
        """Nothing is open."""
