"""Writes the table of settings into docs/reference/settings.md, from the code that checks them.

A test fails when the table and the code differ.
"""

from __future__ import annotations

import re
from pathlib import Path

from muntin.model.settings import DESCRIPTIONS, Settings

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "settings.md"
BEGIN = "<!-- settings: begin (python scripts/settings_table.py writes what follows) -->"
END = "<!-- settings: end -->"


def settings_table() -> str:
    """Every setting with its default and its meaning, as Markdown."""
    defaults = Settings()
    rows = ["| setting | default | meaning |", "| --- | --- | --- |"]
    for name, meaning in DESCRIPTIONS.items():
        default = getattr(defaults, name)
        rows.append(
            f"| [`{name}`](#{name}) | {f'`{default}`' if default else 'empty'} | {meaning.replace('|', chr(92) + '|')} |"
        )
    return "\n".join(rows)


def put(text: str) -> str:
    """The page with the table of today."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    assert pattern.search(text), "the page has the two comments"
    return pattern.sub(lambda _: f"{BEGIN}\n\n{settings_table()}\n\n{END}", text)


if __name__ == "__main__":
    PAGE.write_text(put(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
