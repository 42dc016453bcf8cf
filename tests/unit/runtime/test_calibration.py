"""Costs measured on this machine are positive and near the usual ones, even with a bad clock."""

from __future__ import annotations

from dataclasses import fields, replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.planner.unit_costs import DEFAULT_COSTS, UnitCosts
from muntin.runtime.calibration import Timed, bounded, calibrated_costs

NAMES = [field.name for field in fields(UnitCosts)]


def assert_reasonable(costs: UnitCosts) -> None:
    for name in NAMES:
        usual = getattr(DEFAULT_COSTS, name)
        assert 0 < usual / 5 <= getattr(costs, name) <= usual * 5, name


def test_all_costs_here_are_positive_and_measured_once() -> None:
    costs = calibrated_costs()
    assert_reasonable(costs)
    assert calibrated_costs() is costs
    assert costs != DEFAULT_COSTS


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, st.floats(-1e9, 1e9))))
def test_no_figure_leaves_its_bounds(figures: dict[str, float]) -> None:
    assert_reasonable(bounded(UnitCosts(**figures)))


def test_a_reasonable_figure_is_kept_and_one_that_is_not_positive_gets_the_default() -> None:
    odd = replace(
        DEFAULT_COSTS,
        probe=DEFAULT_COSTS.probe * 2,
        chained=-4.0,
        scanned=0.0,
        insert=1e9,
        partial_match=1e-9,
    )
    found = bounded(odd)
    assert found.probe == odd.probe
    assert (found.chained, found.scanned) == (DEFAULT_COSTS.chained, DEFAULT_COSTS.scanned)
    assert (found.insert, found.partial_match) == (
        DEFAULT_COSTS.insert * 5,
        DEFAULT_COSTS.partial_match / 5,
    )


def test_a_stopped_clock_does_no_harm() -> None:
    with patch("muntin.runtime.calibration.time.thread_time_ns", lambda: 0):
        assert_reasonable(calibrated_costs.__wrapped__())


def test_costs_are_those_of_each_thing_counted() -> None:
    short, long = Timed(100.0, [10, 0]), Timed(400.0, [25, 0])
    assert long.per(0) == 16.0
    assert long.more_per(0, short) == 20.0
    assert long.per(1) == pytest.approx(400.0), "nothing was counted: no division by it"
