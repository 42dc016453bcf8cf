"""The counts of levels: sums of weights as whole numbers that kernels can compare exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest

from muntin.model.settings import Scheduler
from muntin.schedule.levels import level_counts
from muntin.testing.schedule_trace import ScheduleRow, Setup, Trace, Viewer
from muntin.testing.schedules import simulate

ONE = Fraction(1)


@pytest.mark.parametrize("weight", ["1", "3", "0.25"])
def test_under_equal_weights_a_level_counts_its_queries(weight: str) -> None:
    equal = Fraction(weight)
    assert level_counts([[equal] * 2, [equal], [equal] * 4]) == (2, 1, 4)


def test_counts_have_the_ratios_of_the_sums_of_weights() -> None:
    assert level_counts([[ONE, Fraction("0.5")], [Fraction("0.1")]]) == (15, 1)
    assert level_counts([[Fraction(2, 3)], [Fraction(1, 2)]]) == (4, 3)


def test_counts_that_would_be_too_large_are_rounded_and_stay_positive() -> None:
    counts = level_counts([[Fraction("0.000001")], [Fraction(10**6)] * 3, [Fraction(1, 3)]])
    assert min(counts) == 1
    assert sum(counts) < 2**31
    assert counts[1] > 2**30


def busy(weight: int) -> Trace:
    """Return a run in which rows of both streams come faster than windows are scanned."""
    history = [ScheduleRow(number % 2, number, 1) for number in range(40)]
    new = [
        ScheduleRow(number % 2, number, 1, arrival=8 * (number - 40)) for number in range(40, 60)
    ]
    queries = (
        Viewer("small", (8, 8)),
        Viewer("middle", (16, 16)),
        Viewer("large", (40, 40), weight),
    )
    return simulate(Setup((*history, *new), queries), Scheduler.MQT)


def test_a_heavy_weight_draws_mqt_to_its_window_and_its_mean_response_falls() -> None:
    means = {}
    for weight in (1, 9):
        trace = busy(weight)
        times = {name: trace.response_times(name) for name in ("small", "middle", "large")}
        means[weight] = {name: Fraction(sum(all_)) / len(all_) for name, all_ in times.items()}
    assert means[9]["large"] < means[1]["large"]
    assert means[9]["small"] > means[1]["small"]


def test_a_weight_counts_like_as_many_queries() -> None:
    heavy = busy(9).schedule
    crowd = Setup(
        busy(1).setup.rows,
        (*busy(1).setup.queries, *(Viewer(f"more{number}", (40, 40)) for number in range(8))),
    )
    assert simulate(crowd, Scheduler.MQT).schedule == heavy
