"""``muntin demo``: two generated sensor streams, standing queries, results as they change.

Runs in process. On a terminal the last changes of every query are shown live; otherwise they are printed as lines.
"""

from __future__ import annotations

import time
from typing import Self

import pyarrow as pa
from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

import muntin
from muntin.model.clock import parse_instant
from muntin.testing.generators import HUMIDITY, TEMPERATURE, sensor_stream

SCRIPT = """
CREATE STREAM Temperature (LocationId INT, Value DOUBLE, ts TIMESTAMP) WITH (time = 'ts');
CREATE STREAM Humidity (LocationId INT, Value DOUBLE, ts TIMESTAMP) WITH (time = 'ts');

CREATE QUERY muggy AS
  SELECT T.LocationId, T.Value AS temperature, H.Value AS humidity
  FROM Temperature T, Humidity H
  WHERE T.LocationId = H.LocationId AND T.Value > 27 AND H.Value > 72
  WINDOW 2 SECONDS;

CREATE QUERY alarms AS
  SELECT T.LocationId, T.Value AS temperature
  FROM Temperature T [RANGE 1 SECOND]
  WHERE T.Value > 30
  EMIT CHANGES;

CREATE QUERY spread AS
  SELECT A.LocationId, B.Value - A.Value AS rise
  FROM Temperature A [PARTITION BY LocationId ROWS 3], Temperature B [PARTITION BY LocationId ROWS 3]
  WHERE A.LocationId = B.LocationId AND B.Value > A.Value + 3
  EVERY 1 SECOND;
"""

_STEP = 0.25
_SHOWN = 8
_START = parse_instant("2026-01-01")


class Board:
    """The last changes of every query."""

    def __init__(self, queries: list[muntin.StandingQuery]) -> None:
        self._recent: dict[str, list[str]] = {query.name: [] for query in queries}
        self._totals = dict.fromkeys(self._recent, 0)

    def add(self, name: str, changes: pa.Table) -> list[str]:
        """Take changes and return them as lines."""
        self._totals[name] += len(changes)
        shown = [_line(row) for row in changes.slice(max(0, len(changes) - _SHOWN)).to_pylist()]
        self._recent[name] = [*self._recent[name], *shown][-_SHOWN:]
        return shown

    def panels(self) -> Columns:
        """One panel a query."""
        panels = []
        for name, lines in self._recent.items():
            body = Text("\n".join(lines) or "nothing yet")
            body.highlight_regex(r"^\+.*$", "green")
            body.highlight_regex(r"^-.*$", "red")
            panels.append(Panel(body, title=f"{name}: {self._totals[name]:,} changes", width=66, height=_SHOWN + 2))
        return Columns(panels)


def _line(row: dict[str, object]) -> str:
    values = "  ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items() if name[0] != "_"
    )
    moment = row["_ts"]
    return f"{row['_op']} {moment:%H:%M:%S.%f}"[:-4] + f"  {values}"


def run_demo(seconds: float, rate: int) -> None:
    """Push readings as time passes and show what the queries say."""
    console = Console(highlight=False)
    engine = muntin.Engine()
    queries = engine.execute(SCRIPT)
    board = Board(queries)
    steps = max(1, round(seconds / _STEP))
    rows = max(1, round(rate * _STEP))
    temperature = sensor_stream(rows * steps, rate, TEMPERATURE, 1, start=_START)
    humidity = sensor_stream(rows * steps, rate, HUMIDITY, 2, start=_START)
    if not console.is_terminal:
        console.print(f"{seconds:g} seconds of two sensor streams, {rate} readings a second each; the last change of each step:")
    begin = time.monotonic()
    with Live(console=console, refresh_per_second=8, transient=False) if console.is_terminal else _Quiet() as live:
        for step in range(steps):
            engine.push("Temperature", temperature.slice(step * rows, rows))
            engine.push("Humidity", humidity.slice(step * rows, rows))
            engine.advance(_START + round((step + 1) * _STEP * 1_000_000) - 1)
            for query in queries:
                lines = board.add(query.name, query.poll())
                if not console.is_terminal and lines:
                    console.print(f"{query.name:>8} {lines[-1]}", soft_wrap=True)
            live.update(Group(Text(f"{(step + 1) * _STEP:.1f} s, {2 * rows * (step + 1):,} readings"), board.panels()))
            time.sleep(max(0.0, begin + (step + 1) * _STEP - time.monotonic()))
    for query in queries:
        stats = query.stats()
        response, state = stats["response_seconds"], stats["state_rows"]
        assert isinstance(response, dict), "stats reports it"
        assert isinstance(state, dict), "stats reports it"
        console.print(
            f"{query.name}: {stats['rows_in']:,} rows in, {stats['rows_out']:,} changes out, {len(query.answer()):,} rows in the answer, "
            f"{sum(state.values()):,} rows held, 99 % of results within {response['p99'] * 1000:.1f} ms",
            soft_wrap=True,
        )


class _Quiet:
    """Stands in for the live display where there is no terminal."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, _: object) -> None:
        """Show nothing."""
