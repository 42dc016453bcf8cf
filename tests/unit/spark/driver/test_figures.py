"""The figures of an engine on Spark, from the reports of its partitions."""

from __future__ import annotations

from typing import Any

import pytest

from muntin.metrics.figures import EngineFigures
from muntin.runtime.metrics import ResponseTimes
from muntin.spark.driver.figures import read_figures
from muntin.spark.driver.metrics import RunMetrics
from muntin.spark.driver.phase_clock import PhaseClock
from muntin.spark.exchange.partition_metrics import PartitionMetrics, QueryClock

SECOND = 1_000_000


def report(results: int = 0, **others: Any) -> dict[str, Any]:
    times = ResponseTimes()
    times.add(1.0, 0.5, results)
    buffers = {"input": 1, "join": 7, "held": 0, "output": 0}
    queries = {"Q": {"response": times.to_json(), "buffers": buffers}}
    stats = PartitionMetrics({"A": 4}, rows_held=5, final=3 * SECOND, newest=8 * SECOND, **others)
    clocks = {"Q": vars(QueryClock(3 * SECOND, "B", 4 * SECOND))}
    return {**vars(stats), "queries": queries, "clocks": clocks}


def read(metrics: RunMetrics, **overloads: Any) -> EngineFigures:
    return read_figures(metrics, ["A"], overloads or {"Q": None}, ())


def test_figures_are_the_sums_of_the_partitions() -> None:
    metrics = RunMetrics()
    metrics.add(0, [report(3, bytes_held=10), report(2, bytes_held=20)], {"q": 5}, {"A": 2})
    found = read(metrics)
    stream, query = found.streams["A"], found.queries["Q"]
    assert (stream.counts.rows, stream.counts.late) == (8, 2)
    assert (found.held_rows, found.held_bytes, found.results) == (10, 30, 5)
    assert (query.counts.results, query.counts.response.count) == (5, 5)
    assert query.counts.response.total == pytest.approx(2.5)
    assert (query.lag, query.watermark, query.state_rows) == (5.0, 3.0, 14)
    assert query.waits is not None
    assert query.waits.stream == "B"
    assert query.buffers == {"input": 2, "held": 0, "output": 0}
    assert found.batches is not None
    assert found.batches.batches == 1


def test_counters_go_on_when_a_name_is_used_again() -> None:
    metrics = RunMetrics()
    metrics.add(0, [report(3)], {"q": 3}, {})
    metrics.forget("q")
    assert read(metrics).results == 3
    assert read(metrics).queries["Q"].counts.results == 3
    metrics.add(1, [report(4)], {"q": 4}, {})
    found = read(metrics)
    assert (found.results, found.queries["Q"].counts.results) == (7, 7)
    assert found.queries["Q"].counts.response.count == 7


def test_a_repeated_batch_counts_once() -> None:
    metrics = RunMetrics()
    for _ in range(2):
        metrics.add(0, [report(3)], {"q": 3}, {"A": 1})
    found = read(metrics)
    assert (found.results, found.streams["A"].counts.rows) == (3, 4)
    assert found.batches is not None
    assert found.batches.batches == 1


def test_rebuilds_and_phases_add_up() -> None:
    metrics = RunMetrics()
    rebuilt = {"rows": 9, "began": 1.0, "ended": 3.0}
    metrics.add(0, [report(rebuilt=rebuilt), report(rebuilt=rebuilt)], {}, {})
    for _ in range(2):
        clock = PhaseClock(metrics.phases)
        clock.end("plan")
        clock.end("sinks")
    batches = read(metrics).batches
    assert batches is not None
    assert (batches.rebuilds, batches.rebuilt_rows, batches.rebuild_seconds) == (2, 18, 4.0)
    assert sorted(batches.phases) == ["plan", "sinks"]
    assert min(batches.phases.values()) > 0


def test_overload_of_several_joins_is_shown_by_join() -> None:
    one = {"budgets": {"A into B": 2.0}, "oldest_rows": {"A": "3 seconds", "B": "4 ROWS"}}
    report_of = {
        "mode": "adapt",
        "overloaded": True,
        "share_of_results": 0.5,
        "stale_results": 1,
        "joins": {"q.0": one, "q.1": {**one, "oldest_rows": {"A": "5 seconds"}}},
    }
    found = read(RunMetrics(), Q=report_of).queries["Q"].overload
    assert found is not None
    assert found.budgets == {"q.0: A into B": 2.0, "q.1: A into B": 2.0}
    assert found.oldest == {"A": 5.0}
