"""Paper 4 (Kostowski and Claypool): WNL and WHJ, four invalidation strategies, counts against its formulas."""

from __future__ import annotations

import pyarrow as pa
import pytest

import muntin
from muntin.testing.generators import uniform_stream

STRATEGIES = ["probe", "probe_insert", "probe_all", "all"]
KEYS = 100
WINDOW = 30


def run(rate_a: int, rate_b: int, seconds: int, **settings: str) -> tuple[dict[str, int], float, pa.Table]:
    """Counted work, average number of stale rows held (sampled every second once windows are full), results."""
    engine = muntin.Engine(**settings)
    for name in "AB":
        engine.stream(name, {"k": "bigint", "v": "double", "ts": "timestamp"}, time="ts")
    q = engine.query(f"SELECT A.k, A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k WINDOW {WINDOW} SECONDS")
    streams = {"A": uniform_stream(rate_a * seconds, rate_a, KEYS, 1), "B": uniform_stream(rate_b * seconds, rate_b, KEYS, 2)}
    rates = {"A": rate_a, "B": rate_b}
    stale = []
    for second in range(seconds):
        for name, rows in streams.items():
            engine.push(name, rows.slice(second * rates[name], rates[name]))
        engine.advance((second + 1) * 1_000_000 - 1)
        if second >= WINDOW:
            held = q.stats()["stale_rows_held"]
            assert isinstance(held, int)
            stale.append(held)
    work = q.stats()["work"]
    assert isinstance(work, dict)
    return work, sum(stale) / len(stale), q.poll()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_strategies_give_the_results_of_our_own_expiry(strategy: str) -> None:
    expected = run(20, 10, 60)[2]
    assert len(expected) > 1_000
    for settings in ({"buckets": str(KEYS)}, {"buckets": "7"}, {"join": "nested_loop"}):
        assert run(20, 10, 60, expiry=strategy, **settings)[2].equals(expected)


def test_nested_loops_are_a_hash_join_of_one_bucket() -> None:
    nested, _, _ = run(20, 10, 60, join="nested_loop", expiry="probe_insert")
    hashed, _, _ = run(20, 10, 60, join="hash", buckets="1", expiry="probe_insert")
    assert nested == hashed


@pytest.mark.parametrize(("settings", "buckets"), [({"join": "nested_loop"}, 1), ({"buckets": "10"}, 10), ({"buckets": "100"}, 100)])
def test_scans_follow_equations_1_and_2(settings: dict[str, str], buckets: int) -> None:
    """Rows scanned a second with full windows: rate A * rate B * (window A + window B) / buckets."""
    rate_a, rate_b = 40, 20
    full = run(rate_a, rate_b, 90, expiry="probe_insert", **settings)[0]["comparisons"]
    filling = run(rate_a, rate_b, 60, expiry="probe_insert", **settings)[0]["comparisons"]
    assert (full - filling) / 30 == pytest.approx(rate_a * rate_b * 2 * WINDOW / buckets, rel=0.1)


@pytest.mark.parametrize("strategy", ["probe", "probe_insert"])
def test_invalidation_needs_one_comparison_more_than_it_finds_stale_rows(strategy: str) -> None:
    work, _, _ = run(20, 20, 60, expiry=strategy, buckets=str(KEYS))
    cleanings = work["expiry_checks"] - work["rows_expired"]
    arrivals = work["rows_inserted"]
    # One last comparison a cleaning, unless the bucket was empty or became so.
    assert 0 < cleanings <= arrivals * (2 if strategy == "probe_insert" else 1)
    assert work["rows_expired"] > 0


def test_stale_rows_build_up_as_the_formulas_say() -> None:
    """In all buckets of B: N * rate B / rate A under probe, N * rate B / (rate A + rate B) under probe and insert."""
    rate_a, rate_b = 4, 40
    _, probe, _ = run(rate_a, rate_b, 150, expiry="probe", buckets=str(KEYS))
    _, both, _ = run(rate_a, rate_b, 150, expiry="probe_insert", buckets=str(KEYS))
    _, greedy, _ = run(rate_a, rate_b, 150, expiry="all", buckets=str(KEYS))
    sides = [(rate_a, rate_b), (rate_b, rate_a)]
    assert probe == pytest.approx(sum(KEYS * own / other for other, own in sides), rel=0.25)
    assert both == pytest.approx(sum(KEYS * own / (own + other) for other, own in sides), rel=0.25)
    assert greedy < both < probe


def test_greedy_strategies_pay_a_comparison_for_every_bucket() -> None:
    work = {strategy: run(10, 10, 60, expiry=strategy, buckets=str(KEYS))[0]["expiry_checks"] for strategy in STRATEGIES}
    assert work["probe"] < work["probe_insert"] < work["probe_all"] < work["all"]
    assert work["all"] > 10 * work["probe_insert"]
