"""All benchmarks by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from muntin.bench.choice import bench_choice
from muntin.bench.groups import bench_groups
from muntin.bench.intervals import bench_intervals
from muntin.bench.invalidation import bench_invalidation
from muntin.bench.join import bench_join
from muntin.bench.memory import bench_memory
from muntin.bench.orders import bench_orders
from muntin.bench.overload import bench_overload
from muntin.bench.peers_bench import bench_peers
from muntin.bench.pipelines import bench_pipelines
from muntin.bench.replan import bench_replan
from muntin.bench.report import Progress, Report
from muntin.bench.shared import bench_shared
from muntin.bench.spark import bench_spark
from muntin.bench.spark_aggregate import bench_spark_aggregate
from muntin.bench.spark_bursts import bench_spark_bursts
from muntin.bench.spark_overload import bench_spark_overload
from muntin.bench.spark_shared import bench_spark_shared
from muntin.bench.start import bench_start
from muntin.bench.state import bench_state
from muntin.bench.window import bench_window


class Benchmark(Protocol):
    """A function that measures and tells its progress."""

    def __call__(self, progress: Progress, *, quick: bool = False) -> Report:
        """Measure; ``quick`` with less data, to see that it works."""


BENCHMARKS: Mapping[str, Benchmark] = {
    "join": bench_join,
    "window": bench_window,
    "memory": bench_memory,
    "start": bench_start,
    "orders": bench_orders,
    "replan": bench_replan,
    "choice": bench_choice,
    "intervals": bench_intervals,
    "invalidation": bench_invalidation,
    "shared": bench_shared,
    "groups": bench_groups,
    "pipelines": bench_pipelines,
    "overload": bench_overload,
    "spark": bench_spark,
    "state": bench_state,
    "spark-aggregate": bench_spark_aggregate,
    "spark-bursts": bench_spark_bursts,
    "spark-overload": bench_spark_overload,
    "spark-shared": bench_spark_shared,
    "peers": bench_peers,
}
