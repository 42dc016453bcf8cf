"""Muntin in one process: read files one by one, push them, and poll results after each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import muntin

CANNOT: Mapping[str, str] = {}
_SECOND = 1_000_000
_SCHEMA = {"k": "bigint", "g": "bigint", "v": "bigint", "ts": "timestamp"}
_PRIMES = (7919, 104729, 1299709, 15485863)


def begin(_: Mapping[str, Any]) -> None:
    """Nothing has to be started."""


def run(_: None, job: Mapping[str, Any]) -> dict[str, list[int]]:
    """Push all files in turn."""
    engine = muntin.Engine()
    for name in job["streams"]:
        engine.stream(name, _SCHEMA, time="ts")
    queries = {
        str(window): engine.query(sql(job, window), name=f"q{window}") for window in job["windows"]
    }
    found = {name: [0, 0] for name in queries}
    files = [sorted((Path(job["data"]) / name).glob("*.parquet")) for name in job["streams"]]
    size = job.get("times", 1)
    for first in range(0, len(files[0]), size):
        for name, paths in zip(job["streams"], files, strict=True):
            engine.push(name, pa.concat_tables(map(pq.read_table, paths[first : first + size])))
        _poll(queries, found, job)
    engine.advance((job["end"] + 2) * _SECOND)
    _poll(queries, found, job)
    return found


def sql(job: Mapping[str, Any], window: int) -> str:
    """Return the query for a window in milliseconds, with columns in the order of the checksum."""
    near = f"WINDOW {window} MILLISECONDS"
    every = f"{near} EVERY {job['every']} SECONDS EMIT SNAPSHOT"
    return {
        "join": f"SELECT A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k {near}",
        "three": (
            "SELECT A.v AS av, B.v AS bv, C.v AS cv FROM A, B, C WHERE A.k = B.k AND B.k = C.k "
            f"{near}"
        ),
        "rows": (
            f"SELECT A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k WINDOW {job['last_rows']} ROWS"
        ),
        "distinct": f"SELECT DISTINCT k FROM A {every}",
        "aggregate": (
            "SELECT A.g, COUNT(*) AS n, SUM(B.v) AS s FROM A, B WHERE A.k = B.k GROUP BY A.g "
            f"{every}"
        ),
    }[job["kind"]]


def summary(results: pa.Table, job: Mapping[str, Any]) -> tuple[int, int]:
    """Return the number of results and their checksum.

    For answers at instants the instant is the first number of a row.
    """
    columns = [results.column(name) for name in results.column_names if not name.startswith("_")]
    if job["kind"] in {"distinct", "aggregate"}:
        seconds = pc.divide(results.column("_ts").cast(pa.int64()), _SECOND)
        inside = pc.less_equal(seconds, job["end"])
        columns = [pc.filter(column, inside) for column in (seconds, *columns)]
    if not len(columns[0]):
        return 0, 0
    numbers = sum(
        column.cast(pa.int64()).to_numpy() * prime
        for column, prime in zip(columns, _PRIMES, strict=False)
    )
    # A square, so that partners cannot be swapped unseen.
    return len(columns[0]), int(((numbers % 1_000_003) ** 2 % 1_000_003).sum())


def _poll(
    queries: Mapping[str, muntin.StandingQuery], found: dict[str, list[int]], job: Mapping[str, Any]
) -> None:
    for name, query in queries.items():
        count, checksum = summary(query.poll(), job)
        found[name][0] += count
        found[name][1] += checksum
