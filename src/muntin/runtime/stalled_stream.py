"""The stream that a query waits for: it holds back rows of the other streams."""

from __future__ import annotations

from dataclasses import dataclass

from muntin.model.clock import BEFORE_ALL, format_instant
from muntin.plan.description import Description, Fact


@dataclass(frozen=True)
class Waiting:
    """A stream that is waited for: its newest time, and how many seconds ago its last row came.

    If no row has come, these are the seconds since the query was registered.
    """

    stream: str
    newest: int
    since_seconds: float

    @property
    def newest_text(self) -> str | None:
        """Return the newest time as text, None before the first row."""
        return None if self.newest <= BEFORE_ALL else format_instant(self.newest)

    def to_dict(self) -> dict[str, str | float | None]:
        """Return it for ``stats`` and ``progress``."""
        return {
            "stream": self.stream,
            "newest": self.newest_text,
            "since_seconds": self.since_seconds,
        }


def describe_waiting(waiting: Waiting) -> Description:
    """Return a line of ``explain``.

    >>> describe_waiting(Waiting("B", BEFORE_ALL, 12.3)).label
    'waiting for stream B: no rows yet (since 12 s)'
    >>> describe_waiting(Waiting("B", 0, 0.2)).label
    'waiting for stream B: newest row 1970-01-01 00:00:00 (since 0 s)'
    """
    newest = "no rows yet" if waiting.newest_text is None else f"newest row {waiting.newest_text}"
    label = f"waiting for stream {waiting.stream}: {newest} (since {waiting.since_seconds:.0f} s)"
    return Description(
        "waiting_for", label, tuple(Fact(name, value) for name, value in waiting.to_dict().items())
    )
