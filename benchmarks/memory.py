"""Whether memory stays flat when a query runs for a long time.

A join runs over a hundred windows' length; the process's memory and the state are sampled on the
way.
"""

from __future__ import annotations

import gc

import pyarrow as pa

import muntin
from benchmarks.join import RATE
from benchmarks.report import Claim, Progress, Report, resident_bytes
from muntin.testing.generators import uniform_stream

_WINDOW = 6


def bench_memory(progress: Progress, *, quick: bool = False) -> Report:
    """Push a hundred windows of rows, poll, and watch."""
    windows = 20 if quick else 100
    batch = RATE * _WINDOW // 2
    engine = muntin.Engine()
    for name in "AB":
        engine.stream(name, {"k": "bigint", "v": "double", "ts": "timestamp"}, time="ts")
    q = engine.query(
        f"SELECT A.k, A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k WINDOW {_WINDOW} SECONDS"
    )
    rows: list[dict[str, float | int | str]] = []
    a, b = (uniform_stream(batch, RATE, RATE * _WINDOW, seed) for seed in (1, 2))
    base = {
        name: table.column("ts").cast(pa.int64()).to_numpy() for name, table in (("A", a), ("B", b))
    }
    for step in range(2 * windows):
        for name, table in (("A", a), ("B", b)):
            shifted = pa.array(base[name] + step * batch * 1_000_000 // RATE).cast(
                pa.timestamp("us")
            )
            engine.push(name, table.set_column(2, "ts", shifted))
        q.poll()
        if step % (windows // 5) == windows // 5 - 1:
            gc.collect()
            stats = q.stats()
            state, per_row = stats["state_bytes"], stats["state_bytes_per_row"]
            assert isinstance(state, int), "stats reports it"
            assert isinstance(per_row, float), "stats reports it"
            progress(f"{(step + 1) // 2} windows")
            rows.append(
                {
                    "windows passed": (step + 1) / 2,
                    "process MB": round(resident_bytes() / 1e6, 1),
                    "state MB": round(state / 1e6, 2),
                    "state bytes per row": round(per_row, 1),
                }
            )
    steady = rows[1:]
    growth = float(steady[-1]["process MB"]) / float(steady[0]["process MB"])
    return Report(
        "memory",
        "Does memory stay flat when a query runs for a long time?",
        rows,
        [
            Claim("process memory at the end over that after two tenths", round(growth, 3), 1.1),
            Claim(
                "bytes of window state per row",
                max(float(row["state bytes per row"]) for row in steady),
                40.0,
            ),
        ],
    )
