from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.errors import InputError
from muntin.model.clock import (
    AFTER_ALL,
    BEFORE_ALL,
    format_instant,
    format_interval,
    parse_instant,
    parse_interval,
    unit_micros,
)


@given(st.integers(1, 2**53))
def test_an_interval_reads_as_it_is_written(micros: int) -> None:
    assert parse_interval(format_interval(micros)) == micros


@given(st.datetimes(timezones=st.timezones() | st.just(UTC)))
def test_an_instant_reads_as_it_is_written(moment: datetime) -> None:
    micros = parse_instant(moment)
    assert parse_instant(moment.isoformat()) == micros
    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros) == moment.astimezone(
        UTC
    )
    assert parse_instant(format_instant(micros)) == micros


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1 second, 500 ms", 1_500_000),
        ("2 Days", 172_800_000_000),
        ("3us", 3),
        ("+1 m", 60_000_000),
        ("-2 seconds", -2_000_000),
        ("0 s", 0),
    ],
)
def test_intervals_as_people_write_them(text: str, micros: int) -> None:
    assert parse_interval(text) == micros


@pytest.mark.parametrize(
    "text",
    ["seconds", "1", "1 second 2", "one second", "1 second; 2 seconds", "1e3 s", "- 1 s", "1 s s"],
)
def test_an_invalid_interval_is_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(
        InputError, match=r"is not an interval\. Write a number and a unit, for example '2 seconds'"
    ):
        parse_interval(text)


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        (np.int64(7), 7),
        (pd.Timestamp("1970-01-01 00:00:01"), 1_000_000),
        (" 1970-01-02 ", 86_400_000_000),
    ],
)
def test_instants_of_other_libraries(value: object, micros: int) -> None:
    assert parse_instant(value) == micros  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [AFTER_ALL, BEFORE_ALL, 2**200])
def test_instants_out_of_range(value: int) -> None:
    with pytest.raises(InputError, match=f"the time {value} is out of range"):
        parse_instant(value)


@pytest.mark.parametrize("unit", ["fortnight", "", "secondss", "mon"])
def test_unknown_units_are_refused(unit: str) -> None:
    assert unit_micros(unit) is None


def test_an_instant_outside_the_calendar_prints_as_a_number() -> None:
    assert format_instant(AFTER_ALL - 1) == f"{AFTER_ALL - 1} us"
    assert format_interval(0) == "0 microseconds"
    assert format_interval(1) == "1 microsecond"


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2 seconds", 2_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("1.5 s", 1_500_000),
        ("500 MS", 500_000),
        ("1 week", 604_800_000_000),
    ],
)
def test_intervals(text: str, micros: int) -> None:
    assert parse_interval(text) == micros
    assert parse_interval(format_interval(micros)) == micros


@pytest.mark.parametrize(
    "text", ["", "soon", "5", "5 parsecs", "1 second and", "99999999999 weeks"]
)
def test_invalid_intervals_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_interval(text)


def test_instants_of_all_kinds_are_microseconds_since_1970() -> None:
    east = timezone(timedelta(hours=2))
    for value in (
        5_000_000,
        "1970-01-01 00:00:05",
        "1970-01-01T02:00:05+02:00",
        datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC),
    ):
        assert parse_instant(value) == 5_000_000
    assert parse_instant(datetime(1970, 1, 1, 2, tzinfo=east)) == 0
    assert parse_instant("1969-12-31 23:59:59.999999") == -1
    assert format_instant(-1) == "1969-12-31 23:59:59.999999"
    assert format_instant(2**61) == f"{2**61} us"
