"""The text of metrics: escapes, numbers, and names by Prometheus' conventions."""

from __future__ import annotations

import re
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.metrics import METRICS, Family, Kind, Metric, families
from muntin.metrics.figures import EngineFigures, Histogram, StreamCounts, StreamFigures
from muntin.metrics.prometheus import text_of
from tests.unit.metrics.exposition import parsed


def family(kind: Kind, value: float | Histogram, label: str = "x", about: str = "Help.") -> Family:
    return Family(Metric("m", kind, about, ("l",), lambda _: ()), (((label,), value),))


def test_labels_and_help_are_escaped() -> None:
    found = text_of([family(Kind.GAUGE, 1, 'a"b\\c\nd', "one\\two\nthree")])
    assert found == '# HELP m one\\\\two\\nthree\n# TYPE m gauge\nm{l="a\\"b\\\\c\\nd"} 1\n'


@given(st.text(st.characters(), max_size=20))
def test_any_text_can_be_a_label(label: str) -> None:
    found = text_of([family(Kind.GAUGE, 1, label)]).encode("utf-8").decode("utf-8")
    ((_, labels),) = parsed(found).samples
    assert labels == (("l", label.encode("utf-8", "replace").decode("utf-8")),)


@pytest.mark.parametrize(
    ("value", "text"), [(inf, "+Inf"), (-inf, "-Inf"), (nan, "NaN"), (3, "3"), (0.25, "0.25")]
)
def test_numbers(value: float, text: str) -> None:
    assert text_of([family(Kind.GAUGE, value)]).endswith(f" {text}\n")


def test_a_histogram_has_buckets_sum_and_count() -> None:
    found = text_of([family(Kind.HISTOGRAM, Histogram((0.1, 1.0), (2, 3, 5), 7.5))])
    assert found.splitlines()[2:] == [
        'm_bucket{l="x",le="0.1"} 2',
        'm_bucket{l="x",le="1.0"} 3',
        'm_bucket{l="x",le="+Inf"} 5',
        'm_sum{l="x"} 7.5',
        'm_count{l="x"} 5',
    ]


def test_names_follow_the_conventions() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch(r"muntin(_[a-z]+)+", metric.name)
        assert (metric.kind is Kind.COUNTER) == metric.name.endswith("_total"), metric.name
        assert re.fullmatch(r"[A-Z0-9].*\.", metric.help), metric.help
        assert not re.search(r"_(ms|millis|micros|minutes|kb|mb)(_|$)", metric.name)


def test_what_is_not_known_is_left_out() -> None:
    streams = {"A": StreamFigures(StreamCounts(3, 2, 1))}
    found = families(EngineFigures("in_process", streams, {}, 0, 7))
    text = text_of(found)
    assert parsed(text).value("muntin_stream_late_rows_total", stream="A") == 2
    assert "muntin_stream_idle_seconds" not in text
    assert "muntin_batches_total" not in text
    assert "muntin_query_results_total" not in text
