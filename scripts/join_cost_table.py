"""Count the work of joins on the streams of the tables in [Golab03] and write it to the docs.

docs/design/join-orders.md shows the counts next to the predictions. The script takes a minute or
two. A test counts again and fails if the page differs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from muntin.planner.lazy_orders import Work
from muntin.testing.join_cases import CountedCase, Group, groups
from muntin.testing.join_counts import Counted

PAGE = Path(__file__).resolve().parents[1] / "docs" / "design" / "join-orders.md"
COLUMNS = (
    "join",
    "comparisons predicted",
    "counted",
    "counted / predicted",
    "rows scanned predicted",
    "counted",
)
HEADER = f"| {' | '.join(COLUMNS)} |\n| --- |{' ---: |' * (len(COLUMNS) - 1)}"


def line(case: CountedCase, counted: Counted) -> str:
    """Return one case as a line of a table."""
    predicted: Work = case.predicted
    ratio = counted.comparisons / predicted.comparisons
    comparisons = f"{predicted.comparisons:,.0f} | {counted.comparisons:,.0f} | {ratio:.2f}"
    scanned = f"{predicted.scanned:,.0f} | {counted.scanned:,.0f}"
    return f"| {case.name} | {comparisons} | {scanned} |"


def block(group: Group, lines: list[str]) -> str:
    """Return the table of a group between the comments that mark its place."""
    begin, end = _comments(group.name)
    about = f"**{group.name}**, per second, over {group.seconds:,} seconds:"
    return "\n".join([begin, "", about, "", HEADER, *lines, "", end])


def put(text: str, group: Group, lines: list[str]) -> str:
    """Return the page with the table of a group."""
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
