"""The inputs of a group of queries, and the frontier up to which their rows are final."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muntin.model.clock import AFTER_ALL, BEFORE_ALL
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow
from muntin.plan.nodes import Scan
from muntin.runtime.stream_clock import Mask, Place, StreamState, Times, least_watermark
from muntin.runtime.stream_input import StreamInput
from muntin.state.batch import Batch

NOWHERE: Place = (BEFORE_ALL, -1)
_EVERY_STREAM = 1 << 62


@dataclass(frozen=True)
class Promise:
    """A frontier set from outside: ``advanced`` on all streams, ``final`` in the total order."""

    advanced: int = BEFORE_ALL
    final: Place = NOWHERE


class GroupInputs:
    """The rows of some streams, which become final together."""

    def __init__(self, inputs: Iterable[StreamInput], promise: Promise) -> None:
        self.inputs = {each.stream.name: each for each in inputs}
        self.advanced = promise.advanced
        """The instant to which event time was advanced."""
        self.frontier_of_rows = promise.final
        """The place up to which the total order is final by rows."""

    # -- time --------------------------------------------------------------------------------------

    @property
    def frontier(self) -> Place:
        """The place up to which the total order is final."""
        return max(self.frontier_of_rows, (self.advanced, _EVERY_STREAM))

    @property
    def closed(self) -> int:
        """The last instant that is complete on all streams."""
        instant, order = self.frontier
        return instant if order == _EVERY_STREAM else instant - 1

    @property
    def floor(self) -> Place:
        """Rows before this place are late.

        Rows of exactly the instant that ``advance`` reached are still taken: only earlier ones were
        excluded.
        """
        return max(self.frontier_of_rows, (self.advanced, -1))

    def advance(self, instant: int) -> None:
        """Advance event time: no earlier row comes on any stream."""
        self.advanced = max(self.advanced, instant)

    def move(self, final: Place | None = None) -> None:
        """Move the frontier to the least watermark, or to a place, and final rows into the logs."""
        self.frontier_of_rows = max(
            self.frontier_of_rows, least_watermark(self._sources()) if final is None else final
        )
        frontier = self.frontier
        for each in self.inputs.values():
            each.release(frontier)

    def _sources(self, besides: StreamState | None = None) -> list[StreamState]:
        return [each.source for each in self.inputs.values() if each.source is not besides]

    def waits_for(self) -> StreamState | None:
        """Return the stream that holds back waiting rows of other streams, if there is one."""
        if not self.inputs:
            return None
        last = min(self._sources(), key=lambda source: source.place)
        waiting = (each for each in self.inputs.values() if each.source is not last)
        return last if any(each.waiting() for each in waiting) else None

    # -- rows --------------------------------------------------------------------------------------

    def take(self, source: StreamState, batch: Batch, own: Times) -> Mask | None:
        """Take rows that came at these watermarks of their stream; return a mask of the late ones.

        None: none is late.
        """
        others = self._sources(besides=source)
        waits = least_watermark(others) if others else (AFTER_ALL, 0)
        return self.inputs[source.stream.name].take(batch, own, waits, self.floor)

    def take_final(self, stream: str, batch: Batch) -> Mask | None:
        """Take rows whose watermark is kept elsewhere; return a mask of the late ones, or None."""
        return self.inputs[stream].take_final(batch, self.floor)

    def rows_late(self) -> int:
        """Return how many rows were late for this group."""
        return sum(each.rows_late for each in self.inputs.values())

    def lacks(self, source: Scan, other: StreamInput) -> bool:
        """Return whether another group holds more of the rows that a new query's window reaches."""
        own, window = self.inputs[source.relation], source.window
        if isinstance(window, TimeWindow):
            after = self.frontier[0] - window.micros
            return own.held_after(after) < other.held_after(after)
        if isinstance(window, RowsWindow):
            return own.held_after() < min(window.rows, other.held_after())
        assert isinstance(window, PartitionedWindow), "a stream has one of three windows"
        return own.held_after() < other.held_after()
