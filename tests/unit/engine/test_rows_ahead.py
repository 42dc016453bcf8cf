"""One row far in the future changes neither event time nor the memory of the engine."""

from __future__ import annotations

import itertools
import logging
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin
from muntin.errors import SettingError, SqlError
from muntin.model.settings import Settings
from muntin.operators import snapshots
from muntin.state.advance_limit import AdvanceLimit

SECOND = 1_000_000
DAY = 86_400 * SECOND
START = 1_767_225_600 * SECOND


def engine_of(
    *queries: str, **settings: object
) -> tuple[muntin.Engine, list[muntin.StandingQuery]]:
    engine = muntin.Engine(**settings)
    engine.stream("A", {"k": "bigint", "ts": "timestamp"})
    return engine, [engine.query(sql) for sql in queries]


def keys(rows: pa.Table) -> list[int]:
    found: list[int] = rows.column("k").to_pylist()
    return found


def test_a_row_of_the_year_9000_is_set_aside_and_the_stream_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine, (q,) = engine_of("SELECT k FROM A WINDOW 10 SECONDS EVERY 1 SECOND EMIT SNAPSHOT")
    with caplog.at_level(logging.WARNING, "muntin"):
        engine.push("A", [(1, "2026-01-01"), (2, "9000-01-01"), (3, "2026-01-01 00:00:01")])
        engine.push("A", [(4, "9000-01-01"), (5, "2026-01-01 00:00:02")])
        engine.advance("2026-01-01 00:00:02")
    assert keys(q.poll()) == [1, 1, 3, 1, 3, 5]
    assert keys(engine.late("A")) == [2, 4]
    stats = engine.stats()["streams"]
    assert isinstance(stats, dict)
    assert {name: stats["A"][name] for name in ("rows_in", "rows_late", "rows_ahead")} == {
        "rows_in": 5,
        "rows_late": 0,
        "rows_ahead": 2,
    }
    (warning,) = [record.message for record in caplog.records]
    assert warning.startswith(
        "stream A has rows (the first at 9000-01-01 00:00:00) further ahead of the others"
    )
    assert "set max_advance to a longer interval" in warning


def test_the_tenth_row_ahead_is_taken() -> None:
    engine, (q,) = engine_of("SELECT k FROM A WINDOW 1 MINUTE")
    engine.push("A", [(0, 0)])
    for number in range(1, 13):
        engine.push("A", [(number, START + number)])
    engine.advance(START + 100)
    assert keys(q.poll()) == [0, 10, 11, 12]
    assert keys(engine.late("A")) == list(range(1, 10))


def test_advanced_time_counts_as_reached() -> None:
    engine, (q,) = engine_of("SELECT k FROM A WINDOW 1 MINUTE", max_advance="1 day")
    engine.push("A", [(1, START)])
    engine.advance(START + 100 * DAY)
    engine.push("A", [(2, START + 101 * DAY), (3, START + 103 * DAY)])
    assert keys(engine.late("A")) == [3]
    assert keys(q.poll()) == [1, 2]


def test_max_advance_can_be_changed_and_switched_off() -> None:
    engine, (q,) = engine_of("SELECT k FROM A WINDOW 1 MINUTE", max_advance="1 hour")
    engine.push("A", [(1, START), (2, START + DAY)])
    engine.execute("SET max_advance = 'OFF'")
    engine.push("A", [(3, "9000-01-01")])
    engine.advance("9000-01-01")
    assert keys(q.poll()) == [1, 3]
    assert keys(engine.late("A")) == [2]


@pytest.mark.parametrize("value", ["", "soon", "0 seconds", "-1 day", "1 parsec"])
def test_intervals_that_make_no_sense_are_refused(value: str) -> None:
    with pytest.raises(SettingError, match="setting max_advance cannot be"):
        muntin.Engine(max_advance=value)


def test_max_advance_is_no_setting_of_a_query() -> None:
    engine, _ = engine_of()
    with pytest.raises(
        (SettingError, SqlError), match="max_advance is not a setting of single queries"
    ):
        engine.query("SELECT k FROM A WINDOW 1 MINUTE WITH (max_advance = '1 day')")


def test_a_year_has_365_days() -> None:
    assert Settings.of(max_advance="1 year 1 day").engine.max_advance == 366 * DAY
    assert Settings.of(max_advance="off").engine.max_advance is None


