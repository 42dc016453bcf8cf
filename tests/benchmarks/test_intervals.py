"""The benchmark of [Golab03, Figure 4] on little data: counted work is checked, times are not."""

from __future__ import annotations

import pytest

from benchmarks.intervals import bench_intervals
from benchmarks.intervals_runs import (
    BUCKETS,
    FAST,
    FULL,
    QUICK,
    allocation_setups,
    allocations,
    interval_setups,
    make_workload,
)
from benchmarks.workload import run


def silent(_: str) -> None:
    """Ignore progress messages."""


def test_buckets_are_allocated_as_in_the_paper() -> None:
    assert allocations(12) == {
        "Equal": (12,) * 4,
        "1 to slow": (1, 1, 1, 45),
        "5 to slow": (5, 5, 5, 33),
        "10 to slow": (10, 10, 10, 18),
    }
    assert allocations(8)["1 to slow"][-1] == 29
    assert list(allocations(2)) == ["Equal", "1 to slow"]


def test_every_interval_divides_a_batch_so_that_its_end_is_no_further_evaluation() -> None:
    for scale in (FULL, QUICK):
        assert all(
            batch % interval == 0 for batch in scale.times.values() for interval in scale.intervals
        )


def test_scaling_rows_values_and_buckets_scales_only_nested_loop_comparisons() -> None:
    def predicted(times: int) -> list[float]:
        return [
            setup.predicted.comparisons - 1
            for setup in interval_setups(times, [])
            if setup.join in BUCKETS
        ]

    assert predicted(1) == pytest.approx([700, 350, 70, 700 / 30])
    assert predicted(10) == pytest.approx([7_000, 350, 70, 700 / 30])


def compared(algorithm: str, average: int) -> dict[str, float]:
    return {
        setup.join: setup.predicted.comparisons for setup in allocation_setups(algorithm, [average])
    }


def test_in_the_model_the_findings_of_the_paper_hold_for_general_lazy() -> None:
    general = compared("general lazy", 12)
    assert min(general, key=general.__getitem__) == "5 to slow"
    assert general["Equal"] > 1.7 * general["5 to slow"]
    assert compared("general lazy", 20)["10 to slow"] < compared("general lazy", 20)["5 to slow"]
    lazy = compared("lazy", 12)
    assert lazy["10 to slow"] < lazy["Equal"] < lazy["5 to slow"]


@pytest.mark.parametrize("algorithm", ["lazy", "general lazy"])
def test_comparisons_per_row_match_the_prediction(algorithm: str) -> None:
    workload = make_workload(FAST, 50, 100, 2)
    for setup in allocation_setups(algorithm, [12]):
        done = run(workload, setup.settings)
        assert done.counters["comparisons"] / done.rows == pytest.approx(
            setup.predicted.comparisons, rel=0.3
        ), setup.join


def test_the_report_has_both_halves_of_the_figure() -> None:
    report = bench_intervals(silent, quick=True)
    places = [(row["sweep"], row["join"]) for row in report.rows]
    assert places.count(("intervals, rates 1", "HASH30")) == 1 + len(QUICK.intervals)
    assert places.count(("allocation, general lazy", "10 to slow")) == len(QUICK.averages)
    assert {tuple(row) for row in report.rows} == {tuple(report.rows[0])}, (
        "a table has the same columns everywhere"
    )
    counted = [claim for claim in report.claims if "omparisons of" in claim.text]
    assert len(counted) == 2
    assert all(claim.holds for claim in counted)
    assert [plot.file for plot in report.plots] == [
        "intervals",
        "intervals-allocation-lazy",
        "intervals-allocation",
    ]
    assert [len(plot.series) for plot in report.plots] == [4, 4, 4]
