"""The metrics of an engine as a source of Spark's metrics system, for the sinks it is set up with.

A source is a name and a Dropwizard registry. Its interface has two methods, which Python implements
through Py4J, so no class in Java is needed; Spark calls them only when sources come and go. Values
are gauges that Java holds: a thread sets those that have changed, so no sink waits for Python.
Registries know no labels: they become parts of names, as with Spark's own sources. Of histograms
there are the sum and the count.

Spark's API to add a source is for plugins in Java. The metrics system is a field of its environment
here, read by reflection: Py4J cannot call a method of that class, because it would look at all of
them, and some have types of Protobuf, which PySpark's distribution does not contain.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from muntin.errors import InputError
from muntin.metrics import EngineFigures, Metric, families
from muntin.metrics.figures import Histogram
from muntin.model.clock import parse_interval
from muntin.spark.api import SparkEngine

_log = logging.getLogger("muntin.spark")
_LEAST = 100_000
"""Microseconds between two updates, at least."""
_taken: set[str] = set()


class MetricsSource:
    """A source in Spark's metrics system with the metrics of an engine.

    It is kept up to date until :meth:`close` or the end of the session.

    Parameters
    ----------
    engine : SparkEngine
    name : str
        The name of the source, different for each engine of a session.
    every : str
        The interval at which values that have changed are set; 100 ms or more.
    """

    def __init__(
        self, engine: SparkEngine, *, name: str = "muntin", every: str = "1 second"
    ) -> None:
        interval = parse_interval(every)
        if interval < _LEAST:
            raise InputError(
                f"metrics cannot be updated every {every}", hint="Use '100 ms' or more"
            )
        if name in _taken:
            raise InputError(
                f"there is already a source of metrics named {name}",
                hint="Give another name, or close the other one",
            )
        self.name = name
        self._read = engine.figures
        self._gateway = engine.spark.sparkContext._gateway  # noqa: SLF001 (PySpark has no public way)
        self._gauges: dict[str, Any] = {}
        self._values: dict[str, float] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        ensure_callback_server_started(self._gateway)  # type: ignore[no-untyped-call]
        assert self._gateway is not None, "a session runs"
        jvm: Any = self._gateway.jvm
        self._make = jvm.com.codahale.metrics.DefaultSettableGauge
        self._registry = jvm.com.codahale.metrics.MetricRegistry()
        self._source = _Source(name, self._registry)
        self._system = metrics_system(engine.spark)
        self.update()
        self._system.registerSource(self._source)
        _taken.add(name)
        self._thread = threading.Thread(
            target=self._run, args=(interval / 1e6,), name=f"muntin-metrics-{name}", daemon=True
        )
        self._thread.start()

    def update(self) -> None:
        """Bring all gauges up to date; called regularly, and by whoever cannot wait."""
        found = dict(gauge_values(self._read()))
        with self._lock:
            for name in self._gauges.keys() - found.keys():
                self._registry.remove(name)
                del self._gauges[name], self._values[name]
            for name, value in found.items():
                if name not in self._gauges:
                    self._gauges[name] = self._make(value)
                    self._registry.register(name, self._gauges[name])
                elif value != self._values[name]:
                    self._gauges[name].setValue(value)
                self._values[name] = value

    def _run(self, seconds: float) -> None:
        while not self._closing.wait(seconds):
            try:
                self.update()
            except (Py4JError, OSError) as error:  # the session has ended
                _log.debug("the metrics of %s are no longer updated: %s", self.name, error)
                break
        _taken.discard(self.name)

    def close(self) -> None:
        """Remove the source from Spark's metrics system."""
        self._closing.set()
        self._thread.join(10)
        with suppress(Py4JError, OSError):
            self._system.removeSource(self._source)


def metrics_system(spark: SparkSession) -> Any:
    """Return Spark's metrics system, in Java."""
    context: Any = spark.sparkContext
    java = context._gateway.jvm.java.lang  # noqa: SLF001 (PySpark has no public way)
    loader = java.Thread.currentThread().getContextClassLoader()
    environment = java.Class.forName("org.apache.spark.SparkEnv", True, loader)
    field = environment.getDeclaredField("metricsSystem")
    field.setAccessible(True)
    return field.get(context._jsc.sc().env())  # noqa: SLF001 (same)


class _Source:
    """Implements Spark's interface of sources."""

    def __init__(self, name: str, registry: Any) -> None:
        self._name = name
        self._registry = registry

    def sourceName(self) -> str:  # noqa: N802 (Spark's)
        """Return the name of the source."""
        return self._name

    def metricRegistry(self) -> Any:  # noqa: N802 (Spark's)
        """Return the registry."""
        return self._registry

    def equals(self, other: Any) -> bool:
        """Compare for Java, which removes a source by equality; the name is ours alone."""
        try:
            return bool(other.sourceName() == self._name)
        except (AttributeError, TypeError, Py4JError):
            return False

    def hashCode(self) -> int:  # noqa: N802 (Java's)
        """Return a hash for Java."""
        return 0

    def toString(self) -> str:  # noqa: N802 (Java's)
        """Return a text for Java."""
        return self._name

    class Java:
        """Names the interface for Py4J."""

        implements = ("org.apache.spark.metrics.source.Source",)


def gauge_values(figures: EngineFigures) -> Iterator[tuple[str, float]]:
    """Yield the names and values of all gauges."""
    for family in families(figures):
        for labels, value in family.samples:
            name = gauge_name(family.metric, labels)
            if isinstance(value, Histogram):
                yield f"{name}_sum", value.total
                yield f"{name}_count", float(value.count)
            else:
                yield name, float(value)


def gauge_name(metric: Metric, labels: tuple[str, ...]) -> str:
    """Return the name of a gauge: the subject, what it is called, what is measured, the rest.

    >>> from muntin.metrics import METRICS
    >>> names = {metric.name: metric for metric in METRICS}
    >>> gauge_name(names["muntin_query_results_total"], ("my query",))
    'query.my%20query.results_total'
    >>> gauge_name(names["muntin_query_buffer_rows"], ("q", "input"))
    'query.q.buffer_rows.input'
    """
    name = metric.name.removeprefix("muntin_")
    parts = [quote(label, safe="").replace(".", "%2E") for label in labels]
    if metric.labels and name.startswith(f"{metric.labels[0]}_"):
        subject = metric.labels[0]
        return ".".join([subject, parts[0], name.removeprefix(f"{subject}_"), *parts[1:]])
    return ".".join([name, *parts])
