"""Muntin on Spark: sources, partitions, durable state, sinks and progress.

``api`` is the user's engine. ``driver`` runs the streaming query, ``partition`` applies batches to
the state of a partition, ``exchange`` defines what travels between them. Imports go only in that
direction. This is the only package that imports pyspark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muntin.engine.subscription import Subscription
    from muntin.spark.api import SparkEngine
    from muntin.spark.exchange.marks import Mark, Once
    from muntin.spark.metrics_source import MetricsSource
    from muntin.spark.session import local_session
    from muntin.spark.standing_query import SparkQuery

__all__ = [
    "Mark",
    "MetricsSource",
    "Once",
    "SparkEngine",
    "SparkQuery",
    "Subscription",
    "local_session",
]


def __getattr__(name: str) -> object:
    """Import the engine on first use, because the state servers run without pyspark."""
    if name in __all__:
        try:
            from muntin.spark import api, metrics_source  # noqa: PLC0415
            from muntin.spark.exchange import marks  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if error.name not in {"pyspark", "pandas"}:
                raise
            fact = f"Muntin on Spark needs {error.name}. Run: pip install 'muntin[spark]'"
            raise ModuleNotFoundError(fact, name=error.name) from error

        homes = {"Mark": marks, "Once": marks, "MetricsSource": metrics_source}
        return getattr(homes.get(name, api), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
