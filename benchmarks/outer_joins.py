"""What LEFT and ANTI JOIN cost beside the inner join of the same streams.

Two streams of 20,000 rows per second each and windows of 5 seconds, with few to many matches per
row. The windows are filled first; what follows is timed on the processor's clock. The joins of a
case take turns, and the ratio of each turn counts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from statistics import median

import muntin
from benchmarks.report import Claim, Figure, Progress, Report
from muntin.testing.generators import uniform_stream

_RATE = 20_000
_WINDOW = 5
_BATCH = _RATE
_FILLED = 8
_TIMED = 12
"""Batches of a second that fill the windows, and that are timed."""
_MATCHES = {"0.5": 200_000, "1": 100_000, "5": 20_000, "20": 5_000}
"""Rows of the other stream that a row matches on average, by the number of keys."""
_JOINS = {
    "inner": "SELECT A.k, A.v, B.v AS w FROM A JOIN B ON A.k = B.k",
    "LEFT": "SELECT A.k, A.v, B.v AS w FROM A LEFT JOIN B ON A.k = B.k",
    "ANTI": "SELECT A.k, A.v FROM A ANTI JOIN B ON A.k = B.k",
}
_BOUNDS = {"LEFT": 1.3, "ANTI": 1.1}


def seconds_of(sql: str, keys: int, timed: int) -> tuple[float, int]:
    """Return the seconds of processor time of the timed batches, and how many results there are."""
    count = (_FILLED + timed) * _BATCH
    streams = {name: uniform_stream(count, _RATE, keys, seed) for seed, name in enumerate("AB", 1)}
    engine = muntin.Engine()
    for name in streams:
        engine.stream(name, {"k": "bigint", "v": "double", "ts": "timestamp"}, time="ts")
    q = engine.query(sql)
    begin, results = 0.0, 0
    for start in range(0, count, _BATCH):
        if start == _FILLED * _BATCH:
            begin, results = time.process_time(), 0
        for name, rows in streams.items():
            engine.push(name, rows.slice(start, _BATCH))
        results += len(q.poll())
    return time.process_time() - begin, results


def bench_outer_joins(progress: Progress, *, quick: bool = False) -> Report:
    """Run the three joins of each case in turn, several times."""
    repeats, timed = (1, 2) if quick else (5, _TIMED)
    rows = []
    for emit in ("CHANGES", "INSERTS"):
        for matches, keys in _MATCHES.items():
            progress(f"EMIT {emit}, {matches} matches per row")
            texts = {
                name: f"{sql} WINDOW {_WINDOW} SECONDS EMIT {emit}" for name, sql in _JOINS.items()
            }
            runs = [
                {name: seconds_of(sql, keys, timed) for name, sql in texts.items()}
                for _ in range(repeats + 1)
            ][1:]  # the first one makes the machine warm
            rows += [_row(name, runs, emit=emit, matches=matches) for name in texts]
    return Report(
        "outer-joins",
        "What do LEFT and ANTI JOIN cost beside the inner join?",
        rows,
        [
            Claim(
                f"{name} JOIN, EMIT {emit}, 5 matches per row: time relative to the inner join",
                next(
                    float(row["relative"])
                    for row in rows
                    if (row["emit"], row["matches per row"], row["join"]) == (emit, "5", name)
                ),
                bound,
            )
            for emit in ("CHANGES", "INSERTS")
            for name, bound in _BOUNDS.items()
        ],
    )


def _row(name: str, runs: list[dict[str, tuple[float, int]]], **case: str) -> Mapping[str, Figure]:
    ratios = sorted(run[name][0] / run["inner"][0] for run in runs)
    return {
        "emit": case["emit"],
        "matches per row": case["matches"],
        "join": name,
        "results": runs[0][name][1],
        "ms": round(median(run[name][0] for run in runs) * 1e3, 1),
        "relative": round(median(ratios), 2),
        "least": round(ratios[0], 2),
        "most": round(ratios[-1], 2),
    }
