"""Windows: the rows of a stream that are inside at a position.

A row of time ``t`` is inside a time window ``w`` at instant ``T`` iff ``T - w < t <= T``. A count
window of ``n`` holds the last ``n`` rows of the stream, the newest included.

A landmark window is a time window that is longer than any stream lasts; ``SINCE`` is also a
condition on the time, which the binder adds to those of the query.

Under TUMBLE and UNTIL a row has its own end, never later than the time window reaches: the end of
the aligned window that contains its time, or the instant in one of its columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from muntin.model.clock import format_instant, format_interval

FOREVER = 2**61
"""Microseconds of a landmark window, about 73,000 years: half of what can be added to any time."""


@dataclass(frozen=True)
class TimeWindow:
    """The rows of the last ``micros`` microseconds, and of them those from ``since`` on.

    With ``phase``, windows of that length follow each other without gaps, one of them begins at
    ``phase``, and a row ends with the one that contains its time. With ``until``, a row ends at the
    instant in that column. Under ``session``, an operator above keeps rows for longer.
    """

    micros: int
    since: int | None = None
    phase: int | None = None
    until: str | None = None
    session: bool = False

    def __post_init__(self) -> None:
        assert self.micros > 0, "the binder refuses windows that hold nothing"

    def __str__(self) -> str:
        if self.since is not None:
            return f"[SINCE '{format_instant(self.since)}']"
        if self.until is not None:
            return f"[UNTIL {self.until}]"
        if self.session:
            return f"[SESSION {format_interval(self.micros)}]"
        if self.phase is not None:
            shift = f" FROM {format_interval(self.phase)}" if self.phase else ""
            return f"[TUMBLE {format_interval(self.micros)}{shift}]"
        return "[UNBOUNDED]" if self.is_landmark else f"[RANGE {format_interval(self.micros)}]"

    @property
    def is_landmark(self) -> bool:
        """Return whether rows never leave the time window."""
        return self.micros >= FOREVER


@dataclass(frozen=True)
class RowsWindow:
    """The last ``rows`` rows of the stream."""

    rows: int

    def __post_init__(self) -> None:
        assert self.rows > 0, "the binder refuses windows that hold nothing"

    def __str__(self) -> str:
        return f"[ROWS {self.rows}]"


@dataclass(frozen=True)
class PartitionedWindow:
    """The last ``rows`` rows of each combination of values of ``columns``."""

    columns: tuple[str, ...]
    rows: int

    def __post_init__(self) -> None:
        assert self.rows > 0, "the binder refuses windows that hold nothing"

    def __str__(self) -> str:
        return f"[PARTITION BY {', '.join(self.columns)} ROWS {self.rows}]"


@dataclass(frozen=True)
class Unbounded:
    """All rows at any time: the window of a stored table; ``changes``: its rows may change."""

    changes: bool = False

    def __str__(self) -> str:
        return "[CHANGING]" if self.changes else "[STORED]"


Window: TypeAlias = TimeWindow | RowsWindow | PartitionedWindow | Unbounded


def has_own_ends(window: Window) -> bool:
    """Return whether rows have their own ends.

    >>> has_own_ends(TimeWindow(5)), has_own_ends(TimeWindow(5, phase=0))
    (False, True)
    """
    return isinstance(window, TimeWindow) and (window.phase is not None or window.until is not None)


def is_changing(window: Window) -> bool:
    """Return whether a window is that of a stored table whose rows may change."""
    return isinstance(window, Unbounded) and window.changes


def window_size(window: Window) -> int:
    """Return the length of a window in microseconds or rows.

    Of windows of one kind the longer contains the shorter.

    >>> window_size(TimeWindow(5)), window_size(RowsWindow(3))
    (5, 3)
    """
    match window:
        case TimeWindow(micros):
            return micros
        case RowsWindow(rows) | PartitionedWindow(_, rows):
            return rows
        case _:
            return 0


def resized(window: Window, size: int) -> Window:
    """Return a window of the same kind, of another size."""
    return TimeWindow(size) if isinstance(window, TimeWindow) else RowsWindow(size)
