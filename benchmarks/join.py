"""How the incremental window join compares with computing all results at once.

Two streams of 10,000 rows per second, keys uniform, window 60 s: Muntin with rows pushed in batches
of 100,000 against DuckDB on one thread over the whole tables. Both deliver the same rows as Arrow;
the sums of all values are compared, so neither can leave anything out.
"""

from __future__ import annotations

import time
from statistics import median

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

import muntin
from benchmarks.report import Claim, Progress, Report, spread
from muntin.testing.generators import uniform_stream

RATE = 10_000
WINDOW = 60
BATCH = 100_000
_SCHEMA = {"k": "bigint", "v": "double", "ts": "timestamp"}
_DUCKDB = f"""
SELECT a.k, a.v AS av, b.v AS bv, greatest(a.ts, b.ts) AS _ts FROM a JOIN b ON a.k = b.k
WHERE a.ts < b.ts + INTERVAL {WINDOW} SECOND AND b.ts < a.ts + INTERVAL {WINDOW} SECOND
"""


def run_muntin(
    a: pa.Table, b: pa.Table, window: int = WINDOW
) -> tuple[float, pa.Table, dict[str, object]]:
    """Seconds, results and statistics of Muntin on the two streams."""
    engine = muntin.Engine()
    engine.stream("A", _SCHEMA, time="ts")
    engine.stream("B", _SCHEMA, time="ts")
    q = engine.query(
        f"SELECT A.k, A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k WINDOW {window} SECONDS"
    )
    results = []
    begin = time.perf_counter()
    for start in range(0, len(a), BATCH):
        engine.push("A", a.slice(start, BATCH))
        engine.push("B", b.slice(start, BATCH))
        results.append(q.poll())
    last = max(pc.max(table.column("ts")).cast(pa.int64()).as_py() for table in (a, b))
    stats = q.stats()
    engine.advance(last)
    results.append(q.poll())
    return time.perf_counter() - begin, pa.concat_tables(results), stats


def run_duckdb(a: pa.Table, b: pa.Table) -> tuple[float, pa.Table]:
    """Seconds and results of DuckDB computing everything at once on one thread."""
    connection = duckdb.connect(config={"threads": 1})
    connection.register("a", a)
    connection.register("b", b)
    begin = time.perf_counter()
    result = connection.sql(_DUCKDB).to_arrow_table()
    return time.perf_counter() - begin, result


def checksum(results: pa.Table) -> tuple[int, int, float]:
    """Count of results, sum of keys, and sum of values to nine digits."""
    total = pc.add(pc.sum(results.column("av")), pc.sum(results.column("bv"))).as_py() or 0.0
    return len(results), pc.sum(results.column("k")).as_py() or 0, float(f"{total:.9g}")


def bench_join(progress: Progress, *, quick: bool = False) -> Report:
    """Run both several times in turn."""
    rows, keys, repeats = (200_000, 60_000, 2) if quick else (2_000_000, 600_000, 5)
    progress(f"generating two streams of {rows:,} rows")
    a, b = (uniform_stream(rows, RATE, keys, seed) for seed in (1, 2))
    ours, theirs = [], []
    run_muntin(a.slice(0, BATCH), b.slice(0, BATCH))
    stats: dict[str, object] = {}
    count = 0
    for repeat in range(repeats):
        progress(f"run {repeat + 1} of {repeats}")
        seconds, results, stats = run_muntin(a, b)
        ours.append(seconds)
        seconds, expected = run_duckdb(a, b)
        theirs.append(seconds)
        assert checksum(results) == checksum(expected), (
            "Muntin and DuckDB must give the same results"
        )
        count = len(results)
    ratio = median(mine / other for mine, other in zip(ours, theirs, strict=True))
    per_row = stats["state_bytes_per_row"]
    assert isinstance(per_row, float), "stats reports it"
    return Report(
        "join",
        "How does the incremental window join compare with computing all results at once?",
        [
            {"system": name, **spread(seconds), "input rows": 2 * rows, "results": count}
            for name, seconds in (
                ("Muntin, batches of 100,000", ours),
                ("DuckDB, all at once, one thread", theirs),
            )
        ],
        [
            Claim("Muntin's time over DuckDB's, median of the runs", round(ratio, 3), 2.5),
            Claim("bytes of window state per row, besides the payload", round(per_row, 1), 40.0),
        ],
    )
