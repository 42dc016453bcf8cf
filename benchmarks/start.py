"""How long a new process takes until its first query answers.

Each start is a separate process: once with an empty kernel cache, then with a warm one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from benchmarks.report import Claim, Progress, Report

_PROGRAM = """
import muntin
engine = muntin.Engine()
for name in "AB":
    engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
q = engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 MINUTE")
engine.push("A", [(1, 0)])
engine.push("B", [(1, 1)])
engine.advance(2)
assert len(q.poll()) == 1
"""


def _start(cache: str) -> tuple[float, int]:
    begin = time.perf_counter()
    done = subprocess.run(  # noqa: S603 (our own interpreter on our own text)
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        check=True,
        capture_output=True,
        text=True,
    )
    return time.perf_counter() - begin, done.stderr.count("compiled kernel")


def bench_start(progress: Progress, *, quick: bool = False) -> Report:
    """Start cold once and warm several times."""
    with tempfile.TemporaryDirectory() as cache:
        progress("first start, compiling")
        cold, messages = _start(cache)
        progress("warm starts")
        warm = sorted(_start(cache)[0] for _ in range(2 if quick else 5))
    return Report(
        "start",
        "How long does a new process take until its first query answers?",
        [
            {"start": "kernel cache empty", "seconds": round(cold, 2), "progress lines": messages},
            {
                "start": "kernel cache warm",
                "seconds": round(warm[len(warm) // 2], 2),
                "progress lines": 0,
            },
        ],
        [
            Claim("seconds of a cold start", round(cold, 2), 30.0),
            Claim("seconds of a warm start", round(warm[len(warm) // 2], 2), 3.0),
            Claim("cold starts that showed no progress", float(messages == 0), 0.0),
        ],
    )
