"""Response times end to end, from ``push`` to the subscriber, in a background engine.

The engine has seven windows; rows come in bursts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.report import Figure
from benchmarks.shared_workload import WINDOWS
from muntin.engine.engine import Engine
from muntin.testing.generators import uniform_stream

SCHEDULERS = ("lwo", "mqt")
_SECOND = 1_000_000
_LARGEST = 600
_SINGLE = 200
_SOON = 0.001
_MOST_BURSTS = 60


@dataclass(frozen=True)
class Bursts:
    """Bursts: rows per second of a stream, values, rows per burst and stream, bursts, runs."""

    rate: int = 1_000
    keys: int = 60_000
    rows: int = 10_000
    times: int = 5
    repeats: int = 3


class Waits:
    """Nanoseconds from the push of a burst to the call of a query's subscriber, for each result."""

    def __init__(self) -> None:
        self.begin = 0
        self.total = self.results = self.last = 0

    def take(self, batch: pa.RecordBatch) -> None:
        """Be called."""
        waited = time.monotonic_ns() - self.begin
        self.total += waited * len(batch)
        self.results += len(batch)
        self.last = max(self.last, waited)


def plain_sql(window: int) -> str:
    """Return the join under a window in seconds."""
    return f"SELECT A.k FROM A, B WHERE A.k = B.k WINDOW {window} SECONDS"


class Running:
    """A background engine with full windows, and the results seen by each window's subscriber."""

    def __init__(
        self,
        scheduler: str,
        bursts: Bursts,
        windows: tuple[int, ...],
        sql: Callable[[int], str] = plain_sql,
    ) -> None:
        self.engine = Engine(scheduler=scheduler)
        self._bursts = bursts
        self._given = bursts.rate * _LARGEST
        rows = self._given + bursts.rows * bursts.times + 2 * _SINGLE
        self._rows = {
            name: uniform_stream(rows, bursts.rate, bursts.keys, seed)
            for seed, name in enumerate("AB", 1)
        }
        for name, table in self._rows.items():
            self.engine.stream(name, table.schema, time="ts")
        self.waits, queries = [], []
        for window in windows:
            self.waits.append(Waits())
            queries.append(self.engine.query(sql(window), name=f"within_{window}"))
            queries[-1].subscribe(self.waits[-1].take, buffer=1 << 30)
        for name, table in self._rows.items():
            self.engine.push(name, table.slice(0, self._given))
        self.engine.advance(_LARGEST * _SECOND - 1)
        for wait, query in zip(self.waits, queries, strict=True):
            # What history gave is not measured.
            wait.total = wait.results = wait.last = 0
            query.poll()
        self.engine.start()

    def push(self, count: int) -> float:
        """Push the next rows of each stream; return the milliseconds of a push."""
        begin = time.monotonic_ns()
        for wait in self.waits:
            wait.begin = begin
        for name, table in self._rows.items():
            self.engine.push(name, table.slice(self._given, count))
        self._given += count
        return (time.monotonic_ns() - begin) / 1e6 / len(self._rows)

    def look(self) -> float:
        """Return the milliseconds that a trivial call waits for the engine."""
        begin = time.monotonic_ns()
        self.engine.queries()
        return (time.monotonic_ns() - begin) / 1e6

    def close(self) -> None:
        """Advance time to the last row."""
        self.engine.advance(self._given * _SECOND // self._bursts.rate - 1)


def run(
    scheduler: str,
    bursts: Bursts,
    windows: tuple[int, ...],
    sql: Callable[[int], str] = plain_sql,
) -> list[Waits]:
    """Fill the windows, push bursts when the engine is idle, and return the subscribers' times."""
    running = Running(scheduler, bursts, windows, sql)
    for _ in range(bursts.times):
        running.push(bursts.rows)
        running.close()
        assert running.engine.settle(600), "it comes to an end"
    running.engine.stop()
    return running.waits


def pushes(
    bursts: Bursts, windows: tuple[int, ...]
) -> tuple[list[float], list[float], list[float]]:
    """Return the milliseconds that calls wait for the engine.

    During bursts, for a push of one row while idle, and for one during bursts.
    """
    running = Running("mqt", replace(bursts, times=_MOST_BURSTS), windows)
    turns: list[float] = []
    idle: list[float] = []
    busy: list[float] = []
    for _ in range(_SINGLE):
        idle.append(running.push(1))
        running.engine.settle(60)
    for _ in range(_MOST_BURSTS):
        running.push(bursts.rows)
        while len(busy) < _SINGLE and not running.engine.settle(_SOON):
            turns.append(running.look())
            busy.append(running.push(1))
        if len(busy) == _SINGLE:
            break
    running.engine.stop()
    return turns or [0.0], idle, busy or idle


def compare(bursts: Bursts, name: str = "Mostly-Small") -> dict[str, Figure]:
    """Return mean times by window, and MQT over LWO.

    The ratio is for the smallest window, averaged over queries and over results.
    """
    windows = WINDOWS[name]
    means: dict[str, list[list[float]]] = {scheduler: [] for scheduler in SCHEDULERS}
    by_result: dict[str, list[float]] = {scheduler: [] for scheduler in SCHEDULERS}
    last: dict[str, list[float]] = {scheduler: [] for scheduler in SCHEDULERS}
    seen = set()
    for _ in range(bursts.repeats):
        for scheduler in SCHEDULERS:
            waits = run(scheduler, bursts, windows)
            seen.add(tuple(wait.results for wait in waits))
            means[scheduler].append([wait.total / wait.results / 1e6 for wait in waits])
            last[scheduler].append(max(wait.last for wait in waits) / 1e6)
            by_result[scheduler].append(
                sum(wait.total for wait in waits) / sum(wait.results for wait in waits)
            )
    assert len(seen) == 1, f"every scheduler gives every query the same results: {seen}"
    pairs = list(zip(means["mqt"], means["lwo"], strict=True))
    told: dict[str, Figure] = {
        "experiment": "through the engine",
        "case": name,
        "rows of a burst": 2 * bursts.rows,
    }
    for scheduler, runs in means.items():
        told[f"{scheduler} by window, ms"] = ", ".join(
            f"{value:.1f}" for value in np.median(runs, axis=0)
        )
        told[f"{scheduler} longest, ms"] = round(median(last[scheduler]), 1)
    told["smallest window, MQT/LWO"] = round(median(mqt[0] / lwo[0] for mqt, lwo in pairs), 3)
    told["by query, MQT/LWO"] = round(median(sum(mqt) / sum(lwo) for mqt, lwo in pairs), 3)
    told["by result, MQT/LWO"] = round(median(map(_over, by_result["mqt"], by_result["lwo"])), 3)
    turns, idle, busy = pushes(bursts, windows)
    told["single rows while working"] = len(busy)
    told["wait for a turn, ms"] = round(float(np.median(turns)), 2)
    told["99 of 100 wait for a turn less than, ms"] = round(float(np.quantile(turns, 0.99)), 2)
    told["push of a row while idle, ms"] = round(float(np.median(idle)), 2)
    told["push of a row while working, ms"] = round(float(np.median(busy)), 2)
    return told


def _over(one: float, other: float) -> float:
    return one / other
