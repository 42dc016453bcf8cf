"""Control rows: what is told to all buckets along with the data.

A *moment* promises that nothing up to an instant will come any more, so that time moves on without rows. A *control* announces
a change of the program: it is in force after the batch in which the control came, and buckets tell the rows that a new query
begins with. Or it sets limits, which hold from its batch on.

Both are a source of the streaming query like any other, a folder of files in the checkpoint, so that they are durable, ordered
with the rows, replayed with them and in force once. The folder is always read, used or not: Spark refuses to go on with another
number of sources than a checkpoint began with. Files may be removed once they were read.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession  # not when it runs: the processes of buckets do without pyspark

CONTROLS = "control"
"""The kind of output by which a bucket tells that a control came."""
HELD = "held"
"""The kind of output that carries the rows a control asked for."""

_BEAT = 1.0


@dataclass(frozen=True)
class Limits:
    """Probes a second of event time that a query may have in each bucket: of each half-way join, and of all; None: as many as come."""

    query: str
    rates: tuple[tuple[float | None, ...], ...]
    caps: tuple[float | None, ...]


@dataclass(frozen=True)
class Control:
    """Announces the change ``name``; asks for the rows that lanes hold of streams; sets limits."""

    name: str
    exports: tuple[tuple[str, str], ...] = ()
    limits: tuple[Limits, ...] = ()

    def to_text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Control:
        """Of such a text."""
        told = json.loads(text)
        limits = tuple(Limits(one["query"], tuple(map(tuple, one["rates"])), tuple(one["caps"])) for one in told.get("limits", ()))
        return cls(told["name"], tuple((lane, stream) for lane, stream in told["exports"]), limits)


class Controls:
    """The control rows of an engine, as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def tell(self, moment: int) -> None:
        """Promise that nothing up to ``moment`` (in microseconds) will come; in force from the next batch on."""
        self._write({"moment": moment})

    def send(self, control: Control) -> None:
        """Send a control; it is durable when this returns."""
        self._write({"control": control.to_text()})

    def _write(self, row: dict[str, object]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex}.json"
        part = self._folder / f".{name}.part"
        part.write_text(json.dumps(row) + "\n", encoding="utf-8")
        part.replace(self._folder / name)

    def read(self, spark: SparkSession) -> DataFrame:
        """The control rows as a stream: a moment or a control each."""
        self._folder.mkdir(parents=True, exist_ok=True)
        reader = spark.readStream.format("json").schema("moment LONG, control STRING")
        return reader.option("cleanSource", "delete").option("maxFileAge", "1h").load(f"file://{self._folder}")


class Heartbeat:
    """Tells every second the clock's time less ``delay`` microseconds, from its start until it is stopped."""

    def __init__(self, controls: Controls, delay: int) -> None:
        self._controls = controls
        self._delay = delay
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="muntin-heartbeat", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._stopped.wait(_BEAT):
            self._controls.tell(time.time_ns() // 1000 - self._delay)

    def stop(self) -> None:
        """Stop; returns when no moment will be told any more."""
        self._stopped.set()
        self._thread.join()
