"""What a live view of a query shows, as HTML: a chart as inline SVG, or a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

import pyarrow as pa

from muntin.model.printable import printable

POINTS = 240
"""The most points of a chart; older ones leave it."""
ROWS = 20
"""The most rows of a table."""
_WIDTH, _HEIGHT, _EDGE = 640, 160, 24


class Point(NamedTuple):
    """Results per second at a moment."""

    at: float
    rate: float


def view_html(
    name: str,
    state: str,
    points: Sequence[Point] | None,
    figures: Mapping[str, object],
    answer: pa.Table | None,
) -> str:
    """Return a view: with ``points`` a chart, otherwise the answer; and the figures."""
    shown = "" if points is None else chart_svg(points)
    if points is None and answer is not None:
        shown = _answer_html(answer)
    return (
        f"<p>Query <b>{_text(name)}</b>: {_text(state)}</p>{shown}"
        f"{_table(list(figures), [list(figures.values())])}"
    )


def chart_svg(points: Sequence[Point]) -> str:
    """Return results per second over time as a picture.

    >>> "no results yet" in chart_svg([])
    True
    """
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="11" '
        'fill="currentColor">'
    )
    bottom = _HEIGHT - _EDGE
    axis = (
        f'<line x1="0" y1="{bottom}" x2="{_WIDTH}" y2="{bottom}" stroke="currentColor" '
        'stroke-opacity="0.4"/>'
    )
    if not points:
        return f'{head}{axis}<text x="4" y="{bottom - 6}">no results yet</text></svg>'
    first, last = points[0].at, points[-1].at
    most = max(point.rate for point in points)
    line = " ".join(
        f"{_across(point.at, first, last):.1f},{_up(point.rate, most):.1f}" for point in points
    )
    return (
        f"{head}{axis}"
        f'<polyline points="{line}" fill="none" stroke="#3367d6" stroke-width="1.5"/>'
        f'<text x="4" y="14">at most {most:,.0f} results per second, '
        f"now {points[-1].rate:,.0f}</text>"
        f'<text x="4" y="{_HEIGHT - 8}">{last - first:.0f} seconds ago</text>'
        f'<text x="{_WIDTH - 4}" y="{_HEIGHT - 8}" text-anchor="end">now</text></svg>'
    )


def _across(at: float, first: float, last: float) -> float:
    return _WIDTH if last <= first else (at - first) / (last - first) * _WIDTH


def _up(rate: float, most: float) -> float:
    room = _HEIGHT - 2 * _EDGE
    return _HEIGHT - _EDGE - (rate / most * room if most > 0 else 0)


def _answer_html(answer: pa.Table) -> str:
    rows = [list(row.values()) for row in answer.slice(0, ROWS).to_pylist()]
    more = f"<p>{len(answer) - ROWS:,} more rows</p>" if len(answer) > ROWS else ""
    return _table(answer.column_names, rows) + more


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th>{_text(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    side = "right" if is_number else "left"
    return f'<td style="text-align:{side}">{_text("" if value is None else value)}</td>'


def _text(value: object) -> str:
    return escape(printable(value))
