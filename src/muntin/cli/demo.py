"""``muntin demo``: standing queries over two generated sensor streams on a local Spark.

The data center of [Hammad03]: sensors of temperature and humidity, and queries over the last minute
and the last hour. The streams' time runs :data:`SPEED` times as fast as the clock, so that an hour
passes during the demo. Readings arrive as parquet files in a temporary folder, written while the
demo runs. On a terminal the results are shown live; otherwise they are printed as lines.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from muntin.cli.progress_view import ProgressView, Screen
from muntin.cli.run import stopping, watch
from muntin.model.clock import parse_instant
from muntin.spark.api import SparkEngine
from muntin.spark.batch_results import BatchResults
from muntin.spark.session import local_session
from muntin.spark.sinks import Sink
from muntin.spark.temp_files import HeldFolder
from muntin.testing.generators import HUMIDITY, TEMPERATURE, Sensors, sensor_stream

STREAMS = """
CREATE STREAM Temperature (LocationId INT, Value DOUBLE, ts TIMESTAMP)
  WITH (format = 'parquet', path = '{folder}/Temperature');
CREATE STREAM Humidity (LocationId INT, Value DOUBLE, ts TIMESTAMP)
  WITH (format = 'parquet', path = '{folder}/Humidity');
"""

QUERIES = {
    "muggy": """
  SELECT T.LocationId, T.Value AS temperature, H.Value AS humidity
  FROM Temperature T, Humidity H
  WHERE T.LocationId = H.LocationId AND T.Value > 29 AND H.Value > 78
  WINDOW 1 MINUTE""",
    "muggy_hour": """
  SELECT T.LocationId, T.Value AS temperature, H.Value AS humidity
  FROM Temperature T, Humidity H
  WHERE T.LocationId = H.LocationId AND T.Value > 29 AND H.Value > 78
  WINDOW 1 HOUR""",
    "alarms": """
  SELECT T.LocationId, T.Value AS temperature
  FROM Temperature T [RANGE 1 MINUTE]
  WHERE T.Value > 34
  EMIT CHANGES""",
}

SPEED = 120
"""Seconds of stream time per second of the demo."""

_STEP = 0.5
_SHOWN = 6
_WIDTH = 68
_START = parse_instant("2026-01-01")
_REPEAT = 30.0
"""Seconds of the demo after which readings repeat."""


@dataclass
class Recent(Sink):
    """A sink that keeps the last changes of a query as lines; ``printing`` prints one per batch."""

    name: str
    printing: bool = False
    total: int = 0
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_SHOWN))

    def write(self, results: BatchResults, batch: int) -> None:
        """Add the changes of a batch."""
        del batch
        self.total += len(results)
        last = results.table().slice(max(0, len(results) - _SHOWN))
        shown = [line_of(row) for row in last.to_pylist()]
        self.lines.extend(shown)
        if self.printing and shown:
            print(f"{self.name:>10} {shown[-1]}", flush=True)

    def panel(self) -> Panel:
        """Return the changes as a panel for a terminal."""
        body = Text("\n".join(self.lines) or "nothing yet", no_wrap=True, overflow="ellipsis")
        body.highlight_regex(r"(?m)^\+.*$", "green")
        body.highlight_regex(r"(?m)^-.*$", "red")
        return Panel(
            body, title=f"{self.name}: {self.total:,} changes", width=_WIDTH, height=_SHOWN + 2
        )


def line_of(row: dict[str, Any]) -> str:
    """Return a change as a line."""
    values = "  ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in row.items()
        if name[0] != "_"
    )
    return f"{row['_op']} {row['_ts']:%H:%M:%S.%f}"[:-4] + f"  {values}"


class ReadingsWriter:
    """Writes readings into files as time passes; a file gets its name when it is complete."""

    def __init__(self, folder: Path, rate: int) -> None:
        self._folder = folder
        self._rows = max(1, round(rate * _STEP))
        self._steps = round(_REPEAT / _STEP)
        self._tables = {
            name: self._readings(sensors, seed)
            for seed, (name, sensors) in enumerate(_SENSORS.items())
        }
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write_on, daemon=True)
        self.written = 0

    def _readings(self, sensors: Sensors, seed: int) -> pa.Table:
        return sensor_stream(
            self._rows * self._steps, self._rows / (_STEP * SPEED), sensors, seed + 1, start=_START
        )

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    def stop(self) -> None:
        """Stop writing."""
        self._ended.set()
        self._thread.join()

    def now(self) -> float:
        """Return the stream time, in seconds since 1970."""
        return _START / 1e6 + self.written * _STEP * SPEED

    def _write_on(self) -> None:
        begin = time.monotonic()
        while not self._ended.wait(max(0.0, begin + self.written * _STEP - time.monotonic())):
            self.step()

    def step(self) -> None:
        """Write the next file of each stream."""
        rounds, place = divmod(self.written, self._steps)
        shift = round(rounds * _REPEAT * SPEED * 1_000_000)
        for name, table in self._tables.items():
            rows = table.slice(place * self._rows, self._rows)
            times = pa.array(rows.column("ts").cast(pa.int64()).to_numpy() + shift).cast(
                pa.timestamp("us")
            )
            target = self._folder / name / f"{self.written:06d}.parquet"
            part = target.with_name(f".{target.name}")
            pq.write_table(rows.set_column(rows.schema.get_field_index("ts"), "ts", times), part)
            part.replace(target)
        self.written += 1


_SENSORS = {"Temperature": TEMPERATURE, "Humidity": HUMIDITY}


def run_demo(
    seconds: float, rate: int, last_view: Callable[[RenderableType], None] | None = None
) -> None:
    """Start Spark, write readings and show the results of the queries.

    ``seconds`` are counted from when Spark has caught up. ``last_view`` gets the final view of a
    terminal.
    """
    begin = time.monotonic()
    console = Console(highlight=False)
    with HeldFolder("demo") as folder:
        for stream in _SENSORS:
            (folder / stream).mkdir()
        feed = ReadingsWriter(folder, rate)
        view = ProgressView(now=feed.now)
        sinks = [Recent(query) for query in QUERIES]
        screen = Screen(view, extra=lambda: _panels(sinks))
        for sink in sinks:
            sink.printing = not screen.live
        console.print(
            f"Sensors of temperature and humidity, {rate:,} readings per second each; "
            f"one second of the demo is {SPEED // 60} minutes of stream time. Spark is starting.",
            soft_wrap=True,
        )
        with stopping() as stop:
            engine = SparkEngine(local_session(2, interrupted=stop.is_set))
            engine.execute(STREAMS.format(folder=folder))
            for sink in sinks:
                engine.query(QUERIES[sink.name], name=sink.name, sink=sink)
            engine.start()
            feed.start()
            try:
                watch(engine, screen, stop, lambda: _first_and(engine, seconds))
                if last_view is not None:
                    last_view(Group(view.panel(), _panels(sinks)))
            finally:
                feed.stop()
        _summarize(console, engine, sinks, time.monotonic() - begin)


def _panels(sinks: list[Recent]) -> RenderableType:
    return Columns([sink.panel() for sink in sinks])


def _first_and(engine: SparkEngine, seconds: float) -> None:
    """Wait for two batches, of which the second catches up, then for ``seconds``."""
    while (progress := engine.progress) is None or progress["batchId"] < 1:
        if engine.await_termination(1):
            return
    engine.await_termination(seconds)


def _summarize(console: Console, engine: SparkEngine, sinks: list[Recent], seconds: float) -> None:
    progress = engine.progress
    if progress is None:
        console.print("Nothing was processed.")
        return
    ours = progress["muntin"]
    rows = sum(counts["rows"] for counts in ours["streams"].values())
    console.print(
        f"{rows:,} readings in {progress['batchId'] + 1} micro-batches, {_rows_held(ours)}; "
        f"{seconds:.0f} seconds including the start of Spark",
        soft_wrap=True,
    )
    for sink in sinks:
        console.print(
            f"{sink.name}: {sink.total:,} changes"
            + (f", the last {sink.lines[-1]}" if sink.lines else ""),
            soft_wrap=True,
        )


def _rows_held(ours: dict[str, Any]) -> str:
    """Return the number of rows held and the watermark as text."""
    return f"{ours['rows_held']:,} rows held up to {ours['watermark'] or 'the beginning'}"
