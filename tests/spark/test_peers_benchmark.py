"""The comparison with other systems runs without separate environments.

On Spark every kind of workload gives DuckDB's results.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.peers import duckdb as duckdb_peer
from benchmarks.peers import muntin_spark
from benchmarks.peers import spark as spark_peer
from benchmarks.peers_bench import FLOOR, OURS, PEERS, bench_peers
from benchmarks.peers_data import Workload, write_data
from benchmarks.peers_workloads import quick_workloads

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

IN_PROCESSES = {OURS, "Spark", FLOOR}
WORKLOADS = {workload.name: workload for workload in quick_workloads()}


def test_the_comparison_runs_with_the_installed_systems(tmp_path: Path) -> None:
    peers = [peer for peer in PEERS if peer.own or peer.name in IN_PROCESSES]
    report = bench_peers(lambda _: None, quick=True, environments=tmp_path, peers=peers)
    rows = {(row["workload"], row["system"]): row for row in report.rows}
    for workload in WORKLOADS.values():
        for peer in peers:
            if workload.systems and peer.name not in workload.systems:
                assert (workload.name, peer.name) not in rows
                continue
            row = rows[workload.name, peer.name]
            if peer.own:
                assert "a quick run makes none" in str(row["remark"])
            else:
                assert float(row["seconds"]) > 0, row
    assert float(rows["one window join", "Spark"]["seconds"]) > 0
    assert report.claims[0].holds


def prepared(workload: Workload, folder: Path) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """Return the job as scripts receive it, and DuckDB's results."""
    write_data(folder, workload.streams)
    job: dict[str, Any] = json.loads(json.dumps(workload.job(folder)))
    connection = duckdb_peer.begin(job)
    expected = duckdb_peer.run(connection, job)
    connection.close()
    assert all(count > 0 for count, _ in expected.values())
    return job, expected


@pytest.mark.parametrize(
    ("name", "store"),
    [
        ("one window join", "rocksdb"),
        ("seven windows", "default"),
        ("three-way join", "default"),
        ("sliding DISTINCT", "default"),
        ("aggregate over a join", "default"),
    ],
)
def test_spark_gives_the_results_of_duckdb(
    name: str, store: str, spark: SparkSession, tmp_path: Path
) -> None:
    job, expected = prepared(WORKLOADS[name], tmp_path)
    session = spark.newSession()
    session.conf.set("spark.sql.streaming.stateStore.providerClass", spark_peer.STORES[store])
    assert spark_peer.run(session, job) == expected


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "name", ["seven windows", "join of the last 1000 rows", "aggregate over a join"]
)
def test_muntin_on_spark_gives_the_results_of_duckdb(name: str, tmp_path: Path) -> None:
    job, expected = prepared(WORKLOADS[name], tmp_path)
    assert muntin_spark.run(muntin_spark.begin(job), job) == expected
