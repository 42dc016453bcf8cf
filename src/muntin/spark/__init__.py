"""Muntin on Spark: sources, buckets, durable state, sinks and progress; the only home of pyspark.

Here is how rows reach the buckets and results the sinks. What happens inside a bucket is the in-process engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muntin.engine.subscription import Subscription
    from muntin.spark.engine import SparkEngine
    from muntin.spark.session import local_session
    from muntin.spark.standing_query import SparkQuery
    from muntin.spark.subscribing import Mark, Once

__all__ = ["Mark", "Once", "SparkEngine", "SparkQuery", "Subscription", "local_session"]


def __getattr__(name: str) -> object:
    """Import the engine when it is asked for: the processes of buckets do without pyspark."""
    if name in __all__:
        try:
            from muntin.spark import engine, subscribing  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if error.name not in {"pyspark", "pandas"}:
                raise
            fact = f"Muntin on Spark needs {error.name}. Run: pip install 'muntin[spark]'"
            raise ModuleNotFoundError(fact, name=error.name) from error

        return getattr(subscribing if hasattr(subscribing, name) else engine, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
