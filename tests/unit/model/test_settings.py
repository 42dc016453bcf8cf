from __future__ import annotations

import pytest

from muntin.errors import SettingError
from muntin.model.settings import DESCRIPTIONS, NAMES, Settings


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_is_described_and_takes_its_own_default(name: str) -> None:
    assert DESCRIPTIONS[name]
    assert Settings().having(name.upper(), getattr(Settings(), name)) == Settings()


def test_settings_are_changed_one_at_a_time_and_leave_the_others() -> None:
    changed = Settings().having(" algorithm ", "LAZY").having("buckets", 7)
    assert (changed.algorithm, changed.buckets) == ("lazy", "7")
    assert changed.having("algorithm", "auto").having("buckets", "") == Settings()


def test_intervals_and_factors_are_numbers_when_they_are_used() -> None:
    settings = Settings().having("expiry_interval", "2 seconds").having("replan_gain", 3)
    assert settings.interval("expiry_interval") == 2_000_000
    assert settings.interval("reevaluation") is None
    assert settings.factor("replan_gain") == 3.0


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0.99", "", "1,5"])
def test_factors_are_at_least_one_and_finite(value: str) -> None:
    with pytest.raises(
        SettingError, match=r"setting replan_gain cannot be .*\. Give a factor of at least 1"
    ):
        Settings().having("replan_gain", value)


@pytest.mark.parametrize(
    "value", ["-1", "1.5", "A", "A = ", "= 5", "= 5, x", f"{2**31}", "A = 5; B = 6"]
)
def test_buckets_are_positive_numbers(value: str) -> None:
    with pytest.raises(
        SettingError,
        match=r"setting buckets cannot be .*\. Write a positive number, or 'A = 5, B = 100'",
    ):
        Settings().having("buckets", value)


def test_options_of_a_sink_are_no_settings_and_others_must_be() -> None:
    own = Settings().of_query((("SINK", "console"), ("Expiry", "eager")))
    assert own == Settings().having("expiry", "eager")
    with pytest.raises(SettingError, match="there is no setting 'sinc'"):
        Settings().of_query((("sinc", "console"),))


@pytest.mark.parametrize(
    ("value", "size"),
    [("64 kB", 64_000), ("10MB", 10_000_000), ("1 gb", 10**9), ("12", 12), ("7 B", 7), (300, 300)],
)
def test_memory_is_bytes_when_it_is_used(value: object, size: int) -> None:
    assert Settings().having("index_memory", value).memory("index_memory") == size
    assert Settings().having("index_memory", value).having("index_memory", "") == Settings()
    assert Settings().memory("index_memory") is None


@pytest.mark.parametrize(
    "value", ["0", "0 kB", "-5", "1.5 MB", "kB", "many", "5 TB", f"{2**62}", "9999999999 GB"]
)
def test_memory_is_a_positive_number_of_bytes(value: str) -> None:
    with pytest.raises(
        SettingError, match=r"is not a number of bytes\. Write for example '64 kB' or '10 MB'"
    ):
        Settings().having("index_memory", value)


def test_a_tree_is_kept_as_it_is_written() -> None:
    assert Settings().having("tree", " ((A, b), C) ").tree == "((A, b), C)"
    assert Settings().having("tree", "off").having("tree", "auto") == Settings()
