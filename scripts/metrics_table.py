"""Write the table of metrics into docs/reference/metrics.md, from their declarations.

A test fails when the table and the code differ.
"""

from __future__ import annotations

import re
from pathlib import Path

from muntin.metrics import METRICS, Metric

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "metrics.md"
BEGIN = "<!-- metrics: begin (python scripts/metrics_table.py writes what follows) -->"
END = "<!-- metrics: end -->"


def metrics_table() -> str:
    """Return all metrics with their kinds, labels and meanings, as Markdown."""
    rows = ["| metric | kind | labels | engine | meaning |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*rows, *map(_row, METRICS)])


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    meaning = metric.help.replace("|", r"\|")
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.where} | {meaning} |"


def put(text: str) -> str:
    """Return the page with the current table."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    assert pattern.search(text), "the page has the two comments"
    return pattern.sub(lambda _: f"{BEGIN}\n\n{metrics_table()}\n\n{END}", text)


if __name__ == "__main__":
    PAGE.write_text(put(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
