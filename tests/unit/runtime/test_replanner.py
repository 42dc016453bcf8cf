"""When a plan is reconsidered, when it changes, and which declarations the data overrule."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from muntin.model.catalog import Catalog, Stream
from muntin.model.settings import Settings
from muntin.model.statistics import JoinStatistics, SourceStatistics, StreamStatistics
from muntin.plan.join import JoinPlan
from muntin.planner.draft import Knowledge
from muntin.planner.join_planner import plan_join
from muntin.planner.unit_costs import DEFAULT_COSTS
from muntin.runtime.replanner import Replanner, plan_words
from muntin.sql.script import read_query

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
THREE = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 10 SECONDS"
EVEN = JoinStatistics((SourceStatistics(10.0, 100.0, (100.0,)),) * 3)


def plan(sql: str = THREE, **settings: str) -> JoinPlan:
    catalog = Catalog()
    for name in "ABC":
        catalog.add(Stream(name, SCHEMA, "ts"))
    return plan_join(read_query(sql, "q", catalog), Settings.of(**settings))


def replanner(declared: dict[str, StreamStatistics] | None = None, **settings: str) -> Replanner:
    return Replanner(Settings.of(**settings), declared or {}, lambda: DEFAULT_COSTS)


def changed(statistics: JoinStatistics, source: int, **what: object) -> JoinStatistics:
    sources = list(statistics.sources)
    sources[source] = replace(sources[source], **what)  # type: ignore[arg-type]
    return replace(statistics, sources=tuple(sources))


@pytest.mark.parametrize(
    ("sql", "settings", "there"),
    [
        (THREE, {}, True),
        (THREE, {"replan": "off"}, False),
        (THREE, {"order": "A, B, C"}, False),
        (THREE, {"algorithm": "lazy", "reevaluation": "1 second"}, False),
        ("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", {}, False),
    ],
)
def test_only_plans_with_a_choice_are_reconsidered(
    sql: str,
    settings: dict[str, str],
    there: bool,  # noqa: FBT001
) -> None:
    assert (
        Replanner.of(plan(sql, **settings), Settings.of(**settings), Knowledge()) is not None
    ) is there


def test_rates_have_changed_when_one_leaves_its_band() -> None:
    found = replanner(replan_change="2")
    assert not found.has_changed([1.0, 1.0, 1.0]), "nothing was measured yet"
    found.consider(plan(), EVEN, 0)
    assert not found.has_changed(None)
    assert not found.has_changed([19.0, 5.1, 10.0])
    assert found.has_changed([20.0, 10.0, 10.0])
    assert found.has_changed([10.0, 10.0, 5.0])
    assert found.has_changed([10.0, 0.0, 10.0])


def test_the_rate_of_a_stored_table_never_changes() -> None:
    found = replanner()
    found.consider(plan(), changed(EVEN, 1, rate=0.0), 0)
    assert not found.has_changed([10.0, 0.0, 10.0])
    found.consider(plan(), changed(EVEN, 1, rate=0.0), 0)
    assert found.searches == 1


@pytest.mark.parametrize(
    ("source", "what", "searches"),
    [
        (0, {"rate": 14.0}, 1),
        (0, {"rate": 15.0}, 2),
        (1, {"rows": 155.0}, 1),
        (1, {"rows": 180.0}, 2),
        (2, {"distinct": (60.0,)}, 2),
        (2, {"distinct": (80.0,)}, 1),
    ],
)
def test_a_search_runs_when_a_statistic_has_changed(
    source: int, what: dict[str, object], searches: int
) -> None:
    found = replanner()
    for statistics in (EVEN, EVEN, changed(EVEN, source, **what)):
        found.consider(plan(), statistics, 0)
    assert found.searches == searches


def test_a_few_values_more_in_a_small_window_are_no_change() -> None:
    few = JoinStatistics((SourceStatistics(10.0, 5.0, (2.0,)),) * 3)
    found = replanner()
    for statistics in (few, changed(few, 0, rows=9.0, distinct=(8.0,))):
        found.consider(plan(), statistics, 0)
    assert found.searches == 1


def test_a_selectivity_that_has_changed_leads_to_a_search() -> None:
    edge = ((0, 0), (1, 0))
    found = replanner()
    for share in (0.01, 0.012, 0.02, 0.02):
        found.consider(plan(), replace(EVEN, edges=((edge, share),)), 0)
    assert found.searches == 2


def test_a_switch_happens_when_it_gains_enough_and_is_reported() -> None:
    uneven = changed(changed(EVEN, 1, distinct=(2.0,)), 2, rows=30.0)
    before = plan()
    still = replanner(replan_gain="1000")
    assert still.consider(before, uneven, 5) is None
    assert (still.searches, still.switches) == (1, [])
    found = replanner()
    after = found.consider(before, uneven, 5)
    assert after is not None
    assert plan_words(after) != plan_words(before)
    (switch,) = found.switches
    assert switch.work_before >= 1.2 * switch.work_after
    assert switch.to_dict() == {
        "at": "1970-01-01 00:00:00.000005",
        "from": list(plan_words(before)),
        "to": list(plan_words(after)),
        "predicted_work": [float(f"{switch.work_before:.4g}"), float(f"{switch.work_after:.4g}")],
    }
    assert found.consider(after, changed(uneven, 0, rate=16.0), 6) is None, (
        "the new plan is still the best"
    )
    assert found.searches == 2


def test_declarations_that_contradict_the_data_are_overruled_and_reported() -> None:
    declared = {
        "A": StreamStatistics(1000.0, 100.0),
        "B": StreamStatistics(11.0, 90.0),
        "C": StreamStatistics(10.0, 2.0),
    }
    found = replanner(declared)
    found.consider(plan(), EVEN, 0)
    assert [str(one) for one in found.overruled] == [
        "rate of stream A: declared 1,000, measured 10, which counts",
        "distinct of stream C: declared 2, measured 100, which counts",
    ]
    found.consider(plan(), changed(EVEN, 1, rate=1e6), 0)
    assert len(found.overruled) == 2, "streams that change later contradict nothing"


def test_a_filter_excuses_a_smaller_rate_and_not_a_larger_one() -> None:
    declared = dict.fromkeys("ABC", StreamStatistics(100.0, 100.0))
    filtered = plan(THREE.replace("WHERE", "WHERE A.k > 5 AND"))
    found = replanner(declared)
    found.consider(filtered, changed(EVEN, 2, rate=1e4), 0)
    assert [(one.stream, one.statistic) for one in found.overruled] == [
        ("B", "rate"),
        ("C", "rate"),
    ]
    found = replanner(declared)
    found.consider(filtered, changed(EVEN, 0, rate=1e4), 0)
    assert ("A", "rate") in [(one.stream, one.statistic) for one in found.overruled]


def test_a_window_with_fewer_rows_than_values_does_not_contradict() -> None:
    declared = dict.fromkeys("ABC", StreamStatistics(10.0, 5_000.0))
    found = replanner(declared)
    found.consider(plan(), changed(EVEN, 2, distinct=(20.0,)), 0)
    assert [(one.stream, one.statistic, one.measured) for one in found.overruled] == [
        ("C", "distinct", 20.0)
    ]
