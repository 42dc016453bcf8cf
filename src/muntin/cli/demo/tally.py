"""Sinks of the demo, which keep counts, response times and the last changes."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.spark.batch_results import BatchResults
from muntin.spark.sinks import Sink

SHOWN = 4
_RECENT = 10
"""Batches over which the longest response time is shown."""


@dataclass
class Tally(Sink):
    """Counts the results of a query and how long after its newest reading each one came."""

    name: str
    total: int = 0
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=SHOWN))
    responses: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """Median and longest response time of recent batches, in seconds."""

    def write(self, results: BatchResults, batch: int) -> None:
        """Add the results of a batch."""
        del batch
        if not len(results):
            return
        rows, now = results.table(), time.time()
        waited = now - rows.column("_ts").cast(pa.int64()).to_numpy() / 1e6
        self.responses.append((float(np.median(waited)), float(waited.max())))
        self.total += len(rows)
        last = rows.slice(max(0, len(rows) - SHOWN))
        self.lines.extend(map(line_of, last.to_pylist()))

    def response(self) -> tuple[float, float] | None:
        """Return the median of the last batch and the longest of recent ones; None without any."""
        recent = list(self.responses)
        if not recent:
            return None
        return recent[-1][0], max(most for _, most in recent)


def line_of(row: dict[str, Any]) -> str:
    """Return a change as a line."""
    values = "  ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {_short(value)}"
        for name, value in row.items()
        if name[0] != "_"
    )
    return f"{row['_op']} {_short(row['_ts'])}  {values}"


def _short(value: object) -> str:
    """Return the time of day of an instant, and other values as they are."""
    return f"{value:%H:%M:%S.%f}"[:-4] if hasattr(value, "strftime") else str(value)
