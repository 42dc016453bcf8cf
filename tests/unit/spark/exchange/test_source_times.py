"""A stream with several sources is as far as its slowest active one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.model.catalog import Stream
from muntin.model.clock import AFTER_ALL, BEFORE_ALL
from muntin.spark.exchange.controls import ControlRow
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import PartitionBatch
from muntin.spark.exchange.packer import Packer
from muntin.spark.exchange.source_times import SourceTimes, newest_by_source
from muntin.spark.exchange.time_bounds import TimeBounds, bounds_after
from muntin.spark.partition.partition import LATE, RESULTS
from muntin.spark.partition.partition_clock import PartitionClock
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.retained_batches import RetainedBatch

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
STREAM = Stream("A", SCHEMA, "ts")
DEPLOYMENT = Deployment(
    (STREAM,), {}, (DeployedQuery("q", "SELECT k FROM A WINDOW 1 SECOND", {}),), (), 1
)


def batch(number: int, sources: dict[str, list[int]], idle: tuple[str, ...] = ()) -> PartitionBatch:
    """Return a batch with rows at the given times of each source."""
    times = [time for each in sources.values() for time in each]
    rows = pa.table(
        [pa.array(times, pa.int64()), pa.array(times, pa.timestamp("us"))], schema=SCHEMA
    )
    packer = Packer(DEPLOYMENT, "A")
    parts = tuple(part for _, part in packer.pack(rows, 0)) if times else ()
    return PartitionBatch(
        number,
        0,
        {"A": max(times)} if times else {},
        parts,
        controls=(ControlRow("idle", idle=tuple(("A", one) for one in idle)).to_text(),),
        sources={"A": {source: max(each) for source, each in sources.items() if each}},
    )


class Run:
    """A partition with its retained batches."""

    def __init__(self) -> None:
        self.partition = RecoverablePartition(DEPLOYMENT, 0)
        self.kept: list[tuple[RetainedBatch, PartitionBatch]] = []
        self.found: list[int] = []
        self.late: list[int] = []
        self.number = 0

    def take(self, sources: dict[str, list[int]], idle: tuple[str, ...] = ()) -> None:
        given = batch(self.number, sources, idle)
        applied = self.partition.apply(given)
        self.kept.append((applied.note, given))
        self.number += 1
        for output in applied.outputs:
            if output.kind == RESULTS:
                self.found += output.table.column("k").to_pylist()
            if output.kind == LATE:
                self.late += output.table.column("k").to_pylist()

    def rebuild(self) -> None:
        self.partition = RecoverablePartition.rebuilt(DEPLOYMENT, 0, self.kept)


def test_rows_of_a_slow_source_are_not_late_and_those_of_the_others_wait() -> None:
    run = Run()
    run.take({"t/0": [10, 20, 30], "t/1": [5]})
    assert run.found == [5]
    run.take({"t/0": [40]})
    assert run.found == [5]
    run.take({"t/1": [15, 25]})
    assert run.found == [5, 10, 15, 20, 25]
    assert run.late == []


def test_an_idle_source_holds_nothing_back_until_it_sends_again() -> None:
    run = Run()
    run.take({"t/0": [10, 20], "t/1": [5]})
    run.take({}, idle=("t/1",))
    assert run.found == [5, 10, 20]
    run.take({"t/0": [30]})
    assert run.found == [5, 10, 20, 30]
    run.take({"t/0": [40], "t/1": [35]}, idle=("t/1",))
    assert run.found == [5, 10, 20, 30, 35]
    run.take({"t/1": [12, 50]})
    assert (run.found, run.late) == ([5, 10, 20, 30, 35, 40], [12])


def test_if_all_sources_are_idle_the_newest_row_counts() -> None:
    run = Run()
    run.take({"t/0": [10], "t/1": [5], "t/2": [30]})
    run.take({}, idle=("t/0", "t/1", "t/2"))
    assert run.found == [5, 10, 30]


def test_a_source_that_appears_late_moves_nothing_back() -> None:
    run = Run()
    run.take({"t/0": [10, 20]})
    run.take({"t/1": [15, 25]})
    assert (run.found, run.late) == ([10, 20], [15])
    assert run.partition.clock().newest == {"A": 20}


_STEPS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(["t/0", "t/1", "t/2"]), st.integers(1, 5), min_size=1),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@given(_STEPS, st.randoms(use_true_random=False))
def test_in_any_interleaving_rows_in_order_per_source_are_never_late_and_come_in_order(
    steps: list[tuple[dict[str, int], bool]], random: object
) -> None:
    clocks = {"t/0": 0, "t/1": 0, "t/2": 0}
    run, sent = Run(), list[int]()
    choose = np.random.default_rng(getattr(random, "randint")(0, 2**31))  # noqa: B009 (untyped)
    run.take({source: [0] for source in clocks})
    for counts, rebuilt in steps:
        given_rows: dict[str, list[int]] = {}
        for source, count in counts.items():
            steps_of = choose.integers(0, 50, count)
            given_rows[source] = [int(one) for one in clocks[source] + np.cumsum(steps_of)]
            clocks[source] = given_rows[source][-1]
            sent += given_rows[source]
        if rebuilt:
            run.rebuild()
        run.take(given_rows)
        slowest = min(clocks.values())
        assert run.found == sorted([0, 0, 0, *(time for time in sent if time <= slowest)])
    assert run.late == []


def test_times_too_far_ahead_are_not_those_of_their_source() -> None:
    before = TimeBounds({"A": 10}, {}, {}, SourceTimes({"A": {"t/0": 10, "t/1": 8}}))
    given_batch = PartitionBatch(
        1,
        0,
        {"A": 1000},
        (),
        segments={"A": ((12, 12, 1), (1000, 1000, 1))},
        max_advance=100,
        sources={"A": {"t/0": 12, "t/1": 1000}},
    )
    after = bounds_after(before, BEFORE_ALL, given_batch)
    assert after.bounds == {"A": 12}
    assert after.sources.newest == {"A": {"t/0": 12, "t/1": 8}}
    assert after.newest == {"A": 10}


def test_the_newest_times_of_sources_leave_out_times_out_of_range() -> None:
    sources = pa.chunked_array([["t/0", "t/1", "t/0", "t/2"]])
    times = np.array([3, AFTER_ALL, 7, BEFORE_ALL])
    assert newest_by_source(sources, times) == {"t/0": 7}


@pytest.mark.parametrize("idle", [(), (("A", "t/0"),)])
def test_the_clock_of_a_partition_keeps_the_times_of_sources(
    idle: tuple[tuple[str, str], ...],
) -> None:
    sources = SourceTimes({"A": {"t/0": 5, "t/1": 9}}, idle)
    clock = PartitionClock({"A": 5}, BEFORE_ALL, sources=sources)
    assert clock.bounds.sources == sources
    assert sources.reached("A") == (9 if idle else 5)
    assert sources.reached("B") is None
