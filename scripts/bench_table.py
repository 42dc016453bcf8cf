"""Writes the figures of ``benchmarks/*.json`` into README.md and benchmarks/README.md, and prints them.

Run it after ``muntin bench all``. Figures stand nowhere else, so they cannot differ from what was measured.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BEGIN = "<!-- bench: begin (python scripts/bench_table.py writes what follows) -->"
END = "<!-- bench: end -->"
NONE = "There are no figures yet. `muntin bench all` makes them, `python scripts/bench_table.py` puts them here."
ORDER = (
    "join",
    "window",
    "memory",
    "start",
    "orders",
    "replan",
    "choice",
    "shared",
    "groups",
    "pipelines",
    "overload",
    "spark",
    "state",
    "spark-shared",
    "spark-bursts",
    "spark-aggregate",
    "spark-overload",
    "peers",
)

Report = Mapping[str, Any]


def read_reports(folder: Path) -> list[Report]:
    """All reports of a folder, the known benchmarks first."""
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return sorted(reports, key=lambda report: ORDER.index(report["name"]) if report["name"] in ORDER else len(ORDER))


def short_table(reports: Sequence[Report]) -> str:
    """One line for each claim, with the command that measures it."""
    if not reports:
        return NONE
    rows = [
        [claim["claim"], number(claim["measured"]), _bound(claim), f"`muntin bench {report['name']}`"]
        for report in reports
        for claim in report["claims"]
    ]
    return table(["measured", "figure", "bound", "command"], rows, right={1})


def full_tables(reports: Sequence[Report]) -> str:
    """For each benchmark its question, its rows, its claims, and where it ran."""
    return "\n\n".join(_section(report) for report in reports) or NONE


def _section(report: Report) -> str:
    columns = list(report["rows"][0])
    right = {place for place, column in enumerate(columns) if not isinstance(report["rows"][0][column], str)}
    claims = [f"- {claim['claim']}: **{number(claim['measured'])}** ({_bound(claim)})" for claim in report["claims"]]
    machine = ", ".join(f"{name} {value}" for name, value in report["machine"].items())
    plots = [f"![{plot['title']}]({plot['file']})" for plot in report.get("plots", [])]
    return "\n\n".join(
        [
            f"### {report['name']}: {report['question']}",
            table(columns, [[number(row[column]) for column in columns] for row in report["rows"]], right),
            *plots,
            "\n".join(claims),
            f"`muntin bench {report['name']}`; {machine}.",
        ]
    )


def _bound(claim: Mapping[str, Any]) -> str:
    return f"{claim.get('side', 'at most')} {number(claim['bound'])}{'' if claim['holds'] else ', **not kept**'}"


def number(value: float | str) -> str:
    """A figure as text: thousands set apart, no decimals that say nothing.

    >>> number(3400000)
    '3,400,000'
    """
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: set[int]) -> str:
    """A table in Markdown; columns in ``right`` are set to the right."""
    rule = ["---:" if place in right else "---" for place in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, rule, *rows])


def put(text: str, block: str) -> str:
    """The text with the block between the two comments replaced."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    assert pattern.search(text), "the page has the two comments"
    return pattern.sub(lambda _: f"{BEGIN}\n\n{block}\n\n{END}", text)


def main() -> None:
    """Rewrite both pages."""
    reports = read_reports(ROOT / "benchmarks")
    for page, block in ((ROOT / "README.md", short_table(reports)), (ROOT / "benchmarks" / "README.md", full_tables(reports))):
        page.write_text(put(page.read_text(encoding="utf-8"), block), encoding="utf-8")
    sys.stdout.write(full_tables(reports) + "\n")


if __name__ == "__main__":
    main()
