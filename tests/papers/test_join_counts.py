"""[Golab03, sections 4 to 6]: joins do the work that the cost models predict, within 10 %."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pyarrow.compute as pc
import pytest

from muntin.testing.join_cases import Group, groups
from muntin.testing.join_counts import (
    TABLE_5,
    TABLE_6,
    PaperStream,
    count_work,
    make_streams,
    order_setting,
    statistics_of,
)
from muntin.testing.paper_costs.lazy_join import lazy_work, naive_work

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "join_cost_table.py"))
PAGE = (ROOT / "docs" / "design" / "join-orders.md").read_text(encoding="utf-8")
EVERY = 4 if os.environ.get("MUNTIN_PROFILE", "fast") == "fast" else 1
"""While writing, one case in four is counted."""


@pytest.mark.parametrize("group", groups(), ids=lambda group: group.name)
def test_counts_are_within_ten_percent_of_the_prediction_and_on_the_page(group: Group) -> None:
    for case, counted in group.count(EVERY):
        assert counted.comparisons == pytest.approx(case.predicted.comparisons, rel=0.1), case.name
        assert counted.scanned == pytest.approx(case.predicted.scanned, rel=0.1), case.name
        assert SCRIPT["line"](case, counted) in PAGE, "run python scripts/join_cost_table.py"


def test_each_table_has_more_than_ten_orders_from_the_best_to_the_worst() -> None:
    costs: dict[str, dict[str, float]] = {}
    for group in groups()[:-1]:
        found = costs.setdefault(group.name[: len("Table 5")], {})
        found.update((case.settings["order"], case.predicted.comparisons) for case in group.cases)
    for found in costs.values():
        assert len(found) == 13
        assert list(found.values()) == sorted(found.values())
    assert {
        name: (round(min(found.values())), round(max(found.values())))
        for name, found in costs.items()
    } == {
        "Table 5": (16_000, 86_850),
        "Table 6": (80_400, 646_050),
        "Table 7": (47_977, 79_000),
    }


def test_new_rows_of_a_fast_stream_come_first_here_even_at_long_intervals() -> None:
    """Unlike in [Golab03, Figure 3(b)], a walk ends with the window, so extra rows cost nothing."""
    streams = [*[PaperStream(1, 100, 50)] * 3, PaperStream(10, 100, 50)]
    windows, rows = statistics_of(streams), make_streams(streams, 600, 1)
    last = (0, 1, 2, 3)
    counted = {
        algorithm: count_work(
            streams,
            rows,
            600,
            join="nested_loop",
            algorithm=algorithm,
            reevaluation="50 seconds",
            order=order_setting(last),
        ).comparisons
        for algorithm in ("lazy", "general_lazy")
    }
    assert counted["lazy"] == pytest.approx(lazy_work(last, windows, 50).comparisons, rel=0.1)
    assert counted["general_lazy"] == pytest.approx(
        naive_work(last, windows, 50).comparisons, rel=0.1
    )
    assert counted["lazy"] < counted["general_lazy"]


def test_lazy_expiry_keeps_its_interval_inside_a_batch() -> None:
    """Rows stored too long are read by windows above the new rows; a batch has many intervals."""
    streams = [*[PaperStream(1, 100, 50)] * 3, PaperStream(10, 100, 50)]
    rows = make_streams(streams, 600, 1)
    last = {
        "join": "nested_loop",
        "algorithm": "general_lazy",
        "reevaluation": "5 seconds",
        "order": order_setting((0, 1, 2, 3)),
    }
    always = count_work(streams, rows, 600, **last)
    lazily = {
        seconds: count_work(
            streams, rows, 600, **last, expiry="lazy", expiry_interval=f"{seconds} seconds"
        )
        for seconds in (5, 50)
    }
    assert lazily[5].comparisons == pytest.approx(always.comparisons, rel=0.01)
    assert 1.2 * always.comparisons < lazily[50].comparisons < 2 * always.comparisons


def test_streams_have_the_rates_and_values_of_their_table() -> None:
    for streams in (TABLE_5, TABLE_6):
        for stream, rows in zip(streams, make_streams(streams, 200, 7), strict=True):
            values = rows.column("attr")
            seconds = 200 + 100 + max(other.window for other in streams)
            assert len(rows) == stream.rate * seconds
            assert pc.min_max(values).as_py() == {"min": 1, "max": stream.distinct}
            often = pc.value_counts(values).field("counts")
            assert max(often.to_pylist()) - min(often.to_pylist()) <= 1
            assert (
                rows.column("ts").combine_chunks().cast("int64").to_pylist()[-1]
                <= seconds * 1_000_000
            )
