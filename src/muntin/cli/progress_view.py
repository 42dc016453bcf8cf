"""The progress of a run on Spark: a table in the terminal, plain lines, or JSON; on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table as TextTable
from rich.text import Text

from muntin.model.printable import printable

_SPAN = 5.0
"""Seconds over which rates are averaged."""

_DAY = 86_400
_REDRAW = 1.0
"""Seconds after which an unchanged table is redrawn, to update the lag."""

Extra = Callable[[], RenderableType]


def _clock() -> float:
    return time.time()


@dataclass
class ProgressView:
    """Renders the progress of an engine.

    Lag is relative to ``now``, a clock of the streams' time in seconds since 1970, or to the newest
    row if it is None.
    """

    now: Callable[[], float] | None = _clock
    _last: Mapping[str, Any] | None = None
    _past: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)

    def take(self, progress: Mapping[str, Any] | None, moment: float) -> bool:
        """Take the progress at a moment of a monotonic clock; return whether it is a new batch."""
        if progress is None or (self._last is not None and _batch(progress) == _batch(self._last)):
            return False
        self._last = progress
        self._past.append(
            (
                moment,
                {name: counts["rows"] for name, counts in progress["muntin"]["streams"].items()},
            )
        )
        while len(self._past) > 2 and moment - self._past[0][0] > _SPAN:
            self._past.popleft()
        return True

    def rates(self) -> dict[str, float]:
        """Return the recent rows per second of each stream."""
        if len(self._past) < 2:
            return {}
        (begin, first), (end, last) = self._past[0], self._past[-1]
        return {
            name: (rows - first.get(name, 0)) / max(end - begin, 1e-9)
            for name, rows in last.items()
        }

    def lag(self) -> str:
        """Return the lag of the watermark as text: behind the clock, or behind the newest row.

        The newest row counts if the watermark is more than a day from the clock.
        """
        watermark, newest = (
            (_seconds(self._last["muntin"][key]) for key in ("watermark", "newest"))
            if self._last
            else (None, None)
        )
        if watermark is None:
            return ""
        behind = None if self.now is None else self.now() - watermark
        if behind is not None and 0 <= behind < _DAY:
            return f", {behind:,.1f} s behind the clock"
        return (
            "" if newest is None else f", {max(newest - watermark, 0):,.1f} s behind the newest row"
        )

    def line(self) -> str:
        """Return one line about the last batch."""
        if self._last is None:
            return "Spark is starting"
        ours = self._last["muntin"]
        rates = self.rates()
        rows = ", ".join(
            f"{name} {counts['rows']:,} rows"
            + (f" ({rates[name]:,.0f}/s)" if name in rates else "")
            + _late(counts["late"])
            for name, counts in ours["streams"].items()
        )
        results = ", ".join(
            f"{name} {count:,}{_after(ours['queries'][name])}"
            for name, count in ours["results"].items()
        )
        return (
            f"batch {self._last['batchId']} in {_batch_seconds(self._last):.2f} s: {rows}; "
            f"results: {results}; watermark {ours['watermark'] or 'none yet'}{self.lag()}; "
            f"{ours['rows_held']:,} rows held"
        )

    def machine_line(self) -> str:
        """Return the progress as a line of JSON."""
        return json.dumps(self._last)

    def panel(self) -> RenderableType:
        """Return the progress as tables for a terminal."""
        if self._last is None:
            return Text("Spark is starting; the first batch takes a while", style="dim")
        ours, rates = self._last["muntin"], self.rates()
        streams = _table("stream", "rows", "rows/s", "late")
        for name, counts in ours["streams"].items():
            streams.add_row(
                _name(name),
                f"{counts['rows']:,}",
                f"{rates[name]:,.0f}" if name in rates else "",
                f"{counts['late']:,}",
            )
        queries = _table("query", "results", "response", "p95", "max")
        for name, count in ours["results"].items():
            queries.add_row(
                _name(name),
                f"{count:,}",
                *_response(ours["queries"][name]["batch_response_seconds"]),
            )
        side = TextTable.grid(padding=(0, 3))
        side.add_row(streams, queries)
        summary = (
            f"batch {self._last['batchId']}, {_batch_seconds(self._last):.2f} s; "
            f"watermark {ours['watermark'] or 'none yet'}{self.lag()}; "
            f"{ours['rows_held']:,} rows held"
        )
        troubles = [Text(printable(line), style="yellow") for line in _troubles(ours)]
        return Group(side, Text(summary), *troubles)


def _table(*columns: str) -> TextTable:
    table = TextTable(box=None, header_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left")
    return table


def _name(text: str) -> Text:
    """Return a name for a table, without markup and control characters."""
    return Text(printable(text))


def _response(times: Mapping[str, float]) -> tuple[str, str, str]:
    """Return mean, 95th percentile and maximum as text; empty if there were no results."""
    return (
        (_short(times["mean"]), _short(times["p95"]), _short(times["max"]))
        if times["max"]
        else ("", "", "")
    )


def _after(query: Mapping[str, Any]) -> str:
    """Return the mean response time of the last batch, for a line."""
    mean = query["batch_response_seconds"]["mean"]
    return f" ({_short(mean)})" if mean else ""


def _short(seconds: float) -> str:
    """Return a time with three digits.

    >>> [_short(seconds) for seconds in (0.0000421, 0.00421, 0.421, 4.21, 421.0)]
    ['42.1 us', '4.21 ms', '421 ms', '4.21 s', '421 s']
    """
    scale, unit = next(
        ((scale, unit) for scale, unit in ((1.0, "s"), (1e3, "ms")) if seconds * scale >= 1),
        (1e6, "us"),
    )
    value = seconds * scale
    return f"{value:.{max(2 - len(str(int(value))) + 1, 0)}f} {unit}"


def _troubles(ours: Mapping[str, Any]) -> list[str]:
    """Return warnings about subscribers that missed results or failed."""
    found = []
    if ours["unsent"]:
        found.append(
            f"{ours['unsent']:,} results may not have reached subscribers: "
            "partitions cannot connect to the driver"
        )
    for name, query in ours["queries"].items():
        for subscriber in query["subscribers"]:
            if subscriber["rows_left_out"]:
                found.append(
                    f"a subscriber of {name} is too slow: "
                    f"{subscriber['rows_left_out']:,} results were dropped"
                )
            if subscriber["failures"]:
                found.append(
                    f"a subscriber of {name} has failed {subscriber['failures']:,} times: "
                    f"{subscriber['last_failure']}"
                )
    return found


def _batch(progress: Mapping[str, Any]) -> tuple[object, object]:
    return progress.get("runId"), progress["batchId"]


def _batch_seconds(progress: Mapping[str, Any]) -> float:
    return float(progress.get("durationMs", {}).get("triggerExecution", 0)) / 1000


def _late(count: int) -> str:
    return f", {count:,} late" if count else ""


def _seconds(instant: str | None) -> float | None:
    return (
        None if instant is None else datetime.fromisoformat(instant).replace(tzinfo=UTC).timestamp()
    )


class Screen:
    """Shows a view: live where stderr is a terminal, else as lines or as JSON.

    Lines appear at most every ``pause`` seconds, JSON for every batch.
    """

    def __init__(
        self,
        view: ProgressView,
        *,
        as_json: bool = False,
        pause: float = 2.0,
        extra: Extra | None = None,
    ) -> None:
        self._view = view
        self._as_json = as_json
        self._pause = pause
        self._extra = extra
        self._shown_at = -1e9
        self._pending = False
        self._console = Console(stderr=True, highlight=False)
        self.live = self._console.is_terminal and not as_json
        # Console sinks print above the table; if stdout is not a terminal, they bypass it.
        self._display = (
            Live(console=self._console, auto_refresh=False, redirect_stdout=sys.stdout.isatty())
            if self.live
            else None
        )

    def shown(self) -> AbstractContextManager[object]:
        """Return a context during which the view is shown."""
        return self._display or nullcontext()

    def update(self, progress: Mapping[str, Any] | None, *, last: bool = False) -> None:
        """Show the progress of an engine; at once if it is the ``last``."""
        moment = time.monotonic()
        new = self._view.take(progress, moment)
        if self._display is not None:
            if new or last or moment - self._shown_at >= _REDRAW:
                self._shown_at = moment
                panel = self._view.panel()
                self._display.update(
                    Group(panel, self._extra()) if self._extra else panel, refresh=True
                )
        elif self._as_json:
            if new:
                self._print(self._view.machine_line())
        else:
            self._pending = self._pending or new
            if self._pending and (last or moment - self._shown_at >= self._pause):
                self._shown_at, self._pending = moment, False
                self._print(printable(self._view.line()))

    def _print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, markup=False, highlight=False)
