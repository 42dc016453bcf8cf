"""Matches of a join: the positions of their rows, one per source, with times and signs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Matches:
    """Matches in order: ``positions`` has a line per source, ``arrivals`` are of newest rows.

    The arrays belong to the operator that made them, up to its next batch of matches.
    """

    times: Integers
    signs: npt.NDArray[np.int8] | None
    positions: Integers
    arrivals: npt.NDArray[np.float64] | float

    def __len__(self) -> int:
        return len(self.times)

    def where(self, mask: npt.NDArray[np.bool_]) -> Matches:
        """Return the matches of a mask, by place: numpy takes several times as long with masks."""
        places = np.flatnonzero(mask)
        signs = None if self.signs is None else self.signs.take(places)
        arrivals = self.arrivals if isinstance(self.arrivals, float) else self.arrivals.take(places)
        return Matches(
            self.times.take(places), signs, self.positions.take(places, axis=1), arrivals
        )

    def added(self) -> tuple[npt.NDArray[np.float64] | float, int]:
        """Return when the newest rows of added matches arrived, and how many matches there are.

        Retractions are caused by time, not by a row.
        """
        if self.signs is None:
            return self.arrivals, len(self)
        added = self.signs > 0
        arrivals = self.arrivals if isinstance(self.arrivals, float) else self.arrivals[added]
        return arrivals, int(added.sum())

    @staticmethod
    def concatenate(one: Matches, other: Matches) -> Matches:
        """Return released matches, which only come, before others."""
        return Matches(
            np.concatenate([one.times, other.times]),
            None,
            np.concatenate([one.positions, other.positions], axis=1),
            np.concatenate([one.arrivals, other.arrivals], axis=None),
        )

    def between(self, start: int, stop: int) -> Matches:
        """Return the matches of some places, over the same arrays."""
        signs = None if self.signs is None else self.signs[start:stop]
        arrivals = self.arrivals if isinstance(self.arrivals, float) else self.arrivals[start:stop]
        return Matches(self.times[start:stop], signs, self.positions[:, start:stop], arrivals)

    def of_level(self, level: int, inside: Inside) -> Matches:  # noqa: ARG002
        """Return the matches of one level of windows: those that ``inside`` lets through."""
        return self if inside is None else inside(self)


Inside: TypeAlias = Callable[[Matches], Matches] | None
"""A filter of the matches inside some windows; None: all are."""


class LevelMatches(Protocol):
    """Matches for queries with different windows; each different set of windows is a level."""

    def of_level(self, level: int, inside: Inside) -> Matches:
        """Return the matches of a level; ``inside`` filters those of the largest windows."""
