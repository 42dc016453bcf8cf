"""W-Expire right above a join ([HammadTR, section 3.2]): matches with ends in, signed matches out.

A match is kept as the positions of its members. Its row is made when it comes and again when it
goes, together with those of the other matches of the batch. The rows are still in the logs then: a
match ends when the first of its members leaves its window, and logs are trimmed only after what was
inside at the last call has gone. State: :mod:`muntin.state.expiring_matches`.
"""

from __future__ import annotations

import numpy as np

from muntin.model.arrays import Integers
from muntin.operators.instants import order_of
from muntin.operators.join import Matches
from muntin.state.expiring_matches import Endings


class ExpireMatches:
    """Keeps matches over ``sources`` sources until their ends, about ``horizon`` away at most."""

    def __init__(self, sources: int, horizon: int) -> None:
        self._endings = Endings(sources, horizon)
        self._times: list[Integers] = []
        self._positions: list[Integers] = []

    def take(self, times: Integers, ends: Integers, positions: Integers) -> None:
        """Take matches that come at ``times`` and go at ``ends``; the arrays are copied."""
        self._times.append(np.array(times))
        self._positions.append(np.array(positions))
        self._endings.put(ends, positions)

    def is_due(self, until: int) -> bool:
        """Return whether matches have come since the last call or end up to an instant."""
        return bool(self._times) or self._endings.next <= until

    def run(self, until: int) -> Matches:
        """Return the matches since the last call and those that end up to an instant; -1 first."""
        ends, gone = self._endings.pop(until)
        times = np.concatenate([ends, *self._times])
        positions = np.concatenate([gone, *self._positions], axis=1)
        signs = np.ones(len(times), np.int8)
        signs[: len(ends)] = -1
        self._times.clear()
        self._positions.clear()
        order = order_of(times)
        if order is not None:
            times, signs, positions = times[order], signs[order], positions.take(order, axis=1)
        return Matches(times, signs, positions, 0.0)

    def members(self) -> Integers:
        """Return the positions of the matches that have not ended, a row for each source."""
        return self._endings.members()

    def __len__(self) -> int:
        return len(self._endings)

    def nbytes(self) -> int:
        """Return the bytes of what is kept."""
        return self._endings.nbytes()
