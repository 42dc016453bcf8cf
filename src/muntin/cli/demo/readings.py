"""The sensors of the demo: readings that are written into files as time passes.

The data center of [Hammad03] has sensors of temperature and humidity; the demo adds smoke. A
reading's time is when its sensor made it, so a result's response time counts from there.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from muntin.model.clock import SECOND
from muntin.testing.generators import HUMIDITY, TEMPERATURE, Sensors, sensor_stream

STEP = 0.5
"""Seconds between files."""
MOST_LOAD = 3
"""The largest load, relative to the usual rate."""
_LOCATIONS = 100
_REPEAT = 60
"""Steps after which values repeat."""

SENSORS = {
    "Temperature": Sensors(_LOCATIONS, TEMPERATURE.mean, TEMPERATURE.spread),
    "Humidity": Sensors(_LOCATIONS, HUMIDITY.mean, HUMIDITY.spread),
    "Smoke": Sensors(_LOCATIONS, 10.0, 5.0),
}

STREAM = """
CREATE STREAM {name} (LocationId INT, Value DOUBLE, ts TIMESTAMP)
  WITH (format = 'parquet', path = '{path}', time = 'ts'{more});"""


class Readings:
    """Writes a file of each stream at every step, from the clock's time on.

    ``load`` multiplies the rate from the next step on, up to :data:`MOST_LOAD`. While ``paused``,
    nothing is written, and the sensors make no readings.
    """

    def __init__(self, folder: Path, rate: int) -> None:
        self.load = 1
        self.paused = False
        self.rows = 0
        self.rate = rate
        self.folder = folder
        self._rows = max(MOST_LOAD, round(rate * STEP * MOST_LOAD))
        self._pool = {
            name: sensor_stream(self._rows * _REPEAT, self._rows / STEP, sensors, seed)
            for seed, (name, sensors) in enumerate(SENSORS.items(), 1)
        }
        for name in SENSORS:
            (folder / name).mkdir(parents=True)
        self._steps = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write_on, daemon=True)

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    def stop(self) -> None:
        """Stop writing."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _write_on(self) -> None:
        begin, steps = time.monotonic(), 0
        while not self._ended.wait(max(0.0, begin + steps * STEP - time.monotonic())):
            if not self.paused:
                self.write(time.time_ns() // 1_000)
            steps += 1

    def write(self, now: int) -> None:
        """Write the readings of the step that ends at an instant."""
        place = self._steps % _REPEAT * self._rows
        for name, pool in self._pool.items():
            rows = pool.slice(place, self._rows)
            rows = rows.take(np.arange(0, self._rows, MOST_LOAD // self.load))
            count = len(rows)
            times = now - (np.arange(count)[::-1] * (STEP * SECOND / count)).astype(np.int64)
            stamped = rows.set_column(
                rows.schema.get_field_index("ts"), "ts", pa.array(times, pa.timestamp("us"))
            )
            target = self.folder / name / f"{self._steps:06d}.parquet"
            part = target.with_name(f".{target.name}")
            pq.write_table(stamped, part)
            part.replace(target)
            self.rows += count
        self._steps += 1


def declarations(folder: Path, files_per_batch: int | None = None) -> str:
    """Return the statements by which an engine reads the folder."""
    more = f", maxFilesPerTrigger = '{files_per_batch}'" if files_per_batch else ""
    return "".join(
        STREAM.format(name=name, path=folder / name, more=more)
        for name in SENSORS
        if (folder / name).is_dir()
    )
