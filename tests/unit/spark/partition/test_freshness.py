"""Freshness on Spark holds from the first batch on: no result has a row that is too old by then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from muntin.model.catalog import Stream
from muntin.spark.exchange.controls import NEVER, ControlRow, ProbeLimits
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import PartitionBatch
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition.partition import RESULTS, Partition

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
SECOND = 1_000_000
ADAPT = {"overload": "adapt", "sharing": "off", "replan": "off", "tree": "(A, B)"}
SQL = "SELECT A.ts AS a, B.ts AS b FROM A, B WHERE A.k = B.k WINDOW 2 SECONDS"
GENEROUS = ProbeLimits("q", ((None, None),), (1e6,))


def deployed(freshness: str) -> Deployment:
    streams = tuple(Stream(name, SCHEMA, "ts", 0) for name in "AB")
    return Deployment(streams, {}, (DeployedQuery("q", f"{SQL} {freshness}", ADAPT),), (), 1)


def batch_of(
    deployment: Deployment, number: int, begin: int, end: int, *controls: ControlRow
) -> PartitionBatch:
    """Return a batch of random rows between two seconds, the last of each stream at its end."""
    drawn = np.random.default_rng(number)
    parts, segments = [], {}
    for name in "AB":
        packer = Packer(deployment, name)
        times = np.append(np.sort(drawn.integers(begin * SECOND, end * SECOND, 300)), end * SECOND)
        keys = drawn.integers(0, 4, len(times))
        rows = pa.table({"k": keys, "ts": pa.array(times).cast(pa.timestamp("us"))})
        parts += [part for _, part in packer.pack(rows, 0)]
        segments[name] = tuple(packer.segments(rows))
    texts = tuple(control.to_text() for control in controls)
    newest = dict.fromkeys("AB", end * SECOND)
    return PartitionBatch(number, 0, newest, tuple(parts), controls=texts, segments=segments)


def oldest(partition: Partition, batch: PartitionBatch) -> dict[str, float]:
    """Return the age in seconds of the oldest row in a result of a batch, by alias."""
    (output,) = (one for one in partition.apply(batch) if one.kind == RESULTS)
    end = batch.newest["A"]
    return {
        name: (end - min(output.table.column(name).cast(pa.int64()).to_pylist())) / SECOND
        for name in "ab"
    }


@pytest.mark.parametrize("number", [0, 1])
def test_a_batch_that_waited_for_too_long_has_no_stale_results_without_limits(number: int) -> None:
    deployment = deployed("FRESHNESS 5 SECONDS")
    live = ControlRow("live", late_after=4 * SECOND)
    partition = Partition(deployment, 0)
    late = batch_of(deployment, number, 10, 30, live)
    if number:
        first = batch_of(deployment, 0, 9, 10, live)
        assert max(oldest(partition, first).values()) < 2
        late = replace(late, controls=())
    assert 4.5 < max(oldest(partition, late).values()) <= 5


def test_a_batch_on_time_and_one_that_nobody_waits_for_have_all_results() -> None:
    deployment = deployed("")
    on_time = batch_of(deployment, 0, 10, 13, ControlRow("live", late_after=4 * SECOND))
    assert max(oldest(Partition(deployment, 0), on_time).values()) > 2.9
    late = batch_of(deployment, 0, 10, 30, ControlRow("available", late_after=NEVER))
    assert max(oldest(Partition(deployment, 0), late).values()) > 19


def test_rows_after_a_silent_time_are_not_late() -> None:
    deployment = deployed("")
    partition = Partition(deployment, 0)
    oldest(partition, batch_of(deployment, 0, 0, 2, ControlRow("live", late_after=4 * SECOND)))
    after = batch_of(deployment, 1, 3_600, 3_603)
    assert max(oldest(partition, after).values()) > 2.9


def test_a_row_that_is_stale_itself_does_not_probe_rows_that_may_be_older() -> None:
    deployment = deployed("FRESHNESS A 3 SECONDS, B 30 SECONDS")
    partition = Partition(deployment, 0)
    ages = oldest(partition, batch_of(deployment, 0, 10, 30, ControlRow("x", limits=(GENEROUS,))))
    assert ages["a"] <= 3
    assert ages["b"] <= 5
    (quota,) = partition.dataflows.quotas().values()
    assert quota.take()["stale"] == 0


def test_whether_a_batch_is_late_survives_a_restart() -> None:
    deployment = deployed("FRESHNESS 5 SECONDS")
    before = Partition(deployment, 0)
    oldest(before, batch_of(deployment, 0, 9, 10, ControlRow("live", late_after=4 * SECOND)))
    after = Partition(deployment, 0)
    after.restore(before.clock())
    assert max(oldest(after, batch_of(deployment, 1, 10, 30)).values()) <= 5
