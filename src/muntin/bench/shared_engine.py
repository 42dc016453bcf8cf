"""Response times end to end: an engine that runs by itself, seven windows, bursts; from ``push`` to the call of the subscriber."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

import numpy as np
import pyarrow as pa

from muntin.bench.report import Figure
from muntin.bench.shared_workload import WINDOWS
from muntin.engine.engine import Engine
from muntin.testing.generators import uniform_stream

SCHEDULERS = ("lwo", "mqt")
_SECOND = 1_000_000
_LARGEST = 600


@dataclass(frozen=True)
class Bursts:
    """Rows a second of each stream, values, rows of a burst of each stream, bursts, runs of each scheduler."""

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


def run(scheduler: str, bursts: Bursts, windows: tuple[int, ...]) -> list[Waits]:
    """Fill the windows, then push bursts, each when all is quiet; what the subscriber of each window saw."""
    engine = Engine(scheduler=scheduler)
    history = bursts.rate * _LARGEST
    rows = {name: uniform_stream(history + bursts.rows * bursts.times, bursts.rate, bursts.keys, seed) for seed, name in enumerate("AB", 1)}
    for name, table in rows.items():
        engine.stream(name, table.schema, time="ts")
    waits, queries = [], []
    for window in windows:
        sql = f"SELECT A.k FROM A [RANGE {window} SECONDS], B [RANGE {window} SECONDS] WHERE A.k = B.k"
        waits.append(Waits())
        queries.append(engine.query(sql, name=f"within_{window}"))
        queries[-1].subscribe(waits[-1].take, buffer=1 << 30)

    def push(start: int, stop: int) -> None:
        for name, table in rows.items():
            engine.push(name, table.slice(start, stop - start))

    push(0, history)
    filled = _LARGEST * _SECOND - 1
    engine.advance(filled)
    for wait, query in zip(waits, queries, strict=True):
        # What history gave is not measured.
        wait.total = wait.results = wait.last = 0
        query.poll()
    engine.start()
    for number in range(bursts.times):
        begin = time.monotonic_ns()
        for wait in waits:
            wait.begin = begin
        start = history + number * bursts.rows
        push(start, start + bursts.rows)
        engine.advance(filled + (number + 1) * bursts.rows * _SECOND // bursts.rate)
        assert engine.settle(600), "it comes to an end"
    engine.stop()
    return waits


def compare(bursts: Bursts, name: str = "Mostly-Small") -> dict[str, Figure]:
    """Mean times by window, and MQT over LWO: for the smallest window, averaged over the queries and over results."""
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
            by_result[scheduler].append(sum(wait.total for wait in waits) / sum(wait.results for wait in waits))
    assert len(seen) == 1, f"every scheduler gives every query the same results: {seen}"
    pairs = list(zip(means["mqt"], means["lwo"], strict=True))
    told: dict[str, Figure] = {"experiment": "through the engine", "case": name, "rows of a burst": 2 * bursts.rows}
    for scheduler, runs in means.items():
        told[f"{scheduler} by window, ms"] = ", ".join(f"{value:.1f}" for value in np.median(runs, axis=0))
        told[f"{scheduler} longest, ms"] = round(median(last[scheduler]), 1)
    told["smallest window, MQT/LWO"] = round(median(mqt[0] / lwo[0] for mqt, lwo in pairs), 3)
    told["by query, MQT/LWO"] = round(median(sum(mqt) / sum(lwo) for mqt, lwo in pairs), 3)
    told["by result, MQT/LWO"] = round(median(map(_over, by_result["mqt"], by_result["lwo"])), 3)
    return told


def _over(one: float, other: float) -> float:
    return one / other
