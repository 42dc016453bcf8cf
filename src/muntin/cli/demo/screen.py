"""What the demo shows: live panels on a terminal, otherwise lines."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from muntin.cli.demo.tally import Tally

_PAUSE = 3.0
"""Seconds between lines without a terminal."""
_WIDE = 110
"""Columns from which queries are shown side by side."""


@dataclass
class Stage:
    """What is going on: the title of an act, what it shows, and a line that follows events."""

    title: str
    words: str
    status: str = ""
    sinks: Sequence[Tally] = ()
    changes: bool = False
    """Whether the last changes are shown."""


@dataclass
class DemoScreen:
    """Shows a :class:`Stage`."""

    console: Console
    stage: Stage = field(default_factory=lambda: Stage("", ""))
    _line_at: float = 0.0
    _line: str = ""
    _live: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the panels, if there is a terminal, and leave the last ones."""
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, auto_refresh=False, transient=True) as self._live:
            yield
        self._live = None

    def begin(self, stage: Stage) -> None:
        """Show a stage from now on."""
        self.stage = stage
        if not self.console.is_terminal:
            self.console.print(f"\n{stage.title}\n{stage.words}", markup=False, highlight=False)
        self.update()

    def say(self, line: str) -> None:
        """Print lines that stay."""
        self.console.print(line, soft_wrap=True, markup=False, highlight=False)

    def update(self) -> None:
        """Show the present state."""
        now = time.monotonic()
        if self._live is not None:
            self._live.update(self.panel(), refresh=True)
        elif not self.console.is_terminal and now - self._line_at >= _PAUSE:
            self._line_at = now
            parts = [self.stage.status, _in_one_line(self.stage.sinks)]
            line = "  " + "; ".join(part for part in parts if part)
            if line.strip() and line != self._line:
                self.say(line)
            self._line = line

    def panel(self) -> RenderableType:
        """Return what a terminal shows."""
        stage = self.stage
        body: list[RenderableType] = [Text(stage.words)]
        if stage.sinks:
            body.append(queries_table(stage.sinks, wide=self.console.width >= _WIDE))
        if stage.changes:
            body.append(_changes(stage.sinks[0]))
        if stage.status:
            body.append(Text(stage.status, style="dim"))
        return Panel(Group(*body), title=stage.title, title_align="left", padding=(0, 1))


def queries_table(sinks: Sequence[Tally], *, wide: bool) -> Table:
    """Return a table of queries: results, and response times counted from the source."""
    sides = 2 if wide and len(sinks) > 1 else 1
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for _ in range(sides):
        for place, column in enumerate(("query", "results", "response", "longest")):
            table.add_column(column, justify="right" if place else "left")
    height = -(-len(sinks) // sides)
    for place in range(height):
        cells = [_cells(sink) for sink in sinks[place::height]]
        table.add_row(*(cell for row in cells for cell in row))
    return table


def _cells(sink: Tally) -> tuple[str, str, str, str]:
    response = sink.response()
    times = ("", "") if response is None else tuple(f"{seconds:.2f} s" for seconds in response)
    return sink.name, f"{sink.total:,}", times[0], times[1]


def _changes(sink: Tally) -> Text:
    text = Text("\n".join(sink.lines) or "no results yet", no_wrap=True, overflow="ellipsis")
    text.highlight_regex(r"(?m)^\+.*$", "green")
    text.highlight_regex(r"(?m)^-.*$", "red")
    return text


def _in_one_line(sinks: Sequence[Tally]) -> str:
    """Return the results of the first and the last query as text."""
    shown = sinks[:1] if len(sinks) < 2 else (sinks[0], sinks[-1])
    return ", ".join(
        f"{name} {total} results" + (f" after {response}" if response else "")
        for name, total, response, _ in map(_cells, shown)
    )
