"""Flink SQL through PyFlink, streaming in a local cluster: interval, window and HOP joins.

Its package from the registry has no reader of parquet, so it reads the same rows as CSV. Each
stream is one file, which it reads in order. Results are counted and checksums added up by Flink, in
windows of a minute, so that only some tens of rows go to Python.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, TableEnvironment

CANNOT: Mapping[str, str] = {
    "rows": (
        "Flink SQL has no join of the last n rows of a stream; OVER windows of rows are of one "
        "stream"
    )
}


def begin(_: Mapping[str, Any]) -> Any:
    """Return a table environment and a local cluster, and start Java.

    Without the cluster Flink would start one per job.
    """
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    cores = os.cpu_count() or 1
    runtime = get_gateway().jvm.org.apache.flink.runtime.minicluster
    settings = get_gateway().jvm.org.apache.flink.configuration.Configuration()
    settings.setString("rest.bind-address", "127.0.0.1")
    settings.setString("rest.bind-port", "0")
    settings.setString("taskmanager.memory.network.max", "256mb")
    settings.setString("taskmanager.memory.network.min", "256mb")
    wanted = runtime.MiniClusterConfiguration.Builder().setConfiguration(settings)
    cluster = runtime.MiniCluster(
        wanted.setNumTaskManagers(1).setNumSlotsPerTaskManager(cores).build()
    )
    cluster.start()
    for name, value in {
        "execution.target": "remote",
        "rest.address": "127.0.0.1",
        "rest.port": str(cluster.getRestAddress().get().getPort()),
        "parallelism.default": str(cores),
        "pipeline.object-reuse": "true",
        "table.local-time-zone": "UTC",
    }.items():
        environment.get_config().set(name, value)
    return environment


def run(environment: Any, job: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return all windows in one job, which reads each stream once."""
    for name in job["streams"]:
        environment.execute_sql(f"DROP TEMPORARY TABLE IF EXISTS {name}")
        environment.execute_sql(
            f"CREATE TEMPORARY TABLE {name} (k BIGINT, g BIGINT, v BIGINT, t BIGINT, ts AS "
            "TO_TIMESTAMP_LTZ(t, 3), "
            "WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND(1, 3)) "
            f"WITH ('connector' = 'filesystem', 'path' = 'file://{job['data']}/csv/{name}', "
            "'format' = 'csv')"
        )
    make = {"join": _join, "three": _three, "distinct": _distinct, "aggregate": _aggregate}[
        job["kind"]
    ]
    found = {str(window): [0, 0] for window in job["windows"]}
    query = " UNION ALL ".join(
        f"SELECT '{window}' AS q, n, c FROM ({make(environment, job, window)})"
        for window in job["windows"]
    )
    with environment.execute_sql(query).collect() as rows:
        for name, count, checksum in rows:
            found[name][0] += count
            found[name][1] += checksum
    return found


def _interval(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1_000)
    minutes, seconds = divmod(seconds, 60)
    return (
        f"INTERVAL '0 {minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}.{rest:03d}' DAY TO "
        "SECOND(3)"
    )


def _mixed(number: str) -> str:
    """Return the term of a result in the checksum: a square, so that swapped partners show."""
    # A remainder has the type of what is divided by.
    rest = f"MOD({number}, CAST(1000003 AS BIGINT))"
    return f"MOD({rest} * {rest}, CAST(1000003 AS BIGINT))"


def _near(one: str, other: str, window: int) -> str:
    """Less than the window apart; times are in milliseconds."""
    return (
        f"{one}.ts BETWEEN {other}.ts - {_interval(window - 1)} AND {other}.ts + "
        f"{_interval(window - 1)}"
    )


def _by_minute(environment: Any, name: str, query: str, checksum: str) -> str:
    """Return the number and checksum of the rows of each minute."""
    environment.execute_sql(f"DROP TEMPORARY VIEW IF EXISTS {name}")
    environment.create_temporary_view(name, environment.sql_query(query))
    rows = f"TABLE(TUMBLE(TABLE {name}, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
    return (
        f"SELECT COUNT(*) AS n, SUM({checksum}) AS c FROM {rows} GROUP BY window_start, window_end"
    )


def _join(environment: Any, job: Mapping[str, Any], window: int) -> str:
    pairs = (
        f"SELECT A.ts, A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k AND {_near('A', 'B', window)}"
    )
    return _by_minute(environment, _name(job, window), pairs, _mixed("av * 7919 + bv * 104729"))


def _three(environment: Any, job: Mapping[str, Any], window: int) -> str:
    pairs = (
        "SELECT A.k, A.ts, B.t AS bt, A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k AND "
        f"{_near('A', 'B', window)}"
    )
    triples = (
        f"SELECT P.ts, P.av, P.bv, C.v AS cv FROM ({pairs}) AS P, C WHERE P.k = C.k AND "
        f"{_near('P', 'C', window)} "
        f"AND P.bt - C.t < {window} AND C.t - P.bt < {window}"
    )
    return _by_minute(
        environment, _name(job, window), triples, _mixed("av * 7919 + bv * 104729 + cv * 1299709")
    )


def _name(job: Mapping[str, Any], window: int) -> str:
    return f"v{abs(hash(job['data']))}_{window}"


def _hop(name: str, job: Mapping[str, Any], window: int) -> str:
    return (
        f"TABLE(HOP(TABLE {name}, DESCRIPTOR(ts), {_interval(job['every'] * 1_000)}, "
        f"{_interval(window)}))"
    )


_END = "CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', window_end) AS BIGINT)"


def _per_window(query: str, checksum: str, job: Mapping[str, Any]) -> str:
    """Return the number and checksum of the rows of each window up to the end."""
    rows = (
        f"SELECT window_start, window_end, COUNT(*) AS n, SUM({checksum}) AS c FROM ({query}) "
        "GROUP BY window_start, window_end"
    )
    return f"SELECT n, c FROM ({rows}) WHERE {_END} <= {job['end']}"


def _distinct(_: Any, job: Mapping[str, Any], window: int) -> str:
    keys = (
        f"SELECT window_start, window_end, k FROM {_hop('A', job, window)} GROUP BY window_start, "
        "window_end, k"
    )
    return _per_window(keys, _mixed(f"{_END} * 7919 + k * 104729"), job)


def _aggregate(_: Any, job: Mapping[str, Any], window: int) -> str:
    same = "L.k = R.k AND L.window_start = R.window_start AND L.window_end = R.window_end"
    pairs = (
        "SELECT L.window_start, L.window_end, L.g, R.v FROM (SELECT * FROM "
        f"{_hop('A', job, window)}) L "
        f"JOIN (SELECT * FROM {_hop('B', job, window)}) R ON {same}"
    )
    groups = (
        f"SELECT window_start, window_end, g, COUNT(*) AS m, SUM(v) AS s FROM ({pairs}) GROUP BY "
        "window_start, window_end, g"
    )
    return _per_window(
        groups, _mixed(f"{_END} * 7919 + g * 104729 + m * 1299709 + s * 15485863"), job
    )
