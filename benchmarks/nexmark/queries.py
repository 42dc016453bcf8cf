"""The queries of ``examples/nexmark/queries.sql``, one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "nexmark"
STREAMS = ("Person", "Auction", "Bid")
_DATA = "path = 'data/"
_NAME = re.compile(r"CREATE QUERY (q\d+) AS\s")


def script(data: Path | None = None) -> str:
    """Return the script; with its data in another folder, if one is named."""
    text = (EXAMPLE / "queries.sql").read_text(encoding="utf-8")
    return text if data is None else text.replace(_DATA, f"path = '{data}/")


def declarations(data: Path | None = None) -> str:
    """Return the statements before the queries."""
    return ";\n".join(part for part in script(data).split(";\n") if not _NAME.search(part))


@cache
def queries() -> Mapping[str, str]:
    """Return the text of each query by its name, without CREATE QUERY."""
    found = {}
    for part in script().split(";\n"):
        match = _NAME.search(part)
        if match:
            found[match[1]] = part[match.end() :]
    return found
