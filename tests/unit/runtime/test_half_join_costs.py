"""What probes and matches of each half join cost, and budgets that count them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.adapt import ProbeCosts
from muntin.planner.unit_costs import UnitCosts
from muntin.runtime.half_join_costs import half_join_costs
from muntin.runtime.overload import Overload

SECOND = 1_000_000
COSTS = UnitCosts(probe=20, chained=10, scanned=4, partial_match=40, sort=30, check=1)
SQL = (
    "SELECT A.ts AS a, B.ts AS b, C.ts AS c FROM A, B, C WHERE A.k = B.k AND B.v < C.v "
    "WINDOW 3 SECONDS"
)


def engine_of(**settings: object) -> tuple[muntin.Engine, muntin.StandingQuery]:
    engine = muntin.Engine(overload="adapt", tree="((A, B), C)", **settings)
    for name in "ABC":
        engine.stream(name, {"k": "bigint", "v": "bigint", "ts": "timestamp"}, time="ts")
    return engine, engine.query(SQL, name="q")


def control(engine: muntin.Engine) -> Overload:
    found = next(iter(engine.dataflow.joins())).overload
    assert isinstance(found, Overload)
    return found


def fed(seconds: int, at_once: int = 1, **settings: object) -> tuple[Any, list[object]]:
    """Return the stats after some seconds of rows, and the results."""
    engine, q = engine_of(**settings)
    random = np.random.default_rng(3)
    columns: dict[str, list[pa.Table]] = {name: [] for name in "ABC"}
    for second in range(seconds):
        for name, rate in (("A", 200), ("B", 100), ("C", 150)):
            times = second * SECOND + np.sort(random.integers(0, SECOND, rate))
            values = random.integers(0, 1000, rate) + (900 if name == "B" else 0)
            columns[name].append(
                pa.table(
                    {
                        "k": random.integers(0, 200, rate),
                        "v": values,
                        "ts": pa.array(times).cast(pa.timestamp("us")),
                    }
                )
            )
        if (second + 1) % at_once == 0 or second + 1 == seconds:
            for name, pieces in columns.items():
                engine.push(name, pa.concat_tables(pieces))
                pieces.clear()
            engine.advance((second + 1) * SECOND)
    return q.stats()["overload"], q.poll().to_pylist()


def test_an_index_costs_a_probe_a_scan_its_rows_and_a_match_what_it_makes() -> None:
    engine, _ = engine_of()
    tree = control(engine).plan.tree
    assert tree is not None
    found = half_join_costs(tree, COSTS)
    # A into B, B into A by index, C into A+B and A+B into C by scans
    assert found == ProbeCosts(
        probe=(1.0, 1.0, 0.3, 0.3),
        scanned=(0.0, 0.0, 0.5, 0.2),
        match=(2.5, 2.5, 1.5, 1.5),
    )


def test_budgets_count_the_work_of_scans_and_matches() -> None:
    measured, _ = fed(12, resources=20_000, probe_cost="measured")
    unit, _ = fed(12, resources=300)
    assert measured["overloaded"]
    assert measured["cost_per_probe"] > 5
    costs, budgets = measured["costs"], measured["budgets"]
    assert costs["A+B into C"] > 10 * costs["A into B"]
    assert measured["cost_per_probe"] <= max(costs.values())
    last = [rate for rate in budgets.values() if rate is not None]
    assert sum(last) < 20_000 / 5
    assert (unit["costs"], unit["cost_per_probe"]) == ({}, 1.0)


def test_the_same_rows_give_the_same_results_in_one_push_and_in_many() -> None:
    runs = [fed(9, at_once, resources=15_000, probe_cost="measured") for at_once in (1, 9)]
    assert runs[0][1]
    assert runs[0][1] == runs[1][1]
    assert runs[0][0]["decisions"] == runs[1][0]["decisions"]


def test_explain_shows_units_of_work() -> None:
    engine, q = engine_of(resources=5, probe_cost="measured")
    assert "5 units of work per second" in q.explain()
    assert "units per probe" in q.explain()
    del engine


@pytest.mark.parametrize("value", ["", "fast", "1"])
def test_other_costs_are_refused(value: str) -> None:
    with pytest.raises(muntin.SettingError, match="probe_cost"):
        muntin.Engine(probe_cost=value)
