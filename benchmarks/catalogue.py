"""All benchmarks by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from benchmarks.choice import bench_choice
from benchmarks.groups import bench_groups
from benchmarks.intervals import bench_intervals
from benchmarks.invalidation import bench_invalidation
from benchmarks.join import bench_join
from benchmarks.memory import bench_memory
from benchmarks.orders import bench_orders
from benchmarks.outer_joins import bench_outer_joins
from benchmarks.overload import bench_overload
from benchmarks.overload_windows_bench import bench_overload_windows
from benchmarks.peers_bench import bench_peers
from benchmarks.pipelines import bench_pipelines
from benchmarks.replan import bench_replan
from benchmarks.report import Progress, Report
from benchmarks.scheduled_groups import bench_scheduled_groups
from benchmarks.shared import bench_shared
from benchmarks.spark import bench_spark
from benchmarks.spark_aggregate import bench_spark_aggregate
from benchmarks.spark_batches import bench_spark_batches
from benchmarks.spark_bursts import bench_spark_bursts
from benchmarks.spark_driver import bench_spark_driver
from benchmarks.spark_overload import bench_spark_overload
from benchmarks.spark_scaling import bench_spark_scaling
from benchmarks.spark_shared import bench_spark_shared
from benchmarks.start import bench_start
from benchmarks.state import bench_state
from benchmarks.window import bench_window


class Benchmark(Protocol):
    """A function that measures and reports its progress."""

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
    "scheduled-groups": bench_scheduled_groups,
    "outer-joins": bench_outer_joins,
    "pipelines": bench_pipelines,
    "overload": bench_overload,
    "overload-windows": bench_overload_windows,
    "spark": bench_spark,
    "spark-batches": bench_spark_batches,
    "state": bench_state,
    "spark-aggregate": bench_spark_aggregate,
    "spark-bursts": bench_spark_bursts,
    "spark-overload": bench_spark_overload,
    "spark-shared": bench_spark_shared,
    "spark-driver": bench_spark_driver,
    "spark-scaling": bench_spark_scaling,
    "peers": bench_peers,
}
