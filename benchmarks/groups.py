"""How many rows per second a sliding GROUP BY takes on one core.

One stream of 10,000 rows per second of event time, 10,000 groups, window 60 s, SUM, COUNT, MIN and
MAX. The window is filled first; what follows is timed, on the processor's clock and on the wall's.
Every run ends with a look at what the changes add up to: DuckDB must find the same groups over the
rows of the last window.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import muntin
from benchmarks.report import Claim, Figure, Progress, Report

_SECOND = 1_000_000
_WINDOW = 60
_BATCH = 10
"""Seconds of event time that are pushed at once."""
_SELECT = (
    "SELECT k, SUM(v) AS s, COUNT(*) AS n, MIN(v) AS least, MAX(v) AS greatest FROM {} GROUP BY k"
)
_WAYS = {"EVERY 1 SECOND": " EVERY 1 SECOND", "every change": ""}
_TYPES = {"whole numbers": "bigint", "floating point": "double"}


@dataclass(frozen=True)
class Load:
    """The load: rows per second of event time, groups, and seconds timed with a full window."""

    rate: int
    groups: int
    timed: int

    def stream(self, kind: str) -> pa.Table:
        """Return the rows, in whole seconds from 0 on."""
        random = np.random.default_rng(1)
        count = (_WINDOW + self.timed) * self.rate
        times = pa.array(np.arange(count, dtype=np.int64) * (_SECOND // self.rate)).cast(
            pa.timestamp("us")
        )
        values = random.integers(0, 1_000_000, count)
        return pa.table(
            {
                "k": random.integers(0, self.groups, count),
                "v": values / 64 if kind == "double" else values,
                "ts": times,
            }
        )


@dataclass(frozen=True)
class Timing:
    """What a run took, and what it gave."""

    cpu: float
    wall: float
    changes: int


def run(load: Load, kind: str, every: str) -> Timing:
    """Push the rows, poll after each batch, and check where it ends."""
    rows = load.stream(kind)
    engine = muntin.Engine()
    engine.stream("S", {"k": "bigint", "v": kind, "ts": "timestamp"}, time="ts")
    q = engine.query(f"{_SELECT.format('S')} WINDOW {_WINDOW} SECONDS{every}")
    changes = []
    cpu = wall = 0.0
    for second in range(0, _WINDOW + load.timed, _BATCH):
        if second == _WINDOW:
            cpu, wall = time.process_time(), time.perf_counter()
        engine.push("S", rows.slice(second * load.rate, _BATCH * load.rate))
        changes.append(q.poll())
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    engine.advance((_WINDOW + load.timed) * _SECOND - 1)
    changes.append(q.poll())
    _check(pa.concat_tables(changes), rows, every)
    timed = changes[_WINDOW // _BATCH : -1]
    return Timing(cpu, wall, sum(len(part) for part in timed))


def _check(changes: pa.Table, rows: pa.Table, every: str) -> None:
    """Check that the groups inserted and never deleted are those of the window at the end.

    With EVERY, the end is the last multiple.
    """
    last = pc.max(rows.column("ts")).cast(pa.int64()).as_py()
    at = last // _SECOND * _SECOND if every else last
    instants = rows.column("ts").cast(pa.int64())
    inside = rows.filter(
        pc.and_(pc.greater(instants, at - _WINDOW * _SECOND), pc.less_equal(instants, at))
    )
    connection = duckdb.connect(config={"threads": 1})
    connection.register("changes", changes)
    connection.register("inside", inside)
    columns = "k, s, n, least, greatest"
    times = "sum(CASE _op WHEN '+' THEN 1 ELSE -1 END)"
    left = f"SELECT {columns} FROM changes GROUP BY {columns} HAVING {times} <> 0"
    expected = _SELECT.format("inside")
    difference = connection.sql(
        f"({left} EXCEPT ALL {expected}) UNION ALL ({expected} EXCEPT ALL {left})"
    ).to_arrow_table()
    assert not len(difference), "what the changes add up to must be DuckDB's answer"


def bench_groups(progress: Progress, *, quick: bool = False) -> Report:
    """Run each way several times, in turn; the fastest run counts."""
    load, repeats = (Load(1_000, 1_000, 20), 1) if quick else (Load(10_000, 10_000, 240), 3)
    found: dict[tuple[str, str], list[Timing]] = {
        (kind, way): [] for kind in _TYPES for way in _WAYS
    }
    for repeat in range(repeats):
        for (kind, way), timings in found.items():
            progress(f"{kind}, {way}, run {repeat + 1} of {repeats}")
            timings.append(run(load, _TYPES[kind], _WAYS[way]))
    count = load.rate * load.timed
    rows: list[dict[str, Figure]] = []
    for (kind, way), timings in found.items():
        best = min(timings, key=lambda timing: timing.cpu)
        rows.append(
            {
                "values": kind,
                "results": way,
                "rows per CPU second": round(count / best.cpu),
                "rows per second": round(count / best.wall),
                "rows": count,
                "changes": best.changes,
            }
        )
    speed = {(row["values"], row["results"]): float(row["rows per CPU second"]) for row in rows}
    return Report(
        "groups",
        "How many rows per second does a sliding GROUP BY take on one core?",
        rows,
        [
            Claim(
                "rows per CPU second, EVERY 1 SECOND",
                speed["whole numbers", "EVERY 1 SECOND"],
                1_000_000,
                "at least",
            ),
            Claim(
                "rows per CPU second, every change emitted",
                speed["whole numbers", "every change"],
                300_000,
                "at least",
            ),
        ],
    )
