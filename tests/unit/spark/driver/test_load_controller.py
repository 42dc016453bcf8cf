"""Limits on Spark: samples and limits of the controller."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from muntin.engine.declarations import Declarations
from muntin.errors import SettingError
from muntin.plan.join import JoinPlan
from muntin.spark.driver.limited_joins import limits_of
from muntin.spark.driver.load_controller import LoadController
from muntin.spark.exchange.controls import NEVER, ControlRow, ProbeLimits
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


def planned(**settings: str) -> tuple[str, list[JoinPlan], Any]:
    found = declared()
    for name, value in {**ADAPT, **settings}.items():
        found.set(name, value)
    own, plan = found.planned(found.read(SQL, "q"))
    assert isinstance(plan, JoinPlan)
    return "q", [plan], own


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
    work = sum(counts["probes"]) + sum(counts["matches"])
    others = {"work": work, "stale": 0, "oldest": [SECOND] * 3}
    return {
        "newest": 0,
        "rows_in": {"A": sum(arrivals[:3])},
        "overload": {"q": {"cycles": cycles, **counts, **others}},
    }


def analysed(made: LoadController) -> None:
    """Wait until the pending analysis is done.

    Real batches take longer than an analysis; those of a test do not.
    """
    made._analysts.submit(int).result()


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


def test_measured_costs_are_sent_as_fewer_probes_for_the_same_resources() -> None:
    made, sent = controller(resources="600", probe_cost="measured")
    for batch in range(6):
        made.observe(batch, 0.5, [reported([900] * 4, 2.0), reported([300] * 4, 2.0)])
        analysed(made)
    made.close()
    report = made.report()["q"]
    assert report["overloaded"]
    assert report["cost_per_probe"] > 1.5
    (limits,) = sent[-1].limits
    allowed = sum(cap for cap in limits.caps if cap is not None)
    assert allowed == pytest.approx(600 / report["cost_per_probe"], rel=1e-4)
    assert ControlRow.from_text(sent[-1].to_text()) == sent[-1], "what is replayed is the same"


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
    assert [row.late_after for row in sent] == [4 * SECOND, None]
    made.release()
    assert [row.late_after for row in sent[2:]] == [NEVER, None]
    assert sent[-1].limits[0].works == ()
    made.drop("q")
    made.begin()
    assert len(sent) == 4, "nobody needs to know"
    made.add(*planned())
    assert any(row.late_after == 4 * SECOND for row in sent[4:])
    made.close()


def test_limits_are_removed_when_the_load_has_fallen() -> None:
    made, sent = controller(interval=2.0)
    made.begin()
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


def test_only_the_limit_on_work_remains_after_the_first_batch_in_which_everything_fits() -> None:
    made, sent = controller(interval=2.0)
    made.begin()
    calm = [reported([3_000] * 4, 2.0), reported([3_000] * 4, 2.0)]
    high = [reported([90_000] * 4, 20.0), reported([90_000] * 4, 20.0)]
    for part in high:
        part["overload"]["q"]["probes"] = [900] * 4
    for batch in range(12):
        made.observe(batch, 1.0, calm if batch < 6 else high)
        analysed(made)
    (limits,) = sent[-1].limits
    assert None not in limits.caps
    made.observe(12, 1.0, calm)
    analysed(made)
    (limits,) = sent[-1].limits
    assert limits.caps == (None, None)
    assert {rate for partition in limits.rates for rate in partition} == {None}
    assert None not in limits.works
    made.close()


def test_the_first_batch_of_a_run_which_starts_workers_is_not_taken_for_overload() -> None:
    made, _ = controller(interval=2.0)
    batch = 0
    for _ in range(2):
        made.begin()
        made.observe(batch, 30.0, [reported([900] * 4, 2.0), reported([900] * 4, 2.0)])
        made.observe(batch + 1, 1.0, [reported([900] * 4, 2.0), reported([900] * 4, 2.0)])
        assert not made.report()["q"]["overloaded"]
        batch += 2
    made.observe(batch, 30.0, [reported([900] * 4, 2.0), reported([900] * 4, 2.0)])
    made.close()
    assert made.report()["q"]["overloaded"]


def test_work_is_limited_before_the_first_batch_and_divided_by_arrivals() -> None:
    made, sent = controller(interval=2.0)
    made.begin()
    (first,) = sent[-1].limits
    assert first.caps == (None, None), "nothing is overloaded yet"
    assert set(first.rates) == {(None,) * 4}
    assert len({*first.works}) == 1
    assert None not in first.works
    for batch in range(3):
        made.observe(batch, 1.0, [reported([9_000] * 4, 2.0), reported([3_000] * 4, 2.0)])
    (limits,) = sent[-1].limits
    most, least = limits.works
    assert most is not None
    assert least is not None
    assert most == pytest.approx(min(3 * least, made.report()["q"]["work_limit"]), rel=0.11)
    made.close()


def test_given_resources_hold_from_the_first_batch_and_have_no_limit_on_work() -> None:
    made, sent = controller(interval=2.0, resources="600")
    made.begin()
    (limits,) = sent[-1].limits
    assert {*limits.caps} == {600}
    assert limits.works == (None, None)
    made.close()


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


def test_the_joins_of_a_query_are_limited_apart_and_reported_together() -> None:
    found = declared()
    found.set("overload", "adapt")
    found.set("resources", "600")
    sql = "SELECT A.k FROM A, B WHERE A.k = B.k UNION SELECT B.k FROM B, C WHERE B.k = C.k"
    query = found.read(f"{sql} WINDOW 1 SECOND", "q")
    limits = limits_of(query, *found.planned(query), found.knowledge())
    sent: list[ControlRow] = []
    made = LoadController(1, 2.0, sent.append)
    made.add("q", limits.joins, limits.settings)
    names = [join.query.name for join in limits.joins]
    part = reported([900, 900], 2.0)
    calm = reported([10, 10], 2.0)["overload"]["q"]
    for batch in range(6):
        counts = dict(zip(names, (part["overload"]["q"], calm), strict=True))
        made.observe(batch, 0.5, [{**part, "overload": counts}])
        analysed(made)
    report = made.report()["q"]
    assert report["overloaded"]
    assert list(report["joins"]) == names
    assert [one["overloaded"] for one in report["joins"].values()] == [True, False]
    shares = [one["share_of_results"] for one in report["joins"].values()]
    assert report["share_of_results"] == min(shares)
    assert {limits.query for row in sent for limits in row.limits} == {*names}
    made.drop("q")
    assert made.report() == {}
    made.close()


def test_a_control_row_is_read_as_it_was_written() -> None:
    control = ControlRow("x", (("0", "A"),), (ProbeLimits("q", ((1.5, None),), (None,)),))
    assert ControlRow.from_text(control.to_text()) == control
