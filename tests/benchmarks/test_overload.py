"""The workload of [Mukherji11]: rates, selectivities, models, optimum, report."""

from __future__ import annotations

import json
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks import overload, overload_workload
from benchmarks.overload import bench_overload
from benchmarks.overload_executed import MANY, STALE_LAB, Scale, over_optimum
from benchmarks.overload_model import (
    FEW_MATCHES,
    INNER_STATES,
    LEVELS,
    TABLE_3,
    measure_curves,
    measure_freshness,
    measure_leaders,
)
from benchmarks.overload_plans import Drawn
from benchmarks.overload_run import Setup, run
from benchmarks.overload_workload import LAB_GROUPS, SECOND, TREES, Chain, Lab

TINY = Scale(
    12, (0.4,), 600, ("jaqpot", "equal_hj"), plans=1, models=2, analyses=2, many=100, filled=1
)


def silent(_: str) -> None:
    """Ignore progress messages."""


def equal_pairs(left: pa.Array, right: pa.Array) -> float:
    """Return the fraction of pairs that are equal."""
    return float(np.mean(np.equal.outer(left.to_numpy(), right.to_numpy())))


def test_selectivities_are_switched_and_rates_kept() -> None:
    load = Chain(20, ((0, (0.01, 0.05, 0.1)), (10, (0.1, 0.01, 0.05))))
    for name, rows in load.streams.items():
        assert len(rows) == pytest.approx(2_000, rel=0.1), name
        assert pc.min(rows.column("ts").cast(pa.int64())).as_py() >= 0
    for join, (left, right) in enumerate((("A", "B"), ("B", "C"), ("C", "D"))):
        for late, wanted in ((False, (0.01, 0.05, 0.1)), (True, (0.1, 0.01, 0.05))):
            halves = [
                rows.filter(
                    pa.array((rows.column("ts").cast(pa.int64()).to_numpy() >= 10 * SECOND) == late)
                )
                for rows in (load.streams[left], load.streams[right])
            ]
            assert equal_pairs(halves[0].column("n"), halves[1].column("p")) == pytest.approx(
                wanted[join], rel=0.1
            )


def test_sensors_come_in_five_groups_at_the_rate_asked_for() -> None:
    with patch.object(overload_workload, "LAB_FOLDER", overload_workload.LAB_FOLDER / "nowhere"):
        load = Lab(2_000)
        assert not load.real
        streams = load.streams
    assert set(streams) == set(LAB_GROUPS)
    assert sum(len(rows) for rows in streams.values()) == 2_000
    last = max(pc.max(rows.column("ts").cast(pa.int64())).as_py() for rows in streams.values())
    assert last / SECOND == pytest.approx(2_000 / load.rate, rel=0.01)


@pytest.mark.parametrize("shape", TREES)
def test_jaqpot_is_the_optimum_that_keeps_freshness(shape: str) -> None:
    curves = measure_curves(TABLE_3, shape, 4, 1.5)
    assert curves.of_optimum("optimum that keeps freshness") == pytest.approx(1.0, abs=0.02)
    assert curves.over_best() > 1
    assert all(len(shares) == len(LEVELS) for shares in curves.shares.values())
    assert curves.shares["grepp"] == pytest.approx(curves.shares["optimum"])


def test_sizes_of_inner_states_decide_which_heuristic_leads() -> None:
    rows = measure_leaders(4)
    assert len(rows) == len(INNER_STATES) * len(TREES)
    assert len({row["leaders"] for row in rows}) > 1
    assert all(0 < float(row["equal_hj"]) <= 1 for row in rows)


def test_longer_freshness_costs_less() -> None:
    shares = [
        float(row["share of resources"]) for row in measure_freshness(FEW_MATCHES, "linear", 6)
    ]
    assert shares == sorted(shares, reverse=True)


def test_a_run_stays_within_its_resources_and_counts_its_work() -> None:
    load = Chain(8, ((0, (0.01, 0.01, 0.05)),))
    full = run(load, Setup(TREES["linear"], state_rows=25))
    ran = run(load, Setup(TREES["linear"], state_rows=25, resources=0.3 * full.probes(2)))
    assert 0 < ran.results() < full.results()
    assert ran.probes(2) <= 0.3 * full.probes(2) * 1.01
    assert full.model(2, 8).productivity[0] == pytest.approx(1.0, rel=0.3)
    assert sum(second.stale for second in ran.seconds) == 0
    for begin in range(2, 8):
        any_budgets, fresh = over_optimum(ran, full, begin, 8)
        assert 0 < any_budgets <= fresh * (1 + 1e-9)
        assert any_budgets <= 1 + 1e-6, "nothing is better than the optimum"


@pytest.mark.parametrize("shape", TREES)
def test_random_plans_have_the_statistics_they_were_drawn_with(shape: str) -> None:
    drawn = Drawn.at_random(shape, np.random.default_rng(7), 1)
    ran = run(
        drawn.load, Setup(TREES[shape], freshness=100.0, state_rows=drawn.state_rows)
    )  # all states are full
    found = ran.model(drawn.begin, len(ran.seconds))
    assert found.rates == pytest.approx(drawn.model.rates, rel=0.2)
    assert found.productivity == pytest.approx(drawn.model.productivity, rel=0.3)
    assert found.own == drawn.model.own


def test_the_report_has_all_parts() -> None:
    with patch.object(overload, "QUICK", TINY):
        report = bench_overload(silent, quick=True)
    assert all(row.keys() == report.rows[0].keys() for row in report.rows), (
        "the tables of the README want the same columns"
    )
    parts = {str(row["part"]) for row in report.details}
    assert {
        "models",
        "resources for freshness",
        "switched selectivities",
        "executed",
        "random plans",
        "freshness could be kept",
        "leading heuristic",
        "stale results, counted",
    } <= parts
    assert json.loads(report.to_json())["name"] == "overload"
    switched = [row for row in report.details if row["part"] == "switched selectivities"]
    assert {(row["plan"], row.get("parameters")) for row in switched} == {
        (shape, kind) for shape in TREES for kind in (None, MANY)
    }
    assert f"five groups, {STALE_LAB}" in {row["plan"] for row in report.details}
    stale = [claim for claim in report.claims if "stale" in claim.text]
    assert stale
    assert all(claim.holds for claim in stale)
