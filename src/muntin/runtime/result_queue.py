"""The queue of matches that a join has released in the background.

Building the rows of results takes about as long as finding the matches. So that an arriving row
never waits for both, released matches are queued and delivered in separate turns, the results of
one query at a time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from muntin.operators.join.released import ReleasedMatches

Results = Iterator[tuple[str, pa.Table]]
"""Results with the names of their queries."""

_MANY = 1 << 13
"""The number of matches that are delivered however little time was spent on finding them."""
_PIECE = 1 << 12
"""About as many matches become rows in a turn: it takes no longer than a turn of joining."""


class ResultQueue:
    """Keeps released matches in order until they are due; ``deliver`` makes the results.

    ``is_behind`` says whether a delivery without matches would have results, too.
    """

    def __init__(
        self,
        deliver: Callable[[Iterable[ReleasedMatches]], Results],
        is_behind: Callable[[], bool],
    ) -> None:
        self._deliver = deliver
        self._is_behind = is_behind
        self._queued: deque[ReleasedMatches] = deque()
        self._routing: Results | None = None
        self._matches = 0
        self._worked = 0
        self._cost = self._last_cost = 0

    def __bool__(self) -> bool:
        """Return whether there is something to deliver."""
        return bool(self._queued) or self._routing is not None or self._is_behind()

    def put(self, released: ReleasedMatches | None, worked: int = 0) -> None:
        """Queue matches that took ``worked`` nanoseconds to find."""
        self._worked += worked
        if released is not None:
            self._queued.append(released.copy())
            self._matches += released.count

    def is_due(self) -> bool:
        """Return whether to deliver now.

        That is when finding took as long as the last delivery, or when there are many matches.
        """
        return self._routing is not None or (
            bool(self._queued) and (self._worked >= self._last_cost or self._matches >= _MANY)
        )

    def next(self) -> Results:
        """Yield the results of one query, if there are any."""
        begin = time.monotonic_ns()
        if self._routing is None and self:
            self._routing = self._deliver(self._pieces())
            self._worked = self._cost = 0
        if self._routing is not None:
            results = next(self._routing, None)
            self._cost += time.monotonic_ns() - begin
            if results is None:
                self._routing = None
                self._last_cost = self._cost
            else:
                yield results

    def _pieces(self) -> Iterator[ReleasedMatches]:
        """Return all that is queued now, in pieces of a limited size."""
        pieces, self._matches = deque(self._queued), 0
        self._queued.clear()
        return self._joined(pieces)

    @staticmethod
    def _joined(pieces: deque[ReleasedMatches]) -> Iterator[ReleasedMatches]:
        while pieces:
            some = [pieces.popleft()]
            while pieces and sum(one.count for one in some) + pieces[0].count <= _PIECE:
                some.append(pieces.popleft())
            yield ReleasedMatches.concatenate(some)
