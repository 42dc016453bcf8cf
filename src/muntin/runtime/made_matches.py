"""The matches that a limited join has made, to be told from those that it could have made.

A set is given by an array of positions with a line for each source.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from muntin.model.arrays import Integers
from muntin.operators.join import Matches
from muntin.runtime.result_expiry import HybridExpiry, ResultExpiry
from muntin.state.columns import StoredRows
from muntin.state.stream_log import StreamLog


class MadeMatches:
    """A set of matches."""

    def __init__(self, positions: Integers) -> None:
        self._rows = _as_rows(positions)

    def of(self, matches: Matches) -> Matches:
        """Return those of some matches that are in the set."""
        inside = np.isin(_as_rows(matches.positions), self._rows)
        return matches if inside.all() else matches.where(inside)


def made_by(
    expiry: ResultExpiry | None, sources: Sequence[StreamLog | StoredRows]
) -> Integers | None:
    """Return the matches that have not ended, if they are kept as matches.

    Positions are the places of rows among those that their stream or table holds.
    """
    if not isinstance(expiry, HybridExpiry):
        return None
    members = expiry.members()
    for place, rows in enumerate(sources):
        if isinstance(rows, StreamLog):
            members[place] = rows.ranks(members[place])
    return members


def _as_rows(positions: Integers) -> npt.NDArray[np.void]:
    """Return one value per match, which is equal for equal positions."""
    rows = np.ascontiguousarray(positions.T)
    return rows.view(np.dtype([("", np.int64)] * rows.shape[1])).ravel()
