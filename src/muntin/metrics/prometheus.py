r"""Metrics as text, in the format 0.0.4 of Prometheus.

A family is a line of HELP, one of TYPE and one per sample. Backslashes, double quotes and newlines
in the values of labels are escaped, in HELP backslashes and newlines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import inf, isnan

from muntin.metrics.catalog import Family, Metric, Value
from muntin.metrics.figures import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of what :func:`text_of` returns."""


def text_of(families: Iterable[Family]) -> str:
    """Return families as text; it can be encoded as UTF-8 whatever the names are."""
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    metric = family.metric
    yield f"# HELP {metric.name} {_help(metric.help)}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for labels, value in family.samples:
        yield from _sample(metric, labels, value)


def _sample(metric: Metric, labels: Sequence[str], value: Value) -> Iterator[str]:
    pairs = [f'{name}="{_label(text)}"' for name, text in zip(metric.labels, labels, strict=True)]
    if not isinstance(value, Histogram):
        yield f"{metric.name}{_braced(pairs)} {_number(value)}"
        return
    before = f"{metric.name}_bucket{{{''.join(f'{pair},' for pair in pairs)}"
    for bound, count in zip(_bounds(value.bounds), value.counts, strict=True):
        yield f'{before}le="{bound}"}} {count}'
    yield f"{metric.name}_sum{_braced(pairs)} {_number(value.total)}"
    yield f"{metric.name}_count{_braced(pairs)} {value.count}"


@cache
def _bounds(bounds: tuple[float, ...]) -> tuple[str, ...]:
    """Return the bounds of buckets as text; all histograms of a metric have the same."""
    return (*map(_number, bounds), "+Inf")


def _braced(pairs: Sequence[str]) -> str:
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _number(value: float) -> str:
    if value == inf:
        return "+Inf"
    if value == -inf:
        return "-Inf"
    return "NaN" if isnan(value) else repr(value)


def _help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _label(text: str) -> str:
    if text.isalnum() and text.isascii():  # the usual case
        return text
    encodable = text.encode("utf-8", "replace").decode("utf-8")
    return _help(encodable).replace('"', '\\"')
