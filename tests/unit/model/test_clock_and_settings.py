"""Instants, intervals and settings as users write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from muntin.errors import InputError, SettingError
from muntin.model.clock import format_instant, format_interval, parse_instant, parse_interval
from muntin.model.settings import Settings, parse_buckets


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
def test_what_is_no_interval(text: str) -> None:
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


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("speed", 1, "there is no setting 'speed'"),
        ("expirie", "own", "Did you mean 'expiry'"),
        ("expiry", "never", "It is one of auto, own, eager"),
        ("expiry_interval", "0 seconds", "longer than nothing"),
        ("reevaluation", "soon", "cannot be 'soon'"),
        ("buckets", "0", "positive number"),
        ("buckets", "A = many", "positive number"),
        ("replan_gain", "0.5", "at least 1"),
        ("replan_change", "x", "at least 1"),
    ],
)
def test_settings_say_what_they_can_be(name: str, value: object, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Settings().having(name, value)


def test_settings_ignore_case_and_queries_have_their_own() -> None:
    settings = Settings().having("EXPIRY", "Lazy")
    assert settings.expiry == "lazy"
    assert settings.of_query((("expiry", "own"), ("sink", "console"))).expiry == "own"
    assert parse_buckets("9, B = 2") == (9, {"b": 2})
