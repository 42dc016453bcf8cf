"""Matches that a scheduled join has released, each with the levels of windows that get it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from muntin.kernels import scheduler_state as at
from muntin.kernels.result_order import sort_matches
from muntin.kernels.shared_join import results_of_level
from muntin.operators.join.matches import Inside, Matches

Integers = npt.NDArray[np.int64]

_SECOND = 1_000_000_000


@dataclass(frozen=True)
class ReleasedMatches:
    """The first ``count`` rows of ``out``; valid until the join continues, unless copied."""

    out: Integers
    count: int
    sources: int
    in_order: bool

    @staticmethod
    def nothing(sources: int) -> ReleasedMatches:
        """Return no matches."""
        return ReleasedMatches(np.empty((0, 2 + sources + at.R_ROWS), np.int64), 0, sources, True)

    def copy(self) -> ReleasedMatches:
        """Return a copy that stays valid."""
        return replace(self, out=self.out[: self.count].copy())

    @staticmethod
    def concatenate(pieces: Sequence[ReleasedMatches]) -> ReleasedMatches:
        """Return several pieces as one, in their order."""
        if len(pieces) == 1:
            return pieces[0]
        out = np.concatenate([piece.out[: piece.count] for piece in pieces])
        return replace(pieces[0], out=out, count=len(out))

    def of_level(self, level: int, inside: Inside = None) -> Matches:  # noqa: ARG002
        """Return the matches of a level; the join has compared them with its windows already."""
        places = self.places(level)
        rows = 2 + self.sources
        chosen = self.out[places]
        mine = np.ascontiguousarray(chosen[:, :rows].T)
        if not self.in_order:
            sort_matches(mine, np.empty(len(places), np.int64), np.empty(len(places), np.int64))
        return Matches(mine[1], None, mine[2:], chosen[:, rows + at.R_ARRIVAL] / _SECOND)

    def places(self, level: int) -> Integers:
        """Return the rows of ``out`` that a level gets."""
        chosen = np.empty(self.count, np.int64)
        return chosen[: results_of_level(self.out, self.count, 2 + self.sources, level, chosen)]
