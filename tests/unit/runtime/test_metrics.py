from __future__ import annotations

import json

import numpy as np
import pytest

from muntin.runtime.metrics import ResponseTimes, WorkMark, measured_between


def test_nothing_measured_is_zero() -> None:
    assert ResponseTimes().stats() == {"mean": 0.0, "p50": 0.0, "p95": 0.0, "p99": 0.0, "max": 0.0}
    times = ResponseTimes()
    times.add(1.0, 0.5, 0)
    assert times.count == 0


def test_results_of_one_arrival_are_weighted_by_their_number() -> None:
    times = ResponseTimes()
    times.add(10.0, 9.0, 99)
    times.add(10.0, np.array([0.0]), 1)
    assert times.count == 100
    stats = times.stats()
    assert stats["mean"] == pytest.approx((99 + 10) / 100)
    assert stats["p95"] == pytest.approx(1.0, rel=0.13)
    assert stats["max"] == 10.0


def test_percentiles_are_within_a_step_of_the_truth() -> None:
    waits = np.random.default_rng(3).exponential(0.01, 20_000)
    times = ResponseTimes()
    times.add(100.0, 100.0 - waits, len(waits))
    for share in (0.5, 0.95, 0.99):
        assert times.percentile(share) == pytest.approx(float(np.quantile(waits, share)), rel=0.13)
    assert times.percentile(1.0) <= times.longest == pytest.approx(float(waits.max()))


def test_merged_histograms_equal_a_single_one() -> None:
    waits = np.random.default_rng(4).exponential(0.1, 1_000)
    whole = ResponseTimes()
    whole.add(9.0, 9.0 - waits, len(waits))
    merged = ResponseTimes()
    for part in np.array_split(waits, 7):
        own = ResponseTimes()
        own.add(9.0, 9.0 - part, len(part))
        merged.merge(ResponseTimes.from_json(json.loads(json.dumps(own.to_json()))))
    merged.merge(ResponseTimes.from_json(json.loads(json.dumps(ResponseTimes().to_json()))))
    assert merged.stats() == pytest.approx(whole.stats())
    assert merged.count == 1_000


def test_clocks_that_run_back_count_as_no_wait() -> None:
    times = ResponseTimes()
    times.add(5.0, 6.0, 1)
    assert times.stats()["max"] == 0.0


def test_work_is_measured_between_two_instants_of_event_time() -> None:
    before, after = (
        WorkMark(1_000_000, {"comparisons": 10, "results": 3}),
        WorkMark(3_500_000, {"comparisons": 60, "results": 3}),
    )
    measured = measured_between(before, after)
    assert measured is not None
    assert (measured.since, measured.seconds, measured.counts) == (
        1_000_000,
        2.5,
        {"comparisons": 50, "results": 0},
    )
    assert (measured.per_second("comparisons"), measured.per_second("results")) == (20.0, 0.0)
    assert measured_between(before, WorkMark(1_000_000, after.counts)) is None
    assert measured_between(after, before) is None
