"""Moments: promises that nothing up to an instant will come any more, by which time moves on without rows.

They are a source of the streaming query like any other, a folder of files in the checkpoint, so that they are ordered with the
rows, replayed with them and in force once. The folder is always read, used or not: Spark refuses to go on with another number
of sources than a checkpoint began with. Only the greatest moment counts, so files may be removed once they were read.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

_BEAT = 1.0


class Moments:
    """The moments of an engine, as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def tell(self, moment: int) -> None:
        """Promise that nothing up to ``moment`` (in microseconds) will come; in force from the next batch on."""
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex}.json"
        part = self._folder / f".{name}.part"
        part.write_text(json.dumps({"moment": moment}) + "\n", encoding="utf-8")
        part.replace(self._folder / name)

    def read(self, spark: SparkSession) -> DataFrame:
        """The moments as a stream of one column."""
        self._folder.mkdir(parents=True, exist_ok=True)
        reader = spark.readStream.format("json").schema("moment LONG")
        return reader.option("cleanSource", "delete").option("maxFileAge", "1h").load(f"file://{self._folder}")


class Heartbeat:
    """Tells every second the clock's time less ``delay`` microseconds, from its start until it is stopped."""

    def __init__(self, moments: Moments, delay: int) -> None:
        self._moments = moments
        self._delay = delay
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="muntin-heartbeat", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._stopped.wait(_BEAT):
            self._moments.tell(time.time_ns() // 1000 - self._delay)

    def stop(self) -> None:
        """Stop; returns when no moment will be told any more."""
        self._stopped.set()
        self._thread.join()
