"""Random plans with time windows: what is compared, and how certain a ratio is."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.overload_windows import KINDS, draw_plan, ratio_error, ratio_of
from benchmarks.overload_windows_bench import judge_windows
from benchmarks.report import Figure


def test_plans_with_rare_matches_are_not_dropped() -> None:
    random = np.random.default_rng(5)
    plans = [draw_plan(kind, random) for kind in KINDS for _ in range(40)]
    assert min(min(plan.model.productivity) for plan in plans) < 0.1


def test_the_error_of_a_ratio_is_that_of_repeated_runs() -> None:
    random = np.random.default_rng(1)
    pairs = [(random.poisson(50, 100), random.poisson(50, 100)) for _ in range(300)]
    ratios = [ratio_of(float(one.sum()), float(other.sum())) for one, other in pairs]
    errors = [ratio_error(one.tolist(), other.tolist()) for one, other in pairs]
    assert np.mean(errors) == pytest.approx(np.std(ratios), rel=0.2)


def test_no_results_at_all_are_a_tie_and_some_are_not() -> None:
    assert ratio_of(0.0, 0.0) == 1
    assert ratio_of(3.0, 0.0) > 1
    assert ratio_of(0.0, 3.0) == 0


def test_a_plan_below_the_bound_fails_the_claim() -> None:
    good: dict[str, Figure] = {"kind": "linear", "seed": 1, "parameters": "one key"}
    good |= {"over best, computed": 1.0, "over best, executed": 1.5}
    good |= {"standard error": 0.01, "over long search": 1.0}
    bad = good | {"over best, executed": 0.9, "standard error": 0.02}
    noisy = bad | {"standard error": 0.1}
    summary, claims = judge_windows([good, bad, noisy])
    executed = next(row for row in summary if row["jaqpot"] == "over best, executed")
    assert (executed["below 0.95"], executed["clearly below"]) == (2, 1)
    assert [claim.holds for claim in claims] == [True, False, True, True]
