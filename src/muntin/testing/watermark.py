"""How far the order of all rows is final for a query, for the oracle's side.

A stream sends nothing earlier than its newest time minus its slack; equal times may still come, but
later rows of one stream stand behind earlier ones, so the order is final up to and including that
stream's rows of that time. The least such place, over the streams that a query reads, is the
query's frontier. ``advance`` completes an instant on all streams. A row is late for a query when
its place is before the frontier that the rows have reached, or its time before an advanced instant;
so one row may be late for one query and not for another. (Rows of exactly an advanced instant are
still taken, but behind those processed before: the oracle does not model that order, so feed them
before you advance.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

_EVERY_STREAM = 1 << 62
_NOWHERE = -(2**62)


@dataclass(frozen=True, order=True)
class OrderFrontier:
    """The order is final for times before ``time``, and at ``time`` for streams up to ``order``.

    Streams are numbered by declaration.
    """

    time: int
    order: int = _EVERY_STREAM

    @property
    def closed(self) -> int:
        """Return the last instant that is complete on all streams."""
        return self.time if self.order == _EVERY_STREAM else self.time - 1

    @property
    def exact(self) -> bool:
        """Return whether the frontier is an instant that is complete on all streams."""
        return self.order == _EVERY_STREAM

    def last_time(self, order: int) -> int:
        """Return the time up to which rows of the stream declared at ``order`` are final."""
        return self.time if order <= self.order else self.time - 1


@dataclass(frozen=True)
class Arrival:
    """The queries for which a row was late; ``lost`` if all readers of its stream are."""

    late_for: frozenset[str]
    lost: bool

    @property
    def late(self) -> bool:
        """Return whether the row was late for any query."""
        return self.lost or bool(self.late_for)


@dataclass
class Watermark:
    """Follows the times of the rows that are fed; all times in microseconds."""

    _advanced: int = _NOWHERE
    _slack: dict[str, int] = field(default_factory=dict)
    _newest: dict[str, int] = field(default_factory=dict)
    _read: dict[str, frozenset[str]] = field(default_factory=dict)
    _begun: dict[str, int] = field(default_factory=dict)
    _stamped: list[str] = field(default_factory=list)

    def declare(self, stream: str, slack: int, *, arrival: bool = False) -> None:
        """Declare a stream; with ``arrival``, its rows are stamped when they arrive."""
        self._slack[stream.casefold()] = slack
        if arrival:
            self._stamped.append(stream.casefold())

    def follow(self, query: str, streams: Iterable[str]) -> OrderFrontier:
        """Add a query that reads some streams; return the frontier at which it begins."""
        name = query.casefold()
        self._read[name] = frozenset(stream.casefold() for stream in streams)
        if self._advanced > _NOWHERE:
            self._begun[name] = self._advanced
        return self.frontier(query)

    def forget(self, query: str) -> None:
        """Drop a query."""
        self._read.pop(query.casefold(), None)
        self._begun.pop(query.casefold(), None)

    def arrive(self, stream: str, time: int) -> Arrival:
        """Take note of a row; return the queries it is late for."""
        name = stream.casefold()
        if name in self._stamped:  # whatever comes later on any such stream has a later time
            self._newest.update(dict.fromkeys(self._stamped, time + 1))
            return Arrival(frozenset(), lost=False)
        place = OrderFrontier(time, list(self._slack).index(name))
        readers = {query: read for query, read in self._read.items() if name in read}
        late = {query for query, read in readers.items() if self._is_late(place, read)}
        # With queries a stream that none of them reads waits for no other; without, all wait for
        # each other.
        idle = not readers and self._is_late(place, [name] if self._read else self._slack)
        lost = idle or (bool(readers) and len(late) == len(readers))
        self._newest[name] = max(time, self._newest.get(name, time))
        return Arrival(frozenset(late), lost)

    def _is_late(self, place: OrderFrontier, streams: Iterable[str]) -> bool:
        return place < self._least(streams) or place.time < self._advanced

    def frontier(self, query: str) -> OrderFrontier:
        """Return the frontier of a query, set by its streams' rows or by ``advance``."""
        return max(self._least(self._read[query.casefold()]), OrderFrontier(self._advanced))

    def advanced(self, query: str) -> int | None:
        """Return the first instant to which ``advance`` moved a query, or the last before it.

        An advance to an instant that the rows have passed moves nothing.
        """
        return self._begun.get(query.casefold())

    def advance(self, at: int) -> None:
        """Complete the instant ``at`` on all streams."""
        for query in self._read.keys() - self._begun.keys():
            if OrderFrontier(at) > self.frontier(query):
                self._begun[query] = at
        self._advanced = max(self._advanced, at)

    def _least(self, streams: Iterable[str]) -> OrderFrontier:
        order = {name: place for place, name in enumerate(self._slack)}
        return min(
            OrderFrontier(
                self._newest[name] - self._slack[name] if name in self._newest else _NOWHERE,
                order[name],
            )
            for name in streams
        )
