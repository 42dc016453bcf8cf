"""The workload of [HammadTR]: selectivities, delays on the simulated clock, wall-clock errors."""

from __future__ import annotations

import json
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks import pipelines
from benchmarks.pipelines import STRATEGIES, Scale, bench_pipelines, cases
from benchmarks.pipelines_replay import TICK, replay, seconds_to, wrong_by_wall_clock
from benchmarks.pipelines_workload import QUERIES, SECOND, WINDOW, Case

TINY = Scale(
    rows=20,
    rates=(10,),
    depths=(3,),
    stores=(1_000,),
    selectivities=(1.0,),
    load=200,
    load_seconds=20,
    marks=(100, 200),
    batch=100,
    repeats=1,
)


def silent(_: str) -> None:
    """Ignore progress messages."""


def test_no_two_rows_have_the_same_time_and_gaps_are_exponential() -> None:
    case = Case("Q2", 1_000, 10, depth=3)
    times = [rows.column("ts").cast(pa.int64()).to_numpy() for rows in case.streams.values()]
    assert len(np.unique(np.concatenate(times))) == 3 * 70_000
    gaps = np.diff(times[0])
    assert gaps.mean() == pytest.approx(SECOND / 1_000, rel=0.02)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.02)


def test_selectivities_are_those_of_the_paper() -> None:
    sales = Case("Q1", 1_000, 10).streams["Sales_1"]
    passed = pc.mean(pc.greater_equal(sales.column("ItemID"), 75).cast(pa.float64())).as_py()
    assert passed == pytest.approx(0.25, abs=0.01)
    pair = Case("Q2", 100, 60)
    left, right = (
        rows.slice(0, int(100 * WINDOW)).column("ItemID") for rows in pair.streams.values()
    )
    assert pc.mean(pc.is_in(left, right).cast(pa.float64())).as_py() == pytest.approx(0.6, abs=0.02)
    assert "S1.Price > 15" in pair.sql


def test_stores_vary_apart_from_items() -> None:
    few = Case("Q3", 100, 10, stores=10).streams["Sales_1"]
    assert pc.count_distinct(few.column("StoreID")).as_py() == 10
    assert pc.count_distinct(few.column("ItemID")).as_py() == 100


def test_a_number_of_stores_that_never_changes_has_no_delay() -> None:
    delays = replay(Case("Q3", 40, 5, stores=2), "hybrid")
    assert delays.results == 0
    assert np.isnan(delays.average)


def test_delays_follow_from_rows_and_ticks() -> None:
    """Delays end within a tick plus work when time drives expiry, otherwise with the next row."""
    case = Case("Q1", 5, 4, selectivity=1.0)
    prompt, late = replay(case, "negative"), replay(case, "input")
    assert 0 < prompt.average < prompt.longest < TICK / 1_000 + 500
    assert late.longest > 10 * TICK / 1_000
    assert late.results <= prompt.results
    changes = prompt.changes.column("_ts").cast(pa.int64()).to_numpy()
    assert changes.min() > WINDOW * SECOND


def test_a_wall_clock_gives_results_that_were_never_right() -> None:
    """Of two rows within three ticks, the first is counted after the second has already come."""
    wrong, results = wrong_by_wall_clock(Case("Q1", 40, 20, selectivity=1.0))
    assert 0 < wrong < results


def test_full_load_ends_with_the_last_mark() -> None:
    seconds = seconds_to(Case("Q1", 200, 20), "hybrid", (50, 100), 50)
    assert 0 < seconds[0] <= seconds[1]
    with pytest.raises(AssertionError, match="give it more rows"):
        seconds_to(Case("Q1", 200, 1), "hybrid", (10**9,), 50)


def test_all_experiments_of_the_paper_are_there() -> None:
    found = list(cases(Scale()))
    assert [
        (varied, case.query) for experiment, varied, case in found if experiment == "queries"
    ] == [(name, name) for name in QUERIES]
    assert [case.rate for experiment, _, case in found if experiment == "rates, Q3"] == [
        5,
        10,
        20,
        40,
    ]
    assert [case.depth for experiment, _, case in found if experiment == "depth, Q2"] == [
        2,
        3,
        4,
        5,
    ]
    selectivities = [
        case.selectivity for experiment, _, case in found if experiment == "selectivity, Q1"
    ]
    assert (selectivities[0], selectivities[-1]) == (0.1, 1.0)


def test_the_report_has_every_strategy_its_claims_and_plots() -> None:
    with patch.object(pipelines, "_QUICK", TINY):
        report = bench_pipelines(silent, quick=True)
    rows = [row for row in report.rows if row["experiment"] == "queries"]
    assert [(row["case"], row["strategy"]) for row in rows] == [
        (query, name) for query in QUERIES for name in STRATEGIES.values()
    ]
    assert [row["case"] for row in report.rows if row["strategy"] == "Clock Triggered"] == list(
        QUERIES
    )
    assert [claim.bound for claim in report.claims] == [10.0, 10.0, 10.0, 1.0]
    delay = {(row["case"], row["strategy"]): float(row["average ms"]) for row in rows}
    ratios = [delay[query, "Input Triggered"] / delay[query, "Hybrid"] for query in QUERIES]
    assert report.claims[2].measured == pytest.approx(min(ratios), abs=0.05)
    reported = json.loads(report.to_json())
    assert [one["case"] for one in reported["details"]] == list(QUERIES)
    assert all(len(one["hybrid over negative, by run"]) == 1 for one in reported["details"])
    stores = [row for row in report.rows if row["experiment"] == "rates, Q3, 1,000 stores"]
    assert {STRATEGIES[name] for name in ("probing", "negative", "hybrid")} <= {
        row["strategy"] for row in stores
    }
    assert {plot["file"] for plot in reported["plots"]} >= {
        "pipelines-queries.svg",
        "pipelines-depth-q2.svg",
        "pipelines-load-q4.svg",
    }
