"""The benchmarks of join orders on little data: counted work is checked, times are not."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from benchmarks import choice, orders, replan
from benchmarks.choice import (
    Case,
    Key,
    bench_choice,
    draw_case,
    follow,
    make_workload,
    orders_to_try,
)
from benchmarks.orders import CONFIGURATIONS, bench_orders, extreme_orders, table_5
from benchmarks.replan import SMALL, Change, bench_replan, best_order
from benchmarks.report import Figure
from benchmarks.workload import Run, Workload, run
from muntin.runtime.holdings import state_rows


def silent(_: str) -> None:
    """Ignore progress messages."""


# -- orders ----------------------------------------------------------------------------------------


def test_table_8_has_six_configurations_with_ratios_from_4_1_to_4_9() -> None:
    assert (
        len({tuple(sorted(one.settings.items())) for one in CONFIGURATIONS})
        == len(CONFIGURATIONS)
        == 6
    )
    ratios = [one.paper_best / one.paper_worst for one in CONFIGURATIONS]
    assert (round(min(ratios), 1), round(max(ratios), 1)) == (4.1, 4.9)


def test_the_windows_of_table_5_are_full_when_timing_begins() -> None:
    begun = table_5(100)
    engine = begun.engine()
    engine.query(begun.join.sql)
    for batch in begun.batches[: begun.filling]:
        for name, rows in batch.items():
            engine.push(name, rows)
    engine.advance(begun.ends[begun.filling - 1])
    assert list(state_rows(engine.dataflow).values()) == pytest.approx(
        [1000, 100, 200, 300], rel=0.2
    )


def test_comparisons_of_the_extreme_orders_differ_as_in_the_paper() -> None:
    best, worst, ratio = extreme_orders(table_5(300), {"join": "hash", "buckets": "5"})
    assert best == orders.PREDICTED_BEST
    assert worst.endswith("1")
    assert 4 < ratio < 8  # 90,000 to 16,000 in expectation; windows of a hundred rows scatter


def test_orders_reports_every_configuration_beside_the_papers() -> None:
    with patch.object(orders, "CONFIGURATIONS", CONFIGURATIONS[3:5]):
        report = bench_orders(silent, quick=True)
    assert [(row["join"], row["paper: best"], row["paper: worst"]) for row in report.rows] == [
        ("eager, hash", 11540, 2524),
        ("lazy 5, hash", 8420, 2041),
    ]
    for row in report.rows:
        assert float(row["ratio"]) == pytest.approx(
            float(row["rows/s"]) / float(row["rows/s, worst"]), rel=0.02
        )
    assert [claim.side for claim in report.claims] == ["at least", "at most"]
    assert report.claims[0].measured == min(float(row["ratio"]) for row in report.rows)


# -- replan ----------------------------------------------------------------------------------------


def test_another_order_is_best_after_the_change() -> None:
    change = Change()
    before = Change(rates=change.rates[::-1])
    assert best_order(change.after()).startswith("S4, S3")
    assert best_order(before.after()).startswith("S1, S2")


def test_replan_compares_three_queries_with_the_oracle() -> None:
    report = bench_replan(silent, quick=True)
    work = {row["query"]: float(row["probes and comparisons per row"]) for row in report.rows}
    changes = {row["query"]: row["order changes"] for row in report.rows}
    assert work["replanned"] <= 1.1 * work["planned for it"]
    assert work["not replanned"] > 5 * work["planned for it"]
    assert changes["replanned"] != 0
    assert changes["not replanned"] == changes["planned for it"] == 0
    assert len({row["results"] for row in report.rows}) == 1
    assert [(claim.bound, claim.side) for claim in report.claims] == [
        (0.9, "at least"),
        (1.1, "at most"),
    ]


def test_the_oracle_notices_a_result_that_is_missing() -> None:
    def losing(given: Workload, settings: dict[str, str]) -> Run:
        done = run(given, settings)
        object.__setattr__(done, "results", done.results.slice(1))
        return done

    with patch.object(replan, "run", losing), pytest.raises(AssertionError):
        replan.check_with_oracle(SMALL.workload())


# -- choice ----------------------------------------------------------------------------------------


def even(values: int) -> choice.Shares:
    return np.full(values, 1 / values)


CHAIN = Case(
    "chain",
    [10, 1, 5],
    [1, 2, 1],
    [Key("k0", {0: even(4), 1: even(2)}), Key("k1", {1: even(3), 2: even(3)})],
    [2, 0, 1],
    7,
)


def test_all_thirty_cases_are_feasible_and_cover_all_kinds() -> None:
    cases = [draw_case(number) for number in range(choice.CASES)]
    assert {(case.size, case.shape) for case in cases} == {
        (size, shape) for size in (3, 4, 5, 6) for shape in choice.SHAPES
    }
    assert all(case.within_reach() for case in cases)
    assert draw_case(17).rates == cases[17].rates


def test_expected_partners_of_a_row_follow_common_values_and_windows() -> None:
    """Stream 0 shares half its values with stream 1, whose two rows split them evenly.

    Stream 2's five rows have three values.
    """
    assert CHAIN.partners(0, [1]) == pytest.approx(2 * (2 * 1 / 4 * 1 / 2))
    assert CHAIN.partners(0, [1, 2]) == pytest.approx(0.5 * 5 / 3)
    assert CHAIN.partners(1, [0, 2]) == pytest.approx(10 / 4 * 5 / 3)


def test_an_order_is_followed_along_the_keys() -> None:
    assert follow(CHAIN, 0, [2, 1, 0]) == [0, 1, 2]
    assert follow(CHAIN, 1, [2, 0, 1]) == [1, 2, 0]
    assert follow(CHAIN, 0, [0, 2]) == [0]
    assert orders_to_try(CHAIN) == [
        "S0: S1, S2; S1: S0, S2; S2: S1, S0",
        "S0: S1, S2; S1: S2, S0; S2: S1, S0",
    ]


def test_orders_on_a_common_key_are_all_of_four_streams_and_24_of_more() -> None:
    for number, size in ((3, 4), (9, 6)):
        case = draw_case(number)
        assert (case.shape, case.size) == ("common", size)
        assert len(set(orders_to_try(case))) == 24


def test_rows_of_a_case_come_at_its_rates_with_its_values_and_in_its_order() -> None:
    made = make_workload(CHAIN, 1_600)
    assert list(made.join.windows.items()) == [
        ("S2", 1_000_000),
        ("S0", 1_000_000),
        ("S1", 2_000_000),
    ]
    assert made.join.where == "S0.k0 = S1.k0 AND S1.k1 = S2.k1"
    counts = {name: len(rows) for name, rows in made.streams.items()}
    assert (
        counts["S0"]
        == pytest.approx(10 * counts["S1"], abs=10)
        == pytest.approx(2 * counts["S2"], abs=2)
    )
    assert set(made.streams["S1"].column("k0").to_pylist()) == {0, 1}
    assert made.timed_rows == pytest.approx(1_600, rel=0.05)


@pytest.mark.parametrize("number", [0, 4])
def test_a_case_is_measured_against_all_its_orders(number: int) -> None:
    case = draw_case(number)
    row = choice.measure(case, 2_000, 1)
    assert (row["case"], row["orders"]) == (
        f"{case.size} streams, {case.shape}",
        len(orders_to_try(case)),
    )
    assert float(row["ratio"]) == pytest.approx(
        float(row["chosen ms"]) / float(row["best ms"]), rel=0.05
    )
    assert 0.2 < float(row["ratio of work"]) < 10


def test_choice_is_judged_by_its_worst_case() -> None:
    ratios = iter([1.0, 1.05, 1.31, 1.1])

    def measured(case: Case, timed_rows: int, repeats: int) -> dict[str, Figure]:
        assert (timed_rows, repeats) == (10_000, 3)
        return {"case": case.shape, "ratio": next(ratios), "ratio of work": 1.2}

    with patch.object(choice, "measure", measured):
        report = bench_choice(silent, quick=True)
    assert [(claim.measured, claim.holds) for claim in report.claims] == [
        (1.31, False),
        (1.075, True),
    ]
