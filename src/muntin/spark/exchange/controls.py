"""Control rows: messages to all partitions that travel with the data.

A *moment* promises that no row up to an instant will follow, so time advances without rows. A
:class:`ControlRow` announces a change of the deployment, which is in force after the batch that
brings it, and requests the rows that a new query starts with. Or it sets probe limits, which hold
from its batch on.

Exactly once: both are a source of the streaming query, a folder of files in the checkpoint. They
are therefore durable, ordered with the rows, replayed with them and applied once. The folder is
always read, because Spark refuses to resume a checkpoint with another number of sources. Spark
deletes files after reading them.

Spark's file source orders files by modification time and ignores those much older than the newest.
The clock must not decide that, so every file gets a sequence number, and its modification time is
set to that number of seconds after 1970. The numbers increase strictly, across restarts too: blocks
of them are reserved in a file before use.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from muntin.errors import MuntinError
from muntin.spark.exchange.frames import writing

if TYPE_CHECKING:
    # Not at run time: the state servers do not load pyspark.
    from pyspark.sql import DataFrame, SparkSession

CONTROLS = "control"
"""The kind of output that reports the arrival of a control row."""
HELD = "held"
"""The kind of output that carries the rows a control row requested."""

_log = logging.getLogger("muntin.spark")

_BEAT = 1.0
_BLOCK = 1000
"""Sequence numbers that are reserved at once."""
_REMEMBERED = "1h"
"""How long Spark remembers a file it has read: 3,600 sequence numbers."""


@dataclass(frozen=True)
class ProbeLimits:
    """Probes per second of event time allowed to a query, by partition; None means unlimited.

    ``rates`` limits each half join, ``caps`` all of them together.
    """

    query: str
    rates: tuple[tuple[float | None, ...], ...]
    caps: tuple[float | None, ...]


@dataclass(frozen=True)
class ControlRow:
    """Announces the change ``name``, requests rows by dataflow and stream, or sets probe limits."""

    name: str
    exports: tuple[tuple[str, str], ...] = ()
    limits: tuple[ProbeLimits, ...] = ()

    def to_text(self) -> str:
        """Return the control row as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> ControlRow:
        """Return the control row in a JSON text."""
        value = json.loads(text)
        limits = tuple(
            ProbeLimits(one["query"], tuple(map(tuple, one["rates"])), tuple(one["caps"]))
            for one in value.get("limits", ())
        )
        exports = tuple((dataflow, stream) for dataflow, stream in value["exports"])
        return cls(value["name"], exports, limits)


class ControlLog:
    """The control rows of an engine, as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._next = self._reserved = 0

    def send_moment(self, moment: int) -> None:
        """Promise that no row up to ``moment`` (microseconds) will follow, from then on."""
        self._write({"moment": moment})

    def send(self, control: ControlRow) -> None:
        """Send a control row; it is durable when this returns."""
        self._write({"control": control.to_text()})

    def _write(self, row: dict[str, object]) -> None:
        with self._lock, writing(self._folder.parent.parent):
            self._folder.mkdir(parents=True, exist_ok=True)
            number = self._number()
            name = f"{number:020d}-{uuid.uuid4().hex}.json"
            self._place(json.dumps(row) + "\n", self._folder / name, mtime=number)

    def _number(self) -> int:
        """Return the next sequence number; reserve a block if none is left."""
        if self._next >= self._reserved:
            file = self._folder / ".reserved"
            self._next = int(file.read_text(encoding="utf-8")) if file.exists() else 1
            self._place(str(self._next + _BLOCK), file)
            self._reserved = self._next + _BLOCK
        number = self._next
        self._next += 1
        return number

    def _place(self, text: str, target: Path, mtime: int | None = None) -> None:
        """Write a file under another name and rename it, so that no reader sees half of it."""
        part = target.with_name(f".{target.name.lstrip('.')}.part")
        try:
            with part.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if mtime is not None:
                os.utime(part, (mtime, mtime))
            part.replace(target)
        except OSError:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise

    def read(self, spark: SparkSession) -> DataFrame:
        """Return the stream of control rows: each has a moment or a control."""
        with writing(self._folder.parent.parent):
            self._folder.mkdir(parents=True, exist_ok=True)
        reader = spark.readStream.format("json").schema("moment LONG, control STRING")
        return (
            reader.option("cleanSource", "delete")
            .option("maxFileAge", _REMEMBERED)
            .load(f"file://{self._folder}")
        )


class Heartbeat:
    """Sends the clock's time minus ``delay`` microseconds as a moment, about once per second.

    ``due`` returns the first instant at which time alone can change a result, or None if there is
    none. Earlier moments are not sent: each one costs a batch. A moment that cannot be written is
    counted in ``failures`` and logged once; the next beat tries again.
    """

    def __init__(
        self, controls: ControlLog, delay: int, due: Callable[[], int | None], beat: float = _BEAT
    ) -> None:
        self._controls = controls
        self._delay = delay
        self._due = due
        self._beat = beat
        self.failures = 0
        self._failing = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="muntin-heartbeat", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(self._beat):
            try:
                self._send()
            except (MuntinError, OSError) as error:
                self.failures += 1
                if not self._failing:
                    _log.warning("the heartbeat cannot be written and is retried: %s", error)
                self._failing = True

    def _send(self) -> None:
        moment = time.time_ns() // 1000 - self._delay
        due = self._due()
        if due is None or moment < due:
            return
        self._controls.send_moment(moment)
        if self._failing:
            _log.info("the heartbeat is written again after %d failures", self.failures)
        self._failing = False

    def stop(self, timeout: float = 10.0) -> None:
        """Send no more moments; wait at most ``timeout`` seconds for one that is being written."""
        self._stopped.set()
        self._thread.join(timeout)
