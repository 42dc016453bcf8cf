"""The rows of the logs that a join still needs; the others can be trimmed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
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
        self._floor = [
            self._first_needed(number) for number in range(len(self._join.cursors.streams))
        ]

    def needs(self, state: StreamInput) -> int:
        """Return the position from which on the join needs the rows of a stream.

        Rows that are not processed yet may need what was needed when they arrived.
        """
        number = self._join.cursors.streams.index(state)
        needed = self._first_needed(number)
        return min(needed, self._floor[number]) if self._join.is_busy() else needed

    def _first_needed(self, number: int) -> int:
        return self._join.cursors.first_needed(number, self._join.operator, self._join.now)

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
        return self._join.operator.windows.maker.kept(source)
