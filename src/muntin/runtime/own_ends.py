"""The own ends of rows: when the rows of a match leave before their time windows would end them.

TUMBLE ends a row with the aligned window that contains its time, UNTIL at the instant in a column;
NULL there means that it stays. The conditions of the join keep matches out that never are: those of
which one row has ended when another comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.model.window import TimeWindow
from muntin.operators.join import Matches
from muntin.plan.query import Query

if TYPE_CHECKING:
    from muntin.runtime.running_join import RunningJoin

Integers = npt.NDArray[np.int64]
_STAYS = np.iinfo(np.int64).max


class OwnEnds:
    """Computes the ends of matches of one query, which has its join alone if rows have any."""

    def __init__(self, query: Query, join: RunningJoin) -> None:
        self._join = join
        self._windows = [
            (place, source.window)
            for place, source in enumerate(query.sources)
            if isinstance(source.window, TimeWindow)
            and (source.window.phase is not None or source.window.until is not None)
        ]

    def limit(self, ends: Integers, matches: Matches) -> Integers:
        """Return the ends of matches, given those that their time windows set."""
        for place, window in self._windows:
            ends = np.minimum(ends, self._of_source(place, window, matches.positions[place]))
        return ends

    def present(self, matches: Matches, now: int) -> Matches:
        """Return the matches that have not ended at an instant."""
        if not self._windows or not len(matches):
            return matches
        return matches.where(self.limit(np.full(len(matches), _STAYS), matches) > now)

    def _of_source(self, place: int, window: TimeWindow, positions: Integers) -> Integers:
        if window.phase is not None:
            times = self._join.distances.times(place, positions)
            return times - (times - window.phase) % window.micros + window.micros
        assert window.until is not None, "the other way to have own ends"
        (column,) = self._join.rows[place].gather(positions, [window.until])
        instants = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        found: Integers = instants.fill_null(_STAYS).to_numpy()
        return found
