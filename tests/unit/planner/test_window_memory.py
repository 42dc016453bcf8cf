"""Windows that cannot fit into memory are refused, with the figure."""

from __future__ import annotations

import pytest

import muntin
from muntin.errors import InputError, SettingError, SqlError

COLUMNS = {"k": "bigint", "name": "varchar", "ts": "timestamp"}


def made(**settings: object) -> muntin.Engine:
    engine = muntin.Engine(**settings)
    engine.stream("A", COLUMNS, time="ts")
    return engine


def test_a_window_of_more_rows_than_memory_holds_is_refused() -> None:
    engine = made(window_memory="1 GB")
    with pytest.raises(InputError) as refused:
        engine.query("SELECT k FROM A [ROWS 100000000]", name="q")
    # 40 bytes of state, two numbers of 8 bytes, a text.
    assert refused.value.fact == (
        "query q: its windows take about 8.8 GB, more than the 1.0 GB there are; that of A "
        "has 100,000,000 rows"
    )
    assert "window_memory" in (refused.value.hint or "")
    engine.query("SELECT k FROM A [ROWS 1000000]", name="q")


def test_by_default_the_memory_of_the_machine_is_the_limit() -> None:
    with pytest.raises(InputError, match=r"its windows take about 88,000\.0 GB, more than the"):
        made().query("SELECT k FROM A [ROWS 1000000000000]")


def test_a_window_in_time_counts_by_the_declared_rate() -> None:
    engine = muntin.Engine(window_memory="100 MB")
    engine.execute(
        "CREATE STREAM A (k BIGINT, ts TIMESTAMP) WITH (rate = '10000', distinct = '10')"
    )
    engine.query("SELECT k FROM A [RANGE 1 MINUTE]")
    with pytest.raises(SqlError, match=r"take about 2\.0 GB, more than the 100\.0 MB there are"):
        engine.execute("CREATE QUERY hour AS SELECT k FROM A [RANGE 1 HOUR]")


def test_the_windows_of_all_sources_and_of_every_select_count() -> None:
    engine = made(window_memory="10 MB")
    engine.query("SELECT k FROM A [ROWS 100000]", name="one")
    with pytest.raises(InputError, match=r"take about 17\.6 MB"):
        engine.query(
            "SELECT a.k FROM A a [ROWS 100000], A b [ROWS 100000] WHERE a.k = b.k", name="two"
        )
    with pytest.raises(InputError, match=r"query three: its windows take about 17\.6 MB"):
        engine.query("SELECT COUNT(*) AS n FROM A [ROWS 200000]", name="three")


def test_streams_without_a_rate_and_partitioned_windows_are_not_checked() -> None:
    engine = made(window_memory="1 kB")
    let_be = [
        engine.query(f"SELECT k FROM A [{window}]")
        for window in ("RANGE 100 DAYS", "PARTITION BY k ROWS 1000")
    ]
    assert [query.poll().num_rows for query in let_be] == [0, 0]


def test_an_invalid_number_of_bytes_is_refused() -> None:
    with pytest.raises(SettingError, match="is not a number of bytes"):
        made(window_memory="much")
