"""Limits on Spark: samples and limits of the controller, and partitions that repeat choices."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muntin.engine.declarations import Declarations
from muntin.errors import SettingError
from muntin.model.catalog import Stream
from muntin.plan.join import JoinPlan
from muntin.spark.driver.batch_pacer import BatchPacer, MeasuredBatch
from muntin.spark.driver.load_controller import LoadController
from muntin.spark.exchange.controls import NEVER, ControlRow, ProbeLimits
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import PartitionBatch, PartitionOutput
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition.partition import RESULTS
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.sql.streams import make_stream

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
SECOND = 1_000_000
SQL = (
    "SELECT A.ts AS a, B.ts AS b, C.ts AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k "
    "WINDOW 1 SECOND"
)
ADAPT = {"overload": "adapt", "sharing": "off", "replan": "off", "tree": "((A, B), C)"}


def declared() -> Declarations:
    found = Declarations()
    for name in "ABC":
        found.add_stream(make_stream(name, SCHEMA, "ts", 0))
    return found


def planned(**settings: str) -> tuple[JoinPlan, Any]:
    found = declared()
    for name, value in {**ADAPT, **settings}.items():
        found.set(name, value)
    own, plan = found.planned(found.read(SQL, "q"))
    assert isinstance(plan, JoinPlan)
    return plan, own


def controller(
    partitions: int = 2, interval: float = 2.0, **settings: str
) -> tuple[LoadController, list[ControlRow]]:
    sent: list[ControlRow] = []
    made = LoadController(partitions, interval, sent.append)
    made.add(*planned(**settings))
    return made, sent


def reported(arrivals: list[int], matches: float, *, cycles: int = 2) -> Mapping[str, Any]:
    """Return the report of a partition in which all arriving rows probe with the same result."""
    counts = {
        "arrivals": arrivals,
        "probes": arrivals,
        "matches": [int(count * matches) for count in arrivals],
        "states": [3 * count for count in arrivals],
    }
    return {"overload": {"q": {"cycles": cycles, **counts, "stale": 0, "oldest": [SECOND] * 3}}}


def analysed(made: LoadController) -> None:
    """Wait until the pending analysis is done.

    Real batches take longer than an analysis; those of a test do not.
    """
    made._analysts.submit(int).result()


# -- the pace -------------------------------------------------------------------------------------


def test_there_is_no_limit_while_batches_finish_in_time() -> None:
    pace = BatchPacer(2.0)
    for _ in range(5):
        pace.learn(MeasuredBatch(1.2, 10_000, passed=2.0))
    assert pace.resources() is None


def test_a_batch_that_takes_too_long_has_its_probes_cut_in_proportion_to_their_time() -> None:
    pace = BatchPacer(2.0)
    pace.learn(MeasuredBatch(0.5, 1_000, passed=2.0, since=2.0))
    pace.learn(MeasuredBatch(3.5, 100_000, passed=2.0, since=2.0))
    assert pace.most == pytest.approx(100_000 * 0.73 / 3.03, rel=0.01), (
        "1.2 of 2 seconds, of which 0.47 go by whatever is done"
    )
    assert pace.resources() == pytest.approx((pace.most or 0.0) / 3.5), (
        "the next batch has what came in 3.5 seconds"
    )
    pace.learn(MeasuredBatch(1.2, pace.most or 0.0, passed=3.5, since=3.5))
    assert pace.resources() == pytest.approx(1.4 * (pace.most or 0.0) / 3.5), (
        "more is given step by step"
    )
    pace.learn(MeasuredBatch(1.2, pace.most or 0.0, passed=2.0, since=2.0))
    assert pace.resources() == pytest.approx((pace.most or 0.0) / 2.0), (
        "a batch that covered much says nothing about the next one"
    )


def test_probes_that_find_more_are_fewer() -> None:
    pace = BatchPacer(2.0)
    pace.learn(MeasuredBatch(3.0, 1_000, 9_000, 2.0, 2.0))
    assert pace.most == pytest.approx(4_000)
    assert pace.resources() == pytest.approx(400 / 3.0)
    before = 0.0
    for _ in range(4):
        pace.learn(MeasuredBatch(1.2, 400, 3_600, 2.0, 2.0))
        before = pace.resources() or 0.0
    pace.learn(MeasuredBatch(1.2, 200, 3_800, 2.0, 2.0))
    after = pace.resources() or 0.0
    assert before == pytest.approx(400 / 2.0)
    assert after == pytest.approx(before / 2)
    for _ in range(3):
        pace.learn(MeasuredBatch(1.2, 400, 3_600, 2.0, 2.0))
        assert pace.resources() == pytest.approx(after), (
            "what is found comes and goes with the limits: the most of the last batches counts"
        )
    pace.learn(MeasuredBatch(1.2, 400, 3_600, 2.0, 2.0))
    assert pace.resources() == pytest.approx(1.4 * after), "more is given step by step"


def test_a_batch_with_time_left_gets_more_unless_it_did_not_use_what_it_had() -> None:
    pace = BatchPacer(2.0)
    pace.learn(MeasuredBatch(3.0, 60_000, passed=2.0))
    limit = pace.most or 0.0
    assert limit == pytest.approx(24_000)
    pace.learn(MeasuredBatch(0.6, limit, passed=2.0))
    raised = pace.most
    assert raised is not None
    assert limit < raised <= 1.4 * limit
    pace.learn(MeasuredBatch(0.7, 0.1 * limit, passed=2.0))
    assert pace.most == raised


def test_the_controller_holds_a_machine_whose_batches_slow_down_with_probes() -> None:
    pace = BatchPacer(2.0)
    demand, seconds = 400_000.0, 0.0
    for _ in range(20):
        resources = pace.resources()
        allowed = demand if resources is None else min(demand, resources * 2.0)
        seconds = 0.4 + allowed * 1e-5
        pace.learn(MeasuredBatch(seconds, allowed, passed=2.0))
    assert seconds == pytest.approx(1.2, rel=0.05)


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 1e6])
def test_unusual_batches_do_not_break_the_controller(seconds: float) -> None:
    pace = BatchPacer(2.0)
    pace.learn(MeasuredBatch(3.0, 1_000, passed=2.0))
    pace.learn(MeasuredBatch(seconds, 0, passed=0.0))
    assert pace.resources() is None or float(pace.resources() or 0) > 0


# -- the governor ---------------------------------------------------------------------------------


def test_given_resources_are_divided_by_arrivals_and_never_exceeded() -> None:
    made, sent = controller(resources="600")
    for batch in range(6):
        made.observe(
            batch, 0.5, [reported([900, 900, 900, 900], 2.0), reported([300, 300, 300, 300], 2.0)]
        )
        analysed(made)
    made.close()
    report = made.report()["q"]
    assert report["overloaded"]
    assert 0 < report["share_of_results"] <= 1
    (limits,) = sent[-1].limits
    assert sum(cap for cap in limits.caps if cap is not None) == pytest.approx(600)
    assert limits.caps[0] == pytest.approx(3 * float(limits.caps[1] or 0))
    assert all(rate is not None for partition in limits.rates for rate in partition)


def test_the_limit_is_sent_before_the_analysis_that_divides_it() -> None:
    made, sent = controller(resources="600")
    release = threading.Event()
    made._analysts.submit(release.wait)
    try:
        for batch in range(2):
            made.observe(batch, 0.5, [reported([900] * 4, 2.0), reported([900] * 4, 2.0)])
        (limits,) = sent[-1].limits
        assert sum(cap or 0.0 for cap in limits.caps) == pytest.approx(600)
    finally:
        release.set()
        made.close()


def test_live_runs_say_when_a_batch_is_late_and_other_runs_that_none_is() -> None:
    made, sent = controller(interval=2.0)
    made.begin()
    assert [row.late_after for row in sent] == [4 * SECOND]
    made.release()
    assert [row.late_after for row in sent[1:]] == [NEVER, None]
    made.drop("q")
    made.begin()
    assert len(sent) == 3, "nobody needs to know"
    made.add(*planned())
    assert sent[-1].late_after == 4 * SECOND
    made.close()


def test_limits_are_removed_when_the_load_has_fallen() -> None:
    made, sent = controller(interval=2.0)
    for batch in range(4):
        made.observe(batch, 4.0, [reported([9_000] * 4, 2.0), reported([9_000] * 4, 2.0)])
        analysed(made)
    assert made.report()["q"]["overloaded"]
    for batch in range(4, 40):
        made.observe(batch, 0.5, [reported([10] * 4, 2.0), reported([10] * 4, 2.0)])
        analysed(made)
    made.close()
    assert not made.report()["q"]["overloaded"]
    (limits,) = sent[-1].limits
    assert limits.caps == (None, None)
    assert {rate for partition in limits.rates for rate in partition} == {None}


def test_the_first_batch_which_starts_workers_is_not_taken_for_overload() -> None:
    made, _ = controller(interval=2.0)
    made.observe(0, 30.0, [reported([900] * 4, 2.0), reported([900] * 4, 2.0)])
    made.observe(1, 1.0, [reported([900] * 4, 2.0), reported([900] * 4, 2.0)])
    assert not made.report()["q"]["overloaded"]
    made.observe(2, 30.0, [reported([900] * 4, 2.0), reported([900] * 4, 2.0)])
    made.close()
    assert made.report()["q"]["overloaded"]


def test_a_repeated_batch_counts_once_and_one_without_cycles_not_at_all() -> None:
    made, sent = controller(resources="600")
    made.observe(3, 0.5, [reported([900] * 4, 2.0)])
    before = len(sent)
    made.observe(3, 9.0, [reported([90_000] * 4, 2.0)])
    made.observe(4, 0.5, [reported([0] * 4, 0.0, cycles=0)])
    made.close()
    assert len(sent) <= before + 1
    assert made.report()["q"]["resources"] == 600


def test_without_an_interval_resources_must_be_given() -> None:
    made, _ = controller(interval=0.0)
    with pytest.raises(SettingError, match="trigger"):
        made.check_pace()
    controller(interval=0.0, resources="100")[0].check_pace()


def test_a_control_row_is_read_as_it_was_written() -> None:
    control = ControlRow("x", (("0", "A"),), (ProbeLimits("q", ((1.5, None),), (None,)),))
    assert ControlRow.from_text(control.to_text()) == control


# -- partitions -----------------------------------------------------------------------------------


def partition_batches(deployment: Deployment, seed: int) -> Iterator[PartitionBatch]:
    """Yield fourteen batches of random rows; some of them set other limits."""
    drawn = np.random.default_rng(seed)
    packers = {name: Packer(deployment, name) for name in "ABC"}
    at = 0
    for batch in range(14):
        length = int(drawn.integers(1, 4)) * SECOND // 2
        parts, newest = [], {}
        for name, packer in packers.items():
            times = np.sort(drawn.integers(at, at + length, 20))
            rows = pa.table(
                {"k": drawn.integers(0, 3, 20), "ts": pa.array(times).cast(pa.timestamp("us"))}
            )
            newest[name] = int(times[-1])
            parts += [part for partition, part in packer.pack(rows, 0) if partition == 0]
        at += length
        controls: tuple[str, ...] = ()
        if drawn.random() < 0.5:
            rates = tuple(
                None if drawn.random() < 0.3 else float(drawn.integers(0, 40)) for _ in range(4)
            )
            controls = (
                ControlRow(
                    str(batch),
                    limits=(ProbeLimits("q", (rates,), (float(drawn.integers(20, 120)),)),),
                ).to_text(),
            )
        yield PartitionBatch(batch, 0, newest, tuple(parts), controls=controls)


def results(outputs: list[PartitionOutput]) -> list[str]:
    return [
        str(row) for output in outputs if output.kind == RESULTS for row in output.table.to_pylist()
    ]


@pytest.mark.parametrize("choice", ["oldest", "newest", "random"])
@pytest.mark.parametrize("seed", range(4))
def test_a_limited_partition_rebuilt_before_any_batch_makes_the_same_choices(
    choice: str, seed: int
) -> None:
    streams = tuple(Stream(name, SCHEMA, "ts", 0) for name in "ABC")
    deployment = Deployment(
        streams, {}, (DeployedQuery("q", SQL, {**ADAPT, "probe_choice": choice}),), (), 1
    )
    plain = Deployment(streams, {}, (DeployedQuery("q", SQL, {}),), (), 1)
    unbroken, complete = RecoverablePartition(deployment, 0), RecoverablePartition(plain, 0)
    store: dict[int, tuple[RetainedBatch, PartitionBatch]] = {}
    made, possible = 0, 0
    for partition_batch in partition_batches(deployment, seed):
        kept = RecoverablePartition.rebuilt(deployment, 0, store.values())
        applied = kept.apply(partition_batch)
        store[partition_batch.batch] = (applied.note, partition_batch)
        for gone in applied.gone:
            del store[gone]
        expected = results(unbroken.apply(partition_batch).outputs)
        assert results(applied.outputs) == expected
        every = results(complete.apply(partition_batch).outputs)
        assert set(expected) <= set(every)
        made, possible = made + len(expected), possible + len(every)
    assert 0 < made < possible
    assert min(store) > 0, "some shares were let go"