@given(
    st.lists(st.integers(0, 100) | st.integers(100_000, 100_100), min_size=1, max_size=60),
    st.sets(st.integers(0, 60)),
)
def test_what_is_set_aside_does_not_depend_on_the_cut_into_pushes(
    seconds: list[int], cuts: set[int]
) -> None:
    """The other rows give the results of an engine that never received the rows ahead."""
    times = [second * SECOND for second in seconds]
    inside = AdvanceLimit().take(np.array(times), 3600 * SECOND, -(2**62))
    taken = [True] * len(times) if inside is None else inside.tolist()
    engine, (q,) = engine_of(
        "SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 1 MINUTE EVERY 5 SECONDS",
        max_advance="1 hour",
    )
    other, (wanted,) = engine_of(
        "SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 1 MINUTE EVERY 5 SECONDS",
        max_advance="off",
    )
    places = sorted({0, len(times), *(cut for cut in cuts if cut < len(times))})
    for start, stop in itertools.pairwise(places):
        engine.push("A", [(place % 3, times[place]) for place in range(start, stop)])
    other.push("A", [(place % 3, times[place]) for place in range(len(times)) if taken[place]])
    engine.advance(200_000 * SECOND)
    other.advance(200_000 * SECOND)
    assert (
        q.poll()
        .sort_by([("_ts", "ascending"), ("_op", "descending"), ("k", "ascending")])
        .equals(
            wanted.poll().sort_by([("_ts", "ascending"), ("_op", "descending"), ("k", "ascending")])
        )
    )
    assert len(engine.late("A")) == len(other.late("A")) + taken.count(False)


# -- empty stretches -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "select",
    ["k FROM A", "k, COUNT(*) AS n FROM A GROUP BY k", "k FROM A EXCEPT SELECT k + 100 FROM A"],
)
def test_seven_thousand_empty_years_cost_nothing(select: str) -> None:
    engine, (q,) = engine_of(
        f"SELECT {select} WINDOW 10 SECONDS EVERY 1 SECOND EMIT SNAPSHOT", max_advance="off"
    )
    engine.push("A", [(1, "2026-01-01"), (2, "2026-01-01 00:00:03")])
    engine.push("A", [(3, "9000-01-01 00:00:00.5")])
    engine.advance("9000-01-01 00:00:05")
    shown = list(zip(keys(found := q.poll()), found.column("_ts").to_pylist(), strict=True))
    assert [time for key, time in shown if key == 1] == [
        datetime(2026, 1, 1, 0, 0, second)  # noqa: DTZ001 (results have none)
        for second in range(10)
    ]
    assert [time for key, time in shown if key == 3] == [
        datetime(9000, 1, 1, 0, 0, second)  # noqa: DTZ001 (results have none)
        for second in range(1, 6)
    ]
    assert len(shown) == 25
    engine.push("A", [(4, "9000-01-01 00:00:06")])
    engine.advance("9000-01-01 00:00:06")
    assert sorted(keys(q.poll())) == [3, 4]


def test_a_long_answer_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_AT_ONCE", 100)
    engine, (q,) = engine_of(
        "SELECT COUNT(*) AS n FROM A WINDOW 10 SECONDS EVERY 1 SECOND EMIT SNAPSHOT"
    )
    sizes: list[int] = []
    q.subscribe(lambda batch: sizes.append(batch.num_rows))
    engine.push("A", [(1, START)])
    engine.advance(START + 999 * SECOND)
    assert sum(sizes) == 1000
    assert max(sizes) <= 100


# -- times decades away ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "shown"),
    [
        (1_767_225_600, ["1970-01-01 00:29:27.225600"]),
        ("2026-01-01", []),
        ("1999-01-01", ["1999-01-01 00:00:00"]),
        ("2099-01-01", ["2099-01-01 00:00:00"]),
    ],
)
def test_times_decades_from_the_clock_cause_one_warning(
    first: object, shown: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    engine, _ = engine_of("SELECT k FROM A WINDOW 1 MINUTE")
    with caplog.at_level(logging.WARNING, "muntin"):
        engine.push("A", [(1, first)])
        engine.push("A", [(2, first)])
    assert [record.message.split(",")[0] for record in caplog.records] == [
        f"stream A begins at {instant}" for instant in shown
    ]
    assert all("multiply seconds by 1000000" in record.message for record in caplog.records)
