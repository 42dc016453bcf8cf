"""[Golab03, section 5.1]: every printed cost of Tables 5, 6 and 7, and the heuristics' choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import muntin
from muntin.planner.lazy_orders import WindowStatistics, by_selectivity, by_window_size
from muntin.testing.join_counts import TABLE_5, TABLE_6, TABLE_7, PaperStream
from muntin.testing.join_counts import statistics_of as windows
from muntin.testing.paper_costs.multi_join import eager_cost
from muntin.testing.paper_costs.order_search import augmented, exhaustive

Streams = Sequence[PaperStream]


def places(order: str) -> tuple[int, ...]:
    return tuple(int(digit) - 1 for digit in order)


@pytest.mark.parametrize(
    ("streams", "order", "printed"),
    [
        (TABLE_5, "1234", 16_000),
        (TABLE_5, "2134", 19_600),
        (TABLE_6, "2134", 80_400),
        (TABLE_6, "1234", 120_000),
        (TABLE_7, "3412", 49_542),
        (TABLE_7, "3142", 47_977),
        (TABLE_7, "3124", 51_954),
        (TABLE_7, "1234", 68_200),
        (TABLE_7, "2134", 79_000),
    ],
)
def test_printed_costs_are_exact(streams: Streams, order: str, printed: int) -> None:
    assert round(eager_cost(places(order), windows(streams))) == printed


@pytest.mark.parametrize(("order", "about"), [("2314", 123_000), ("2341", 248_000)])
def test_costs_of_table_6_that_are_printed_roughly(order: str, about: int) -> None:
    assert eager_cost(places(order), windows(TABLE_6)) == pytest.approx(about, rel=0.005)


def test_ranks_and_worst_orders() -> None:
    ranks = [candidate.order for candidate in exhaustive(windows(TABLE_5))]
    assert ranks[0] == places("1234")
    assert ranks[4] == places("2134")  # fifth best
    assert exhaustive(windows(TABLE_5))[-1].cost == pytest.approx(
        90_000, rel=0.04
    )  # "nearly 90000"
    assert exhaustive(windows(TABLE_6))[-1].cost == pytest.approx(
        650_000, rel=0.01
    )  # "nearly 650000"
    every = exhaustive(windows(TABLE_7))
    assert round(sum(candidate.cost for candidate in every) / len(every)) == 63_362


@pytest.mark.parametrize(
    ("streams", "best"), [(TABLE_5, "1234"), (TABLE_6, "2134"), (TABLE_7, "3142")]
)
def test_the_augmented_heuristic_finds_the_optimal_order(streams: Streams, best: str) -> None:
    found = augmented(windows(streams))
    assert found[0].order == places(best)
    assert found[0].cost == pytest.approx(exhaustive(windows(streams))[0].cost)
    assert len(found) < 24


def test_the_order_by_selectivity_alone_misses_the_optimum_of_tables_6_and_7() -> None:
    assert by_selectivity(windows(TABLE_5)) in {places("1234"), places("2134")}
    assert by_selectivity(windows(TABLE_6)) in {
        places("2314"),
        places("2341"),
        places("3214"),
        places("3241"),
    }
    assert by_selectivity(windows(TABLE_7)) in {places("3412"), places("4312")}


@pytest.mark.parametrize(
    ("streams", "best", "cost"),
    [(TABLE_5, "1234", "16,000"), (TABLE_6, "2134", "80,400"), (TABLE_7, "3142", "47,977")],
)
def test_a_query_uses_the_optimum_of_the_paper_or_cheaper_orders_per_origin(
    streams: Streams, best: str, cost: str
) -> None:
    engine = muntin.Engine(join="nested_loop")
    for number, stream in enumerate(streams, 1):
        options = f"time = 'ts', rate = {stream.rate}, distinct = {stream.distinct}"
        engine.execute(f"CREATE STREAM S{number} (attr BIGINT, ts TIMESTAMP) WITH ({options})")
    froms = ", ".join(
        f"S{number} [RANGE {stream.window} SECONDS]" for number, stream in enumerate(streams, 1)
    )
    q = engine.query(
        f"SELECT S1.attr FROM {froms} WHERE S1.attr = S2.attr AND S2.attr = S3.attr AND S3.attr = "
        "S4.attr"
    )
    order = ", ".join(f"S{digit}" for digit in best)
    assert (
        f"order {order}: {cost} comparisons per second predicted" in q.explain()
        or f"instead of {order}: {cost}\n" in q.explain()
    )
    prediction: Any = q.plan()["join"]
    assert prediction["prediction"]["comparisons_a_second"] <= exhaustive(windows(streams))[0].cost


def test_a_declared_statistic_that_makes_no_sense_is_refused_at_once() -> None:
    with pytest.raises(muntin.SqlError, match="line 1, column 1: rate cannot be 'much'"):
        muntin.Engine().execute(
            "CREATE STREAM S (attr BIGINT, ts TIMESTAMP) WITH (rate = 'much', distinct = 5)"
        )


def test_equal_numbers_of_values_are_ordered_by_window_size_and_buckets_count() -> None:
    plain = [WindowStatistics(1, rows, 50) for rows in (300.0, 100.0, 200.0)]
    assert by_window_size(plain) == (1, 2, 0)
    assert eager_cost((1, 2, 0), plain) == pytest.approx(exhaustive(plain)[0].cost)
    bucketed = [
        WindowStatistics(1, 300, 50, 10),
        WindowStatistics(1, 100, 50),
        WindowStatistics(1, 200, 50),
    ]
    assert by_window_size(bucketed) == (0, 1, 2)
