"""What notebooks show of an engine and of its queries, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from muntin.model.printable import printable_lines
from muntin.plan.explanation import Explanation

_QUERY_FIGURES = ("rows_in", "rows_out", "state_bytes", "rows_late", "rows_waiting_for_poll")
_STREAM_FIGURES = ("rows_in", "rows_late", "rows_waiting", "rows_logged", "log_bytes")


def engine_html(stats: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Return the streams and queries of an engine as tables; ``texts`` has the SQL by name."""
    streams = [
        [name, *(own[figure] for figure in _STREAM_FIGURES)]
        for name, own in stats["streams"].items()
    ]
    queries = [
        [name, _summary(texts.get(name, "")), *(own[figure] for figure in _QUERY_FIGURES)]
        for name, own in stats["queries"].items()
    ]
    return (
        f"<p>Muntin engine, watermark {escape(str(stats['watermark'] or 'none yet'))}</p>"
        + _table(("stream", *_STREAM_FIGURES), streams)
        + _table(("query", "SQL", *_QUERY_FIGURES), queries)
    )


def query_html(name: str, text: str, stats: Mapping[str, Any], plan: Explanation) -> str:
    """Return a query with its text, counts and plan."""
    figures = [[stats[figure] for figure in _QUERY_FIGURES]]
    suspended = stats["suspended"]
    return (
        f"<p>Query <b>{_shown(name)}</b>, watermark "
        f"{escape(str(stats.get('watermark') or 'none yet'))}"
        + (f", suspended: {_shown(str(suspended))}" if suspended else "")
        + f"</p><pre>{_shown(text)}</pre>"
        + _table(_QUERY_FIGURES, figures)
        + plan.svg()
    )


def spark_query_html(name: str, status: str, plan: Explanation) -> str:
    """Return a query on Spark with what it does now and its plan."""
    return f"<p>Query <b>{_shown(name)}</b>: {_shown(status)}</p>" + plan.svg()


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{escape(each.replace('_', ' '))}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f'<td style="text-align:right">{value:,}</td>'
    return f'<td style="text-align:left">{_shown(str(value))}</td>'


def _summary(text: str, longest: int = 120) -> str:
    words = " ".join(text.split())
    return words if len(words) <= longest else words[: longest - 1] + "…"


def _shown(text: str) -> str:
    return escape(printable_lines(text))
