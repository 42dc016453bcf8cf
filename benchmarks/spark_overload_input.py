"""The input of :mod:`benchmarks.spark_overload`: a ramp, its rows, and their feeder."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Integers = npt.NDArray[np.int64]
STREAMS = "ABC"
SECOND = 1_000_000


@dataclass(frozen=True)
class Ramp:
    """The input: values, window, freshness and trigger interval; seconds per phase; loads.

    The load rises for ``rise`` seconds, stays, and falls for as long.
    """

    keys: int = 200
    window: int = 4
    freshness: int = 12
    interval: int = 2
    phases: tuple[int, int, int] = (16, 40, 30)
    rise: int = 10
    calm: float = 0.5
    over: float = 3.0
    first_rate: int = 200
    tick: float = 0.5
    patience: float = 60.0

    def rate(self, second: float, capacity: float) -> float:
        """Return rows per second of each stream at a second, for a capacity of the machine."""
        before, over, _ = self.phases
        risen = min(second - before, before + over - second) / self.rise
        return capacity * (self.calm + (self.over - self.calm) * min(max(risen, 0.0), 1.0))

    @property
    def seconds(self) -> int:
        """How long it takes."""
        return sum(self.phases)


FULL = Ramp()
QUICK = Ramp(phases=(4, 6, 6), rise=2, patience=20.0)


@dataclass(frozen=True)
class Rows:
    """The rows of a ramp, each stream's times in microseconds from its beginning on, and values."""

    times: dict[str, Integers]
    values: dict[str, Integers]

    @classmethod
    def drawn(cls, ramp: Ramp, capacity: float, seed: int = 5) -> Rows:
        """Poisson arrivals with uniform values."""
        generator = np.random.default_rng(seed)
        times, values = {}, {}
        for name in STREAMS:
            parts = [
                np.sort(
                    generator.integers(0, SECOND, generator.poisson(ramp.rate(second, capacity)))
                )
                + second * SECOND
                for second in range(ramp.seconds)
            ]
            times[name] = np.concatenate(parts)
            values[name] = generator.integers(0, ramp.keys, len(times[name]))
        return cls(times, values)

    def between(self, name: str, begin: float, end: float, start: int) -> pa.Table:
        """Return the rows of a stream between two seconds, with times from ``start`` on."""
        first, last = np.searchsorted(self.times[name], [begin * SECOND, end * SECOND])
        moments = pa.array(self.times[name][first:last] + start).cast(pa.timestamp("us"))
        return pa.table({"k": self.values[name][first:last], "ts": moments})

    @cached_property
    def _ordered(self) -> dict[str, Integers]:
        return {name: np.sort(self.values[name] * (1 << 40) + self.times[name]) for name in STREAMS}

    def results(self, ramp: Ramp) -> Integers:
        """Return for each second the number of results that its rows complete.

        It is the product of the rows of equal value inside the windows of the two other streams.
        """
        found = np.zeros(ramp.seconds, np.int64)
        for place, name in enumerate(STREAMS):
            product = np.ones(len(self.times[name]), np.int64)
            for other_place, other in enumerate(STREAMS):
                if other == name:
                    continue
                wanted = self.values[name] * (1 << 40) + self.times[name]
                # Of two rows of one instant that of the stream declared later completes the result.
                newest = np.searchsorted(
                    self._ordered[other], wanted, "right" if other_place < place else "left"
                )
                oldest = np.searchsorted(
                    self._ordered[other], wanted - ramp.window * SECOND, "right"
                )
                product *= newest - oldest
            found += np.bincount(
                self.times[name] // SECOND, product, minlength=ramp.seconds
            ).astype(np.int64)
        return found


@dataclass
class Feeder:
    """Writes rows as files when they are due; ``fed`` has the number of rows after each tick."""

    rows: Rows
    ramp: Ramp
    folder: Path
    start: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        for name in STREAMS:
            (self.folder / name).mkdir(parents=True)

    @contextmanager
    def feeding(self) -> Iterator[None]:
        """Feed from now on, until it is left."""
        self.start = time.time_ns() // 1_000
        thread = threading.Thread(target=self._feed, name="feeder", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def warm_up(self, rows_read: Callable[[], int]) -> None:
        """Run a first batch, which starts the workers: a row per stream that joins with nothing."""
        before = pa.array([time.time_ns() // 1_000 - 60 * SECOND]).cast(pa.timestamp("us"))
        for place, name in enumerate(STREAMS):
            part = self.folder / name / ".first.parquet"
            pq.write_table(pa.table({"k": [-1 - place], "ts": before}), part)
            os.utime(part, (1, 1))
            part.rename(self.folder / name / "first.parquet")
        until = time.monotonic() + self.ramp.patience
        while time.monotonic() < until and rows_read() < len(STREAMS):
            time.sleep(0.1)

    def _feed(self) -> None:
        for number in range(round(self.ramp.seconds / self.ramp.tick)):
            due = self.start / SECOND + (number + 1) * self.ramp.tick
            if self._stopped.wait(max(due - time.time(), 0)):
                return
            for name in STREAMS:
                self.write(name, number, number * self.ramp.tick, (number + 1) * self.ramp.tick)

    def write(self, name: str, number: int, begin: float, end: float) -> None:
        """Write the rows of a stream between two seconds as a file."""
        path = self.folder / name / f"{number:05d}.parquet"
        part = path.with_name(f".{path.name}")
        pq.write_table(self.rows.between(name, begin, end, self.start), part)
        os.utime(part, (number + 1_000, number + 1_000))
        part.rename(path)
