"""Results that a join has released while the engine runs by itself, on their way to the queries.

Making the rows of results takes about as long as finding them. So that a row that arrives never waits for both, released results are
put aside, and handed out in turns of their own, one query's at a time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.operators.scheduled_join import Released

if TYPE_CHECKING:
    from muntin.runtime.running_query import RunningQuery

Handed = Iterator[tuple["RunningQuery", pa.Table]]

_MANY = 1 << 13
"""Results that are handed out however little time was spent on finding them."""
_PIECE = 1 << 12
"""Results whose rows are made in a turn, about: so a turn of handing out takes no longer than one of joining."""


class InFlight:
    """Keeps what was released, in order, and says when it is worth handing out; ``hand`` makes the tables of the queries."""

    def __init__(self, hand: Callable[[Released], Handed]) -> None:
        self._hand = hand
        self._aside: deque[Released] = deque()
        self._handing: Handed | None = None
        self._results = 0
        self._worked = 0
        self._cost = self._last_cost = 0

    def __bool__(self) -> bool:
        """Whether anything is on its way."""
        return bool(self._aside) or self._handing is not None

    def put(self, released: Released | None, worked: int = 0) -> None:
        """Put results aside that took so many nanoseconds to find."""
        self._worked += worked
        if released is not None:
            self._aside.append(released.kept())
            self._results += released.count

    def is_due(self) -> bool:
        """Whether to hand out now: as long was spent on finding as handing out took last, or there are many."""
        return self._handing is not None or (
            bool(self._aside) and (self._worked >= self._last_cost or self._results >= _MANY)
        )

    def next(self) -> Handed:
        """Hand out the results of one query, if there are any."""
        begin = time.monotonic_ns()
        if self._handing is None and self._aside:
            self._handing = self._all()
            self._worked = self._cost = 0
        if self._handing is not None:
            piece = next(self._handing, None)
            self._cost += time.monotonic_ns() - begin
            if piece is None:
                self._handing = None
                self._last_cost = self._cost
            else:
                yield piece

    def _all(self) -> Handed:
        """All there is now, put together up to a size."""
        pieces, self._results = deque(self._aside), 0
        self._aside.clear()
        while pieces:
            some = [pieces.popleft()]
            while pieces and sum(one.count for one in some) + pieces[0].count <= _PIECE:
                some.append(pieces.popleft())
            yield from self._hand(Released.together(some))
