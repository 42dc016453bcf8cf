"""The rows of the logs that a join still needs; the others can be trimmed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.model.clock import BEFORE_ALL
from muntin.model.window import RowsWindow, TimeWindow
from muntin.runtime.stream_input import StreamInput

if TYPE_CHECKING:
    from muntin.runtime.running_join import RunningJoin


class LogRetention:
    """The needs of one join."""

    def __init__(self, join: RunningJoin) -> None:
        self._join = join
        self._floor: list[int] = []

    def reads(self, state: StreamInput) -> bool:
        """Return whether the join reads a stream."""
        return state in self._join.cursors.streams

    def hold(self) -> None:
        """Keep what is needed now for as long as the join is busy with deferred work."""
        now = self._join.now
        self._floor = [self.first_needed(each, now) for each in self._join.cursors.streams]

    def needs(self, state: StreamInput) -> int:
        """Return the position from which on the join needs the rows of a stream.

        Rows that are not processed yet may need what was needed when they arrived.
        """
        needed = self.first_needed(state, self._join.now)
        if not self._join.is_busy():
            return needed
        return min(needed, self._floor[self._join.cursors.streams.index(state)])

    def first_needed(self, state: StreamInput, now: int) -> int:
        """Return the first position of a stream that a time or count window still reaches.

        An operator that has not begun needs all rows for its partitioned windows: the log does not
        show what they have pushed out.
        """
        cursors, operator = self._join.cursors, self._join.operator
        number = cursors.streams.index(state)
        needed = read = cursors.read[number]
        for place, source in enumerate(operator.plan.query.sources):
            if cursors.stream_of[place] != number:
                continue
            kept = operator.tactic.first_kept(place)
            needed = needed if kept is None else min(needed, kept)
            if isinstance(source.window, TimeWindow):
                needed = min(needed, state.log.position_after(now - source.window.micros))
            elif isinstance(source.window, RowsWindow):
                needed = min(needed, max(read - source.window.rows, 0))
            elif operator.now == BEFORE_ALL:
                needed = 0
        return needed

    def keeps(self, state: StreamInput) -> list[int]:
        """Return the sources whose partitioned windows may keep single older rows of a stream."""
        number = self._join.cursors.streams.index(state)
        return [
            source
            for source, spec in enumerate(self._join.operator.state.specs)
            if spec.stream == number and spec.kind == layout.PARTITIONED
        ]

    def kept(self, source: int) -> npt.NDArray[np.int64]:
        """Return the positions that the partitioned window of a source keeps.

        Rows that do not join count in the window, and are among them.
        """
        return self._join.operator.events.kept(source)
