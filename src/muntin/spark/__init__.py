"""Muntin on Spark: sources, partitions, durable state, sinks and progress; the only home of pyspark.

Here is how rows reach the partitions and results the sinks. What happens inside a partition is the in-process api.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muntin.engine.subscription import Subscription
    from muntin.spark.api import SparkEngine
    from muntin.spark.driver.subscriptions import Mark, Once
    from muntin.spark.session import local_session
    from muntin.spark.standing_query import SparkQuery

__all__ = ["Mark", "Once", "SparkEngine", "SparkQuery", "Subscription", "local_session"]


def __getattr__(name: str) -> object:
    """Import the engine when it is asked for: the processes of partitions do without pyspark."""
    if name in __all__:
        try:
            from muntin.spark import api  # noqa: PLC0415
            from muntin.spark.driver import subscriptions  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if error.name not in {"pyspark", "pandas"}:
                raise
            fact = f"Muntin on Spark needs {error.name}. Run: pip install 'muntin[spark]'"
            raise ModuleNotFoundError(fact, name=error.name) from error

        return getattr(subscriptions if hasattr(subscriptions, name) else api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
