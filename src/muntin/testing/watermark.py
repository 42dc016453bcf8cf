"""How far the order of all rows is final: the rule of INTERFACE section 2, for the oracle's side.

A stream sends nothing earlier than its newest time minus its slack; equal times may still come, but later rows of one
stream stand behind earlier ones, so the order is final up to and including that stream's rows of that time. The least
such place, over the streams that queries read, is the frontier. ``advance`` completes an instant on all streams.
A row is late when its place is before the frontier that the rows have reached, or its time before an advanced instant.
(Rows of exactly an advanced instant are still taken, but behind those processed before: the oracle knows no such order,
so feed them before you advance.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

_EVERY_STREAM = 1 << 62
_NOWHERE = -(2**62)


@dataclass(frozen=True, order=True)
class Frontier:
    """The order is final for rows of times before ``time``, and at ``time`` for streams up to ``order`` (of declaration)."""

    time: int
    order: int = _EVERY_STREAM

    @property
    def closed(self) -> int:
        """The last instant that is complete on all streams."""
        return self.time if self.order == _EVERY_STREAM else self.time - 1

    @property
    def exact(self) -> bool:
        """Whether the frontier is an instant that is complete on all streams."""
        return self.order == _EVERY_STREAM

    def last_time(self, order: int) -> int:
        """Up to which time the rows of the stream declared at ``order`` are final."""
        return self.time if order <= self.order else self.time - 1


@dataclass
class Watermark:
    """Follows the times of the rows that are fed; all times in microseconds."""

    _final: Frontier = Frontier(_NOWHERE, -1)
    _advanced: int = _NOWHERE
    _slack: dict[str, int] = field(default_factory=dict)
    _newest: dict[str, int] = field(default_factory=dict)
    _followed: set[str] = field(default_factory=set)

    def declare(self, stream: str, slack: int) -> None:
        """A further stream."""
        self._slack[stream.casefold()] = slack

    def follow(self, streams: Iterable[str]) -> None:
        """The streams that queries read; all count while there are none."""
        self._followed = {stream.casefold() for stream in streams}

    def arrive(self, stream: str, time: int) -> bool:
        """Take note of a row; whether it is in time."""
        name = stream.casefold()
        place = Frontier(time, list(self._slack).index(name))
        if place < max(self._least({name}), self._final) or time < self._advanced:
            return False
        self._newest[name] = max(time, self._newest.get(name, time))
        self._final = max(self._final, self._least(set()))
        return True

    @property
    def frontier(self) -> Frontier:
        """How far the order is final, by the rows or by ``advance``."""
        return max(self._final, Frontier(self._advanced))

    @property
    def advanced(self) -> int | None:
        """The last instant to which time was advanced, if it was."""
        return self._advanced if self._advanced > _NOWHERE else None

    def advance(self, at: int) -> None:
        """Nothing up to ``at`` will come any more."""
        self._advanced = max(self._advanced, at)

    def _least(self, besides: set[str]) -> Frontier:
        order = {name: place for place, name in enumerate(self._slack)}
        counted = (self._followed or self._slack.keys()) | besides
        return min(Frontier(self._newest[name] - self._slack[name] if name in self._newest else _NOWHERE, order[name]) for name in counted)
