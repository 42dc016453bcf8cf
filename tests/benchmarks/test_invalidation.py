"""The benchmark of [Kostowski06] on little data: counted work is checked, times are not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks.invalidation import QUICK, bench_invalidation
from benchmarks.invalidation_found import STRATEGIES
from benchmarks.invalidation_runs import (
    Case,
    Measured,
    UnitCosts,
    fit_costs,
    make_workload,
    measure,
    sample_held,
)
from benchmarks.workload import run
from muntin.model.settings import Expiry

SMALL = Case((20, 80), buckets=20)


def silent(_: str) -> None:
    """Ignore progress messages."""


def test_a_bare_run_compares_the_same_rows_without_building_results() -> None:
    whole, bare = (
        run(make_workload(SMALL.rates, SMALL.values, bare=bare), SMALL.settings)
        for bare in (False, True)
    )
    assert len(whole.results) > 1_000
    assert len(bare.results) == 0
    for counter in ("rows_inserted", "comparisons", "expiry_checks"):
        assert whole.counters[counter] == bare.counters[counter] > 0


def test_only_the_second_half_minute_is_timed_in_one_batch_on_full_windows() -> None:
    workload = make_workload((10, 40), 100, bare=False)
    assert [sum(map(len, batch.values())) for batch in workload.batches] == [1_500, 1_500]
    assert workload.filling == 1
    assert run(workload, {}).rows == 1_500


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_model_predicts_what_is_counted(strategy: Expiry) -> None:
    case = replace(SMALL, strategy=strategy)
    found = measure([case], 1)[0]
    assert found.counters["rows_inserted"] == case.predicted.rows
    assert found.counters["comparisons"] == pytest.approx(case.predicted.comparisons, rel=0.05)
    assert found.counters["expiry_checks"] == pytest.approx(case.predicted.checks, rel=0.05)
    assert found.counters["matches"] == pytest.approx(case.predicted.results, rel=0.05)


def test_cases_timed_in_alternation_get_the_same_rows() -> None:
    with pytest.raises(AssertionError, match="the same rows"):
        measure([SMALL, replace(SMALL, values=7)], 1)


def made_up(case: Case, costs: UnitCosts) -> Measured:
    """Return the figures that a correct model predicts."""
    return Measured(
        case, {}, *([costs.seconds(case.predicted, bare=bare)] * 3 for bare in (False, True))
    )


CASES = [
    Case((50, 50 * ratio), 100, buckets, strategy)
    for ratio in (1, 10)
    for buckets in (1, 100)
    for strategy in STRATEGIES
]


def test_unit_costs_are_found_from_times() -> None:
    costs = UnitCosts(1e6, 300, 7, 2, 50)
    assert list(
        vars(fit_costs([made_up(case, costs) for case in CASES])).values()
    ) == pytest.approx([1e6, 300, 7, 2, 50])


def test_no_unit_cost_is_negative() -> None:
    found = fit_costs([made_up(case, UnitCosts(1e6, 300, 7, -0.001, 50)) for case in CASES])
    assert found.check == 0
    assert found.scan == pytest.approx(7, rel=0.1)


def test_rows_held_are_sampled_every_two_seconds() -> None:
    held = {
        strategy: sample_held(Case((5, 200), strategy=strategy))
        for strategy in (Expiry.PROBE, Expiry.ALL)
    }
    for samples in held.values():
        assert [second for second, _, _ in samples] == list(range(2, 61, 2))
        assert [inside for _, _, inside in samples] == [
            200 * min(second, 30) for second in range(2, 61, 2)
        ]
    assert all(rows == inside for _, rows, inside in held[Expiry.ALL])
    assert held[Expiry.PROBE][-1][1] > 1.3 * held[Expiry.ALL][-1][1]


def test_the_report_has_all_figures_of_the_paper() -> None:
    report = bench_invalidation(silent, quick=True)
    figures = [str(row["figure"])[0] for row in report.rows]
    assert {figure: figures.count(figure) for figure in "45678"} == {
        "4": 4,
        "5": 4,
        "6": 4,
        "7": 8,
        "8": 4,
    }
    assert {tuple(row) for row in report.rows} == {tuple(report.rows[0])}, (
        "a table has the same columns everywhere"
    )
    flat = [row for row in report.rows if str(row["figure"]).startswith("5")]
    comparisons = [float(row["comparisons"]) for row in flat]
    assert comparisons[0] > 9 * comparisons[1] > 9 * comparisons[2]
    assert comparisons[-1] == comparisons[-2]
    counted = [
        claim
        for claim in report.claims
        if any(word in claim.text for word in ("omparisons", "checks", "Figure 8"))
    ]
    assert len(counted) == 6
    assert all(claim.holds for claim in counted)
    assert len({plot.file for plot in report.plots}) == 6
    assert [len(plot.series) for plot in report.plots] == [6, 3, len(QUICK.values), 4, 4, 4]
    reported = json.loads(report.to_json())
    assert reported["details"][0]["unit costs, ns"]["scan"] >= 0
