"""Write the table of settings into docs/reference/settings.md, from the code that checks them.

A test fails when the table and the code differ.
"""

from __future__ import annotations

import re
from pathlib import Path

from muntin.model.settings import DECLARATIONS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "settings.md"
BEGIN = "<!-- settings: begin (python scripts/settings_table.py writes what follows) -->"
END = "<!-- settings: end -->"


def settings_table() -> str:
    """Return all settings with their defaults and their meanings, as Markdown."""
    rows = ["| setting | default | meaning |", "| --- | --- | --- |"]
    for name, declared in DECLARATIONS.items():
        default = f"`{declared.default}`" if declared.default else "empty"
        meaning = declared.description.replace("|", r"\|")
        rows.append(f"| [`{name}`](#{name}) | {default} | {meaning} |")
    return "\n".join(rows)


def put(text: str) -> str:
    """Return the page with the current table."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    assert pattern.search(text), "the page has the two comments"
    return pattern.sub(lambda _: f"{BEGIN}\n\n{settings_table()}\n\n{END}", text)


if __name__ == "__main__":
    PAGE.write_text(put(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
