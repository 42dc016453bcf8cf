"""Stamps for rows that get their time when they arrive.

Invariant: the rows of one push have one stamp, and every later push, on whatever stream, has a
later one. So stamps are in order of arrival, no row that arrives is late, and all streams that are
stamped are final up to the last stamp: none of them can hold back the others. A clock that is set
back does not move stamps back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from muntin.model.clock import BEFORE_ALL

Clock: TypeAlias = Callable[[], int]
"""Returns the time now in microseconds since 1970."""


class ArrivalClock:
    """Makes stamps from a clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.last = BEFORE_ALL
        """The last stamp or promise."""

    def stamp(self, after: int) -> int:
        """Return the time of rows that arrive now: later than all stamps before and ``after``."""
        self.last = max(self._clock(), self.last + 1, after + 1)
        return self.last

    def promise(self) -> int:
        """Return an instant, the time now, before which no row will be stamped any more."""
        self.last = max(self._clock() - 1, self.last)
        return self.last + 1
