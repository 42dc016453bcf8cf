"""Export the metrics through OpenTelemetry; needs ``muntin[otel]``.

Each metric is an observable instrument, which reads the engine when the SDK collects. Their names
have dots, no suffixes, and their units as OpenTelemetry writes them, so that an exporter to
Prometheus makes the names of ``/metrics`` of them. OpenTelemetry has no observable histogram, and
the engine has counts instead of single values: a histogram becomes three counters, the buckets with
the attribute ``le``, the sum and the count.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, Any

from muntin.errors import MuntinError
from muntin.metrics.catalog import METRICS, Kind, Metric, Value, families
from muntin.metrics.figures import EngineFigures, Histogram

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

    from muntin.metrics import Measured

_FRESH = 0.2
"""Seconds for which all instruments use the same figures: one collection asks each of them."""
_UNITS = {"seconds": "s", "bytes": "By", "ratio": "1"}


class Readings:
    """The samples of an engine by metric, read at most once per collection."""

    def __init__(self, read: Callable[[], EngineFigures]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._at = -inf
        self._samples: dict[str, tuple[tuple[tuple[str, ...], Value], ...]] = {}

    def of(self, metric: Metric) -> tuple[tuple[tuple[str, ...], Value], ...]:
        """Return the samples of a metric now."""
        with self._lock:
            if time.monotonic() - self._at > _FRESH:
                self._samples = {
                    family.metric.name: family.samples for family in families(self._read())
                }
                self._at = time.monotonic()
            return self._samples.get(metric.name, ())


def export(engine: Measured, provider: MeterProvider | None = None) -> None:
    """Register all metrics of an engine with OpenTelemetry, as long as the provider lives.

    Parameters
    ----------
    engine : Engine or SparkEngine
    provider : MeterProvider, optional
        None: the global one, as the SDK of your program has set it.

    Raises
    ------
    MuntinError
        When OpenTelemetry is not installed.
    """
    try:
        from opentelemetry.metrics import Observation, get_meter  # noqa: PLC0415 (optional)
    except ImportError as error:
        raise MuntinError(
            "OpenTelemetry is not installed", hint="Run pip install 'muntin[otel]'"
        ) from error
    meter = get_meter("muntin", meter_provider=provider)
    readings = Readings(engine.figures)
    for metric in METRICS:
        for end, values in _parts(metric):
            make = (
                meter.create_observable_gauge
                if metric.kind is Kind.GAUGE
                else meter.create_observable_counter
            )
            name, unit = name_and_unit(metric)

            def observe(
                _: CallbackOptions, metric: Metric = metric, values: _Values = values
            ) -> Iterable[Observation]:
                return [
                    Observation(value, dict(zip(metric.labels, labels, strict=True)) | more)
                    for labels, found in readings.of(metric)
                    for value, more in values(found)
                ]

            make(name + end, [observe], unit if end in {"", ".sum"} else "1", metric.help)


_Values = Callable[[Any], Iterable[tuple[float, dict[str, str]]]]
"""Finds the observations in a value, with further attributes."""


def name_and_unit(metric: Metric) -> tuple[str, str]:
    """Return the name and the unit of a metric for OpenTelemetry.

    >>> named = {metric.name: name_and_unit(metric) for metric in METRICS}
    >>> named["muntin_stream_late_rows_total"]
    ('muntin.stream.late_rows', '1')
    >>> named["muntin_query_lag_seconds"]
    ('muntin.query.lag', 's')
    """
    words = metric.name.removesuffix("_total").split("_")
    unit = _UNITS.get(words[-1], "1")
    if words[-1] in _UNITS:
        words.pop()
    depth = 2 if words[1] in {"stream", "query", "batch"} and len(words) > 2 else 1
    return ".".join([*words[:depth], "_".join(words[depth:])]), unit


def _parts(metric: Metric) -> Iterator[tuple[str, _Values]]:
    """Return the instruments of a metric: the ends of their names, and their values."""
    if metric.kind is not Kind.HISTOGRAM:
        yield "", lambda value: [(value, {})]
        return
    yield ".bucket", _buckets
    yield ".sum", lambda histogram: [(histogram.total, {})]
    yield ".count", lambda histogram: [(histogram.count, {})]


def _buckets(histogram: Histogram) -> Iterator[tuple[float, dict[str, str]]]:
    for bound, count in zip((*histogram.bounds, inf), histogram.counts, strict=True):
        yield count, {"le": "+Inf" if bound == inf else repr(bound)}
