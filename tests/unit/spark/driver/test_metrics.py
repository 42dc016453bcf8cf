"""Counts of partitions add up to those of the run.

Every row counts once, however many partitionings it follows.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muntin.model.catalog import Stream
from muntin.runtime.metrics import ResponseTimes
from muntin.spark.driver.metrics import RunMetrics
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import Part, PartitionBatch
from muntin.spark.exchange.packer import Packer
from muntin.spark.exchange.partition_metrics import PartitionMetrics, Rebuilt
from muntin.spark.partition.recovery import RecoverablePartition

NOTHING = ResponseTimes().stats()
EMPTY = dict.fromkeys(("input", "most_input", "join", "held", "most_held", "output"), 0)
SCHEMA = pa.schema([("k", pa.int64()), ("j", pa.int64()), ("ts", pa.timestamp("us"))])


def test_rows_count_once_under_several_partitionings() -> None:
    """Stream A is partitioned by k and by j, and broadcast because of a window that counts rows."""
    queries = (
        "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND",
        "SELECT A.k FROM A, B WHERE A.j = B.j WINDOW 1 SECOND",
        "SELECT A.k FROM A [ROWS 3], B [ROWS 3] WHERE A.k = B.k",
    )
    streams = (Stream("A", SCHEMA, "ts", 0), Stream("B", SCHEMA, "ts", 0))
    deployment = Deployment(
        streams, {}, tuple(DeployedQuery(f"q{n}", sql, {}) for n, sql in enumerate(queries)), (), 3
    )
    rows = {
        "A": pa.table(
            {"k": [1, 2, 3, None, 5], "j": [9, 9, None, 9, 9], "ts": [1, 2, 3, 4, 5]}
        ).cast(SCHEMA),
        "B": pa.table({"k": [1, 2], "j": [9, 9], "ts": [1, 7]}).cast(SCHEMA),
    }
    parts: list[list[Part]] = [[], [], []]
    for stream, table in rows.items():
        for partition, part in Packer(deployment, stream).pack(table, 0):
            parts[partition].append(part)
    partition_batch = [PartitionBatch(0, 0, {"A": 5, "B": 7}, tuple(own)) for own in parts]
    partitions = [RecoverablePartition(deployment, number) for number in range(3)]
    reported = [
        partition.apply(partition_batch[number]).stats
        for number, partition in enumerate(partitions)
    ]
    metrics = RunMetrics()
    metrics.add(0, [json.loads(stats.to_blob()) for stats in reported], {}, {})
    assert metrics.rows_in == {"A": 5, "B": 2}
    assert {stats.final for stats in reported} == {5}
    assert metrics.rows_held == sum(partition.rows() for partition in partitions)
    assert metrics.report(["A", "B"], {"q0": "Q0"})["watermark"] == "1970-01-01 00:00:00.000005"
    assert metrics.bytes_held == sum(stats.bytes_held for stats in reported) > 0
    assert metrics.workers == {0: {0}, 1: {0}, 2: {0}}
    moved = partitions[0].apply(PartitionBatch(1, 0, {}, (), 9)).stats
    assert (moved.rows_in, moved.rows_held, moved.final, moved.newest) == (
        {},
        partitions[0].rows(),
        9,
        7,
    ), "time moves on without rows"


def test_counts_add_up_held_rows_are_the_latest_and_a_repeated_batch_counts_once() -> None:
    metrics = RunMetrics()
    assert metrics.report(["A"], {}) == {
        "streams": {"A": {"rows": 0, "late": 0, "ahead": 0}},
        "batch": {"number": -1, "rows": {"A": 0}, "late": {"A": 0}, "results": {}},
        "results": {}, "queries": {}, "unsent": 0, "rows_held": 0, "bytes_held": 0, "workers": [],
        "rebuilds": {"partitions": 0, "rows": 0, "seconds": 0.0, "partition_seconds": 0.0},
        "watermark": None, "newest": None,
    }  # fmt: skip
    for batch, rows, held, final, worker in (
        (5, 3, 30, 1_000_000, 77),
        (6, 4, 20, 2_500_000, 78),
        (6, 4, 20, 2_500_000, 79),
    ):
        stats = [
            PartitionMetrics(
                {"A": rows}, held, final, final + 1, 10 * held, partition, worker, unsent=partition
            )
            for partition in (0, 1)
        ]
        reported = [json.loads(one.to_blob()) for one in stats]
        metrics.add(batch, reported, {"q": rows}, {"A": 1})
    assert metrics.report(["A"], {"q": "Q"})["batch"] == {
        "number": 6,
        "rows": {"A": 8},
        "late": {"A": 1},
        "results": {"Q": 4},
    }
    metrics.add(7, [], {}, {})
    assert metrics.report(["A"], {"q": "Q"}) == {
        "batch": {"number": 7, "rows": {"A": 0}, "late": {"A": 0}, "results": {"Q": 0}},
        "streams": {"A": {"rows": 14, "late": 2, "ahead": 0}},
        "results": {"Q": 7},
        "queries": {
            "Q": {
                "response_seconds": NOTHING,
                "batch_response_seconds": NOTHING,
                "buffers": EMPTY,
                "watermark": None,
                "waiting_for": None,
            }
        },
        "unsent": 2,
        "rows_held": 40,
        "bytes_held": 400,
        "workers": [2, 2],
        "rebuilds": {"partitions": 0, "rows": 0, "seconds": 0.0, "partition_seconds": 0.0},
        "watermark": "1970-01-01 00:00:02.500000",
        "newest": "1970-01-01 00:00:02.500001",
    }


def measured(waits: list[float], buffers: dict[str, int]) -> dict[str, Any]:
    times = ResponseTimes()
    times.add(100.0, 100.0 - np.array(waits), len(waits))
    return {"response": times.to_json(), "buffers": buffers}


def told_of(partition: int, **queries: dict[str, Any]) -> dict[str, Any]:
    reported: dict[str, Any] = json.loads(
        PartitionMetrics({}, 0, 0, partition=partition, queries=queries).to_blob()
    )
    return reported


def test_response_times_of_partitions_are_those_of_all_results_and_buffers_add_up() -> None:
    metrics = RunMetrics()
    first = [
        told_of(0, Q=measured([1.0] * 97, {"join": 5, "input": 1}), p=measured([7.0], {})),
        told_of(1, Q=measured([9.0] * 3, {"join": 2, "input": 0})),
    ]
    metrics.add(0, first, {"q": 100, "p": 1}, {})
    reported = metrics.report([], {"q": "Q", "p": "p"})["queries"]
    assert reported["Q"]["response_seconds"] == reported["Q"]["batch_response_seconds"]
    assert reported["Q"]["response_seconds"]["mean"] == pytest.approx((97 + 27) / 100)
    assert reported["Q"]["response_seconds"]["p95"] == pytest.approx(1.0, rel=0.13)
    assert (
        reported["Q"]["response_seconds"]["p99"]
        == reported["Q"]["response_seconds"]["max"]
        == pytest.approx(9.0)
    )
    assert reported["Q"]["buffers"] == {**EMPTY, "join": 7, "input": 1}
    assert reported["p"]["response_seconds"]["mean"] == pytest.approx(7.0)
    metrics.add(
        1, [told_of(0, Q=measured([2.0] * 100, {"join": 1, "input": 0}))], {"q": 100, "p": 0}, {}
    )
    reported = metrics.report([], {"q": "Q", "p": "p"})["queries"]
    assert reported["Q"]["batch_response_seconds"]["max"] == pytest.approx(2.0)
    assert reported["Q"]["response_seconds"]["mean"] == pytest.approx((97 + 27 + 200) / 200)
    assert reported["Q"]["buffers"] == {**EMPTY, "join": 1, "input": 0}
    assert reported["p"]["batch_response_seconds"] == NOTHING
    assert reported["p"]["response_seconds"]["max"] == pytest.approx(7.0)
    metrics.forget("q")
    assert metrics.report([], {"q": "Q"})["queries"]["Q"]["response_seconds"] == NOTHING


def test_a_partition_reports_response_times_of_each_batch_since_its_arrival() -> None:
    queries = (
        DeployedQuery("q", "SELECT k FROM A WINDOW 9 SECONDS", {}),
        DeployedQuery("none", "SELECT k FROM A WHERE k > 9 WINDOW 9 SECONDS", {}),
    )
    deployment = Deployment((Stream("A", SCHEMA, "ts", 0),), {}, queries, (), 1)
    partition = RecoverablePartition(deployment, 0)
    for batch, times in enumerate(([1, 2], [3])):
        rows = pa.table({"k": [1] * len(times), "j": [2] * len(times), "ts": times}).cast(SCHEMA)
        partition_batch = PartitionBatch(
            batch,
            0,
            {"A": times[-1]},
            tuple(part for _, part in Packer(deployment, "A").pack(rows, 0)),
        )
        began = time.monotonic()
        reported = partition.apply(partition_batch).stats.queries
        took = time.monotonic() - began
        found = {name: ResponseTimes.from_json(one["response"]) for name, one in reported.items()}
        assert (found["q"].count, found["none"].count) == (len(times), 0), (
            "those of the share alone"
        )
        assert 0 < found["q"].longest < took
        unscheduled = {"most_input": 0, "held": 0, "most_held": 0}
        assert reported["q"]["buffers"] == {
            "input": 0,
            "join": 2 + batch,
            "output": 0,
            **unscheduled,
        }


def test_times_before_1970_are_reported() -> None:
    metrics = RunMetrics()
    metrics.add(0, [json.loads(PartitionMetrics({}, 0, -1).to_blob())], {}, {})
    assert metrics.report([], {})["watermark"] == "1969-12-31 23:59:59.999999"


def test_the_report_of_a_batch_is_kept_for_a_while() -> None:
    metrics = RunMetrics()
    for batch in [*range(150), 120]:
        metrics.note(batch, {"batch": batch})
    assert metrics.noted(49) is None
    assert [metrics.noted(batch) for batch in (50, 120, 149)] == [
        {"batch": 50},
        {"batch": 120},
        {"batch": 149},
    ]


def test_rebuilds_of_one_micro_batch_overlap() -> None:
    """Wall-clock seconds run from the first start to the last end.

    Seconds of partitions add up.
    """
    metrics = RunMetrics()
    for began, ended in ((10.0, 12.0), (11.0, 14.0)):
        metrics.rebuilds.add([Rebuilt(100, began, began + 1), Rebuilt(50, began + 0.5, ended)])
    metrics.rebuilds.add([])
    assert metrics.report([], {})["rebuilds"] == {
        "partitions": 4,
        "rows": 300,
        "seconds": 5.0,
        "partition_seconds": 6.0,
    }


def test_a_rebuilt_partition_reports_it_once() -> None:
    deployment = Deployment(
        (Stream("A", SCHEMA, "ts", 0),),
        {},
        (DeployedQuery("q", "SELECT k FROM A WINDOW 9 SECONDS", {}),),
        (),
        1,
    )
    rows = pa.table({"k": [1, 2], "j": [1, 2], "ts": [1, 2]}).cast(SCHEMA)
    partition_batches = [
        PartitionBatch(
            batch, 0, {"A": 2}, tuple(part for _, part in Packer(deployment, "A").pack(rows, 0))
        )
        for batch in range(3)
    ]
    first = RecoverablePartition(deployment, 0).apply(partition_batches[0])
    assert first.stats.rebuilt is None, "there was nothing to build it from"
    partition = RecoverablePartition.rebuilt(deployment, 0, [(first.note, partition_batches[0])])
    reported = [
        partition.apply(partition_batch).stats.rebuilt for partition_batch in partition_batches[1:]
    ]
    assert reported[0] is not None
    assert reported[0].rows == 2
    assert reported[0].ended >= reported[0].began
    assert reported[1] is None


def test_progress_names_for_each_query_the_watermark_and_the_stream_that_it_waits_for() -> None:
    streams = (Stream("A", SCHEMA, "ts", 0), Stream("B", SCHEMA, "ts", 0))
    queries = (
        DeployedQuery("alone", "SELECT k FROM A WINDOW 1 SECOND", {}),
        DeployedQuery("Pairs", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", {}),
    )
    deployment = Deployment(streams, {}, queries, (), 2)
    table = pa.table({"k": [1, 1], "j": [1, 1], "ts": [3, 5]}).cast(SCHEMA)
    parts: list[list[Part]] = [[], []]
    for partition, part in Packer(deployment, "A").pack(table, 0):
        parts[partition].append(part)
    partitions = [RecoverablePartition(deployment, number) for number in range(2)]
    metrics = RunMetrics()

    def reported(batch: int, newest: dict[str, int], parts: list[list[Part]]) -> dict[str, Any]:
        partition_batches = [PartitionBatch(batch, 0, newest, tuple(own)) for own in parts]
        stats = [
            partition.apply(partition_batch).stats
            for partition, partition_batch in zip(partitions, partition_batches, strict=True)
        ]
        metrics.add(
            batch, [json.loads(one.to_blob()) for one in stats], {"alone": 0, "pairs": 0}, {}
        )
        found: dict[str, Any] = metrics.report(["A", "B"], {"alone": "alone", "pairs": "Pairs"})
        return found

    first = reported(0, {"A": 5}, parts)
    alone, pairs = first["queries"]["alone"], first["queries"]["Pairs"]
    assert (alone["watermark"], alone["waiting_for"]) == ("1970-01-01 00:00:00.000005", None)
    assert (pairs["watermark"], first["watermark"]) == (None, None), "the least of all queries"
    waiting = pairs["waiting_for"]
    assert (waiting["stream"], waiting["newest"]) == ("B", None)
    assert 0 <= waiting["since_seconds"] < 60
    last = reported(1, {"B": 9}, [[], []])
    pairs = last["queries"]["Pairs"]
    assert (pairs["watermark"], pairs["waiting_for"]) == ("1970-01-01 00:00:00.000005", None)
    metrics.forget("pairs")
    assert metrics.waiting("pairs") is None
