"""Markdown: figures as text, tables, folds, and generated blocks between two comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_LONG = 14
"""Tables with more rows are folded."""


def number(value: float | str) -> str:
    """Return a figure as text: thousands set apart, no decimals that say nothing.

    >>> [number(value) for value in (3400000, 2.0, 0.97, "none")]
    ['3,400,000', '2', '0.97', 'none']
    """
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Return a table; columns in ``right`` are set to the right.

    >>> print(table(["what", "seconds"], [["it", "3"]], right=[1]))
    | what | seconds |
    | --- | ---: |
    | it | 3 |
    """
    rule = ["---:" if place in {*right} else "---" for place in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, rule, *rows])


def figures(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows of figures as a table; a column is any that one of the rows has."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    right = [
        place
        for place, column in enumerate(columns)
        if not any(isinstance(row.get(column), str) for row in rows)
    ]
    return table(
        columns, [[number(row.get(column, "")) for column in columns] for row in rows], right
    )


def folded_if_long(text: str, title: str, rows: int) -> str:
    """Return a table, folded under its title if it has many rows."""
    return text if rows <= _LONG else folded(f"{title} ({rows} rows)", text)


def folded(title: str, text: str) -> str:
    """Return a text of which a reader sees the title until he opens it."""
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>"


def between(text: str, name: str, block: str, command: str) -> str:
    r"""Return the text with the block between two comments replaced, or unchanged if it has none.

    >>> between("a <!-- x: begin --> old <!-- x: end --> b", "x", "new", "make")
    'a <!-- x: begin (make writes what follows) -->\n\nnew\n\n<!-- x: end --> b'
    """
    begin, end = f"<!-- {name}: begin ({command} writes what follows) -->", f"<!-- {name}: end -->"
    pattern = re.compile(rf"<!-- {re.escape(name)}: begin[^>]*-->.*{re.escape(end)}", re.DOTALL)
    return pattern.sub(lambda _: f"{begin}\n\n{block}\n\n{end}", text)
