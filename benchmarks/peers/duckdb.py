"""DuckDB in batch: all files at once, on all cores.

It keeps no state, so it is a lower bound rather than a competitor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb

CANNOT: Mapping[str, str] = {}


def begin(job: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """Return a connection."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    assert job, "there is a job"
    return connection


def run(connection: duckdb.DuckDBPyConnection, job: Mapping[str, Any]) -> dict[str, list[int]]:
    """Read the files and compute all results."""
    for name in job["streams"]:
        connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT k, g, v, epoch_ms(ts) AS ts FROM "
            f"read_parquet('{job['data']}/{name}/*.parquet')"
        )
    make = {
        "join": _join,
        "three": _three,
        "rows": _rows,
        "distinct": _distinct,
        "aggregate": _aggregate,
    }[job["kind"]]
    found = {}
    for window in job["windows"]:
        row = connection.execute(make(job, window)).fetchone()
        assert row is not None, "an aggregate gives one row"
        found[str(window)] = [int(row[0]), int(row[1] or 0)]
    return found


def _mixed(number: str) -> str:
    """Return the term of a result in the checksum: a square, so that swapped partners show."""
    return f"(({number}) % 1000003) * (({number}) % 1000003) % 1000003"


def _join(_: Mapping[str, Any], window: int) -> str:
    results = f"count(*), sum({_mixed('a.v * 7919 + b.v * 104729')})"
    return (
        f"SELECT {results} FROM A a, B b WHERE a.k = b.k AND a.ts - b.ts < {window} AND b.ts - "
        f"a.ts < {window}"
    )


def _three(_: Mapping[str, Any], window: int) -> str:
    near = " AND ".join(
        f"{one}.ts - {other}.ts < {window}" for one in "abc" for other in "abc" if one != other
    )
    return (
        f"SELECT count(*), sum({_mixed('a.v * 7919 + b.v * 104729 + c.v * 1299709')}) "
        f"FROM A a, B b, C c WHERE a.k = b.k AND b.k = c.k AND a.k = c.k AND {near}"
    )


def _rows(job: Mapping[str, Any], _: int) -> str:
    """Return the SQL of a join of the last rows.

    Rows are numbered in both streams; rows near each other share a partition or have adjacent ones.
    """
    size = job["last_rows"]

    def older(old: str, new: str, place: str) -> str:
        partitions = (
            f"(SELECT *, unnest([{place} // {size}, {place} // {size} - 1]) AS partition FROM "
            f"placed WHERE s = '{new}') {new}"
        )
        olds = f"(SELECT *, {place} // {size} AS partition FROM placed WHERE s = '{old}') {old}"
        near = f"{new}.{place} >= {old}.{place} AND {new}.{place} - {old}.{place} < {size}"
        return (
            f"SELECT a.v AS av, b.v AS bv FROM {olds}, {partitions} WHERE a.k = b.k AND "
            f"a.partition = b.partition AND {near}"
        )

    numbered = (
        "SELECT *, row_number() OVER (ORDER BY ts, s, v) AS place, row_number() OVER (PARTITION BY "
        "s ORDER BY ts, v) AS own "
        "FROM (SELECT 'a' AS s, * FROM A UNION ALL SELECT 'b', * FROM B)"
    )
    placed = (
        "SELECT *, if(s = 'a', own, place - own) AS na, if(s = 'b', own, place - own) AS nb FROM "
        f"({numbered})"
    )
    return (
        f"WITH placed AS MATERIALIZED ({placed}) SELECT count(*), "
        f"sum({_mixed('av * 7919 + bv * 104729')}) "
        f"FROM ({older('a', 'b', 'na')} UNION ALL {older('b', 'a', 'nb')})"
    )


def _instants(job: Mapping[str, Any], newest: str, oldest: str, window: int) -> str:
    """Return the instants at which both are inside the window, in milliseconds."""
    every = job["every"] * 1_000
    return f"unnest(range(({newest} // {every} + 1) * {every}, {oldest} + {window}, {every})) AS t"


def _distinct(job: Mapping[str, Any], window: int) -> str:
    rows = (
        f"SELECT DISTINCT k, t FROM (SELECT k, {_instants(job, 'ts', 'ts', window)} FROM A) WHERE "
        f"t <= {job['end'] * 1_000}"
    )
    return f"SELECT count(*), sum({_mixed('t // 1000 * 7919 + k * 104729')}) FROM ({rows})"


def _aggregate(job: Mapping[str, Any], window: int) -> str:
    times = _instants(job, "greatest(a.ts, b.ts)", "least(a.ts, b.ts)", window)
    near = f"a.ts - b.ts < {window} AND b.ts - a.ts < {window}"
    pairs = f"SELECT a.g, b.v, {times} FROM A a, B b WHERE a.k = b.k AND {near}"
    groups = (
        f"SELECT t, g, count(*) AS n, sum(v) AS s FROM ({pairs}) WHERE t <= {job['end'] * 1_000} "
        "GROUP BY t, g"
    )
    return (
        "SELECT count(*), "
        f"sum({_mixed('t // 1000 * 7919 + g * 104729 + n * 1299709 + s * 15485863')}) FROM "
        f"({groups})"
    )
