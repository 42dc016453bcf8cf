"""Whether the cost of a row depends on the size of the window.

Rows come at 10,000 per second; the number of keys grows with the window, so that a row always has
one match on each side. Windows are filled first and slide by a few batches, until the store has
been fitted to them; only then is time taken.
"""

from __future__ import annotations

import time

import muntin
from benchmarks.join import BATCH, RATE
from benchmarks.report import Claim, Progress, Report
from muntin.testing.generators import uniform_stream

_SETTLE = 3
"""Batches after which a full window has settled."""


def seconds_per_row(window: int, timed: int) -> tuple[float, float]:
    """Seconds per row on full windows, and bytes of state per row."""
    filled = -(-RATE * window // BATCH) * BATCH + _SETTLE * BATCH
    rows = filled + timed
    a, b = (uniform_stream(rows, RATE, RATE * window, seed) for seed in (1, 2))
    engine = muntin.Engine()
    for name in "AB":
        engine.stream(name, {"k": "bigint", "v": "double", "ts": "timestamp"}, time="ts")
    q = engine.query(
        f"SELECT A.k, A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k WINDOW {window} SECONDS"
    )
    begin = 0.0
    counted = 0
    for start in range(0, rows, BATCH):
        if start == filled:
            begin = time.perf_counter()
        engine.push("A", a.slice(start, BATCH))
        engine.push("B", b.slice(start, BATCH))
        counted += 2 * len(a.slice(start, BATCH)) if start >= filled else 0
        q.poll()
    elapsed = time.perf_counter() - begin
    per_row = q.stats()["state_bytes_per_row"]
    assert isinstance(per_row, float), "stats reports it"
    return elapsed / counted, per_row


def bench_window(progress: Progress, *, quick: bool = False) -> Report:
    """Time a row for growing windows."""
    windows = (1, 6, 20) if quick else (6, 60, 600)
    timed = 300_000 if quick else 2_000_000
    seconds_per_row(1, BATCH)
    rows = []
    for window in windows:
        progress(f"window of {window} seconds")
        seconds, state = seconds_per_row(window, timed)
        rows.append(
            {
                "window seconds": window,
                "rows per window": RATE * window,
                "ns per row": round(seconds * 1e9, 1),
                "state bytes per row": round(state, 1),
            }
        )
    flat = max(float(row["ns per row"]) for row in rows) / float(rows[0]["ns per row"])
    most = max(float(row["state bytes per row"]) for row in rows)
    return Report(
        "window",
        "Does the cost of a row depend on the size of the window?",
        rows,
        [
            Claim("time per row, largest over smallest window", round(flat, 3), 1.5),
            Claim("bytes of window state per row", most, 40.0),
        ],
    )
