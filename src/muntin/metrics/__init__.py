"""Metrics of an engine for Prometheus, OpenTelemetry and Spark's metrics system.

:func:`prometheus_text` returns what an endpoint ``/metrics`` answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from muntin.metrics.catalog import METRICS, Family, Kind, Metric, families
from muntin.metrics.figures import EngineFigures
from muntin.metrics.prometheus import CONTENT_TYPE, text_of

__all__ = [
    "CONTENT_TYPE",
    "METRICS",
    "EngineFigures",
    "Family",
    "Kind",
    "Measured",
    "Metric",
    "families",
    "prometheus_text",
]


class Measured(Protocol):
    """An engine: :class:`muntin.Engine` or :class:`muntin.spark.SparkEngine`."""

    @property
    def figures(self) -> Callable[[], EngineFigures]:
        """Return the function that reads the figures of the engine."""


def prometheus_text(engine: Measured) -> str:
    r"""Return all metrics of an engine in Prometheus' text format, version 0.0.4.

    Call it from any thread, also while the engine runs. Serve it as :data:`CONTENT_TYPE`.

    Examples
    --------
    >>> import muntin
    >>> from muntin.metrics import prometheus_text
    >>> engine = muntin.Engine()
    >>> engine.stream("A", {"k": "bigint", "ts": "timestamp"})
    >>> engine.push("A", [(1, "2026-01-01")])
    >>> "muntin_stream_rows_total{stream=\"A\"} 1" in prometheus_text(engine).splitlines()
    True
    """
    return text_of(families(engine.figures()))
