from __future__ import annotations

import pytest

from muntin.engine.declaration_checks import SINK_OPTIONS
from muntin.errors import SettingError
from muntin.model.settings import (
    DECLARATIONS,
    Algorithm,
    BucketCounts,
    Expiry,
    GivenTree,
    Settings,
    TreeChoice,
    parse_buckets,
)

OTHER_VALUES = {
    "max_advance": "off",
    "memory_limit": "2 GB",
    "algorithm": "lazy",
    "join": "hash",
    "order": "A: B, C; B, C, A",
    "index": "A, b",
    "buckets": "9, B = 2",
    "index_memory": "64 kB",
    "window_memory": "8 GB",
    "tree": "((A, b), C)",
    "reevaluation": "1 minute 500 ms",
    "expiry": "probe_all",
    "expiry_interval": "2 seconds",
    "sharing": "off",
    "scheduler": "swf",
    "weight": "2.5",
    "pipeline": "hybrid",
    "replan": "off",
    "replan_change": "2.5",
    "replan_gain": "1e1",
    "overload": "adapt",
    "resources": "0.5",
    "monitoring": "3 s",
    "policy": "grepp",
    "adapt_change": "0",
    "adapt_gain": ".2",
    "probe_cost": "measured",
    "probe_choice": "random",
    "probe_seed": "007",
    "state_rows": "12",
    "freshness": "measure",
}


@pytest.mark.parametrize("name", DECLARATIONS)
def test_every_setting_is_described_and_accepts_its_default(name: str) -> None:
    declared = DECLARATIONS[name]
    assert declared.description
    assert Settings().having(name.upper(), declared.default) == Settings()


@pytest.mark.parametrize("name", DECLARATIONS)
def test_every_setting_travels_as_text(name: str) -> None:
    settings = Settings.of(**{name: OTHER_VALUES[name]})
    assert (settings != Settings()) == DECLARATIONS[name].compared
    assert settings.changed() == {name: OTHER_VALUES[name]}
    there = Settings.of(**settings.changed())
    assert there == settings
    assert hash(there) == hash(settings)


def test_equal_values_make_equal_settings_however_they_are_written() -> None:
    assert Settings.of(expiry_interval="1 minute") == Settings.of(expiry_interval="60 SECONDS")


def test_changing_one_setting_leaves_the_others_unchanged() -> None:
    changed = Settings().having(" algorithm ", "LAZY").having("buckets", 7)
    assert changed.join.algorithm is Algorithm.LAZY
    assert changed.join.buckets == BucketCounts(7, ())
    assert changed.changed() == {"algorithm": "lazy", "buckets": "7"}
    again = changed.having("algorithm", "auto").having("buckets", "")
    assert again == Settings()
    assert again.changed() == {}


def test_intervals_and_factors_are_numbers() -> None:
    settings = Settings().having("expiry_interval", "2 seconds").having("replan_gain", 3)
    assert settings.expiry.interval == 2_000_000
    assert settings.join.reevaluation is None
    assert settings.replan.gain == 3.0


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


def test_buckets_of_an_alias_override_those_of_all() -> None:
    counts = parse_buckets("9, B = 2")
    assert counts == BucketCounts(9, (("b", 2),))
    assert (counts.of("B"), counts.of("A")) == (2, 9)


def test_options_of_a_sink_are_not_settings_and_all_others_are() -> None:
    own = Settings().of_query((("SINK", "console"), ("Expiry", "eager")), SINK_OPTIONS)
    assert own == Settings().having("expiry", "eager")
    with pytest.raises(SettingError, match=r"there is no setting 'sinc'\. Did you mean 'sink'\?"):
        Settings().of_query((("sinc", "console"),), SINK_OPTIONS)
    with pytest.raises(SettingError, match="there is no setting 'sink'"):
        Settings().having("sink", "console")


def test_a_setting_of_the_engine_is_not_one_of_a_query() -> None:
    with pytest.raises(SettingError, match="MAX_ADVANCE is not a setting of single queries"):
        Settings().of_query((("MAX_ADVANCE", "1 day"),))


@pytest.mark.parametrize(
    ("value", "size"),
    [("64 kB", 64_000), ("10MB", 10_000_000), ("1 gb", 10**9), ("12", 12), ("7 B", 7), (300, 300)],
)
def test_memory_is_bytes(value: object, size: int) -> None:
    assert Settings().having("index_memory", value).join.index_memory == size
    assert Settings().having("index_memory", value).having("index_memory", "") == Settings()
    assert Settings().join.index_memory is None


@pytest.mark.parametrize(
    "value", ["0", "0 kB", "-5", "1.5 MB", "kB", "many", "5 TB", f"{2**62}", "9999999999 GB"]
)
def test_memory_is_a_positive_number_of_bytes(value: str) -> None:
    with pytest.raises(
        SettingError, match=r"is not a number of bytes\. Write for example '64 kB' or '10 MB'"
    ):
        Settings().having("index_memory", value)


def test_a_tree_is_kept_as_it_is_written() -> None:
    assert Settings().having("tree", " ((A, b), C) ").join.tree == GivenTree("((A, b), C)")
    assert Settings().having("tree", "off").join.tree is TreeChoice.OFF
    assert Settings().having("tree", "off").having("tree", "auto") == Settings()


def test_settings_ignore_case_and_queries_override_them() -> None:
    settings = Settings().having("EXPIRY", "Lazy")
    assert settings.expiry.policy is Expiry.LAZY
    assert settings.of_query((("expiry", "own"),)).expiry.policy is Expiry.OWN
    assert settings.expiry.policy is Expiry.LAZY


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
def test_refused_settings_list_the_valid_values(name: str, value: object, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Settings().having(name, value)
