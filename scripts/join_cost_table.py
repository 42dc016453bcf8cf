"""Counts what joins do on the streams of paper 3's tables and writes it beside what was predicted into docs/design/join-orders.md.

Takes about a minute or two. A test counts again and fails when the page says something else.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from muntin.planner.paper_costs.lazy_join import Work
from muntin.testing.join_cases import Case, Group, groups
from muntin.testing.join_counts import Counted

PAGE = Path(__file__).resolve().parents[1] / "docs" / "design" / "join-orders.md"
COLUMNS = (
    "join",
    "comparisons predicted",
    "counted",
    "counted / predicted",
    "rows looked at predicted",
    "counted",
)
HEADER = f"| {' | '.join(COLUMNS)} |\n| --- |{' ---: |' * (len(COLUMNS) - 1)}"


def line(case: Case, counted: Counted) -> str:
    """One case as a line of a table."""
    predicted: Work = case.predicted
    ratio = counted.comparisons / predicted.comparisons
    figures = f"{predicted.comparisons:,.0f} | {counted.comparisons:,.0f} | {ratio:.2f} | {predicted.scanned:,.0f} | {counted.scanned:,.0f}"
    return f"| {case.name} | {figures} |"


def block(group: Group, lines: list[str]) -> str:
    """The table of a group, between the comments by which it is found again."""
    begin, end = _comments(group.name)
    about = f"**{group.name}**, a second, over {group.seconds:,} seconds:"
    return "\n".join([begin, "", about, "", HEADER, *lines, "", end])


def put(text: str, group: Group, lines: list[str]) -> str:
    """The page with the table of a group."""
    begin, end = _comments(group.name)
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    assert pattern.search(text), f"the page has the two comments of {group.name}"
    return pattern.sub(lambda _: block(group, lines), text)


def _comments(name: str) -> tuple[str, str]:
    return (
        f"<!-- {name}: begin (python scripts/join_cost_table.py writes what follows) -->",
        f"<!-- {name}: end -->",
    )


def main() -> None:
    """Count everything, or the groups whose names are given, and rewrite the page."""
    for group in groups():
        if sys.argv[1:] and group.name not in sys.argv[1:]:
            continue
        lines = [line(case, counted) for case, counted in group.count()]
        sys.stdout.write("\n".join([group.name, *lines, ""]))
        PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), group, lines), encoding="utf-8")


if __name__ == "__main__":
    main()
