"""The dashboard, the alerts and the page of metrics use what engines export, and nothing else."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from muntin.metrics import METRICS, Kind, prometheus_text
from muntin.metrics.figures import EngineFigures
from muntin.spark.driver.figures import read_figures
from muntin.spark.driver.metrics import RunMetrics
from tests.unit.metrics.exposition import parsed
from tests.unit.metrics.test_engine_metrics import QUERIES, SECOND, new_engine

ROOT = Path(__file__).resolve().parents[3]
MONITORING = ROOT / "examples" / "monitoring"
ADDED_BY_PROMETHEUS = {"job", "instance"}


def spark_figures() -> EngineFigures:
    """Return what an engine on Spark exports after a batch."""
    metrics = RunMetrics()
    metrics.add(0, [], {"q": 3}, {"A": 1})
    metrics.phases["sinks"] = 0.5
    return read_figures(metrics, ["A"], {"q": None}, ())


class OnSpark:
    """Stands for an engine on Spark."""

    figures = staticmethod(spark_figures)


def exported() -> dict[str, set[str]]:
    """Return the names of all samples that engines under test export, with their labels."""
    engine = new_engine()
    for name, text in QUERIES.items():
        engine.query(text, name=name)
    for second in range(10):
        for stream in "AB":
            engine.push(stream, [(key, second * SECOND) for key in range(5)])
    engine.push("A", [(1, 30 * SECOND)])
    found: dict[str, set[str]] = {}
    for text in (prometheus_text(engine), prometheus_text(OnSpark())):
        for name, labels in parsed(text).samples:
            found.setdefault(name, set()).update(label for label, _ in labels)
    return found


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    return exported()


def alerts() -> list[dict[str, str]]:
    groups = yaml.safe_load((MONITORING / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> list[str]:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    variables = [one["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    return [*panels, *variables, *(rule["expr"] for rule in alerts())]


def test_every_metric_is_exported_by_some_engine(known: dict[str, set[str]]) -> None:
    ends = {Kind.HISTOGRAM: ("_bucket", "_sum", "_count")}
    names = {metric.name + end for metric in METRICS for end in ends.get(metric.kind, ("",))}
    assert names == known.keys()


@pytest.mark.parametrize("expression", expressions())
def test_expressions_use_exported_metrics_with_their_labels(
    expression: str, known: dict[str, set[str]]
) -> None:
    names = re.findall(r"\bmuntin_\w+", expression)
    assert names
    assert set(names) <= known.keys()
    labels = {label for name in names for label in known[name]} | ADDED_BY_PROMETHEUS
    used = {label for part in re.findall(r"\{(.*?)\}", expression) for label in _matched(part)}
    for part in re.findall(r"\b(?:by|ignoring|on) \((.*?)\)", expression):
        used |= {label.strip() for label in part.split(",")}
    assert used <= labels


def _matched(matchers: str) -> list[str]:
    return re.findall(r"(\w+)(?:=~|!~|!=|=)", matchers)


def test_alerts_mention_labels_that_their_metrics_have(known: dict[str, set[str]]) -> None:
    assert len({rule["alert"] for rule in alerts()}) == len(alerts())
    for rule in alerts():
        names = re.findall(r"\bmuntin_\w+", rule["expr"])
        labels = set.union(*(known[name] for name in names)) | ADDED_BY_PROMETHEUS
        assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) <= labels


def test_counters_are_only_used_through_their_rates() -> None:
    counters = [metric.name for metric in METRICS if metric.kind is Kind.COUNTER]
    for expression in expressions():
        for name in counters:
            for place in re.finditer(rf"\b{name}\b", expression):
                before = expression[: place.start()]
                assert before.endswith(("rate(", "increase(", "label_values(")), expression


def test_the_page_of_metrics_is_that_of_the_code() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "metrics_table.py"))
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    assert script["put"](text) == text, "run python scripts/metrics_table.py"
