"""The metrics through OpenTelemetry are those of Prometheus' text."""

from __future__ import annotations

import subprocess
import sys

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint

from muntin.metrics import METRICS, Kind, prometheus_text
from muntin.metrics.figures import EngineFigures
from muntin.metrics.otel import Readings, export, name_and_unit
from tests.unit.metrics.exposition import Series, parsed
from tests.unit.metrics.test_engine_metrics import filled
from tests.unit.metrics.test_monitoring_files import OnSpark

Engine = type[OnSpark]


def collected(engine: object) -> dict[Series, float]:
    """Return what a reader of the SDK collects, under the names of Prometheus."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    export(engine, provider)  # type: ignore[arg-type]
    names: dict[str, str] = {}
    for metric in METRICS:
        name, _ = name_and_unit(metric)
        if metric.kind is Kind.HISTOGRAM:
            names |= {f"{name}.{end}": f"{metric.name}_{end}" for end in ("bucket", "sum", "count")}
        else:
            names[name] = metric.name
    data = reader.get_metrics_data()
    assert data is not None
    found = {}
    for instrument in data.resource_metrics[0].scope_metrics[0].metrics:
        for point in instrument.data.data_points:
            assert isinstance(point, NumberDataPoint)
            labels = tuple((label, str(text)) for label, text in (point.attributes or {}).items())
            found[names[instrument.name], labels] = float(point.value)
    provider.shutdown()
    return found


def volatile(name: str) -> bool:
    """Return whether a value is a time since something."""
    return name.endswith(("idle_seconds", "waiting_seconds", "last_batch_timestamp_seconds"))


def test_opentelemetry_collects_what_prometheus_scrapes() -> None:
    engine = filled()
    for one in (engine, OnSpark()):
        expected = parsed(prometheus_text(one)).samples
        found = collected(one)
        assert found.keys() == expected.keys()
        for series, value in found.items():
            if not volatile(series[0]):
                assert value == pytest.approx(expected[series]), series


def test_names_and_units_lead_to_those_of_prometheus() -> None:
    units = {"s": "_seconds", "By": "_bytes", "1": ""}
    names = [name_and_unit(metric)[0] for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        name, unit = name_and_unit(metric)
        text = name.replace(".", "_") + units[unit]
        text += "_ratio" if metric.name.endswith("_ratio") else ""
        text += "_total" if metric.kind is Kind.COUNTER else ""
        assert text == metric.name


def test_one_collection_reads_the_engine_once() -> None:
    reads: list[int] = []

    def read() -> EngineFigures:
        reads.append(1)
        return OnSpark.figures()

    readings = Readings(read)
    assert sum(bool(readings.of(metric)) for metric in METRICS) > 10
    assert len(reads) <= 2, "two, if the machine stood still meanwhile"


def test_without_opentelemetry_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["opentelemetry"] = None
import muntin
from muntin.metrics.otel import export
try:
    export(muntin.Engine())
except muntin.MuntinError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install 'muntin[otel]'" in done.stdout
