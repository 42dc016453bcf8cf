"""The matches that limited joins have made, when rows move to other partitions.

A match is given by the places of its rows among those that its partition holds. It goes to every
new partition that holds all its rows, with their places there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.model.arrays import Integers
from muntin.spark.exchange.deployment import Deployment

ELSEWHERE = -1


@dataclass(frozen=True)
class RowMoves:
    """Where the rows of a stream go.

    ``places`` has for each new partition and each old one the new places of the rows, or
    :data:`ELSEWHERE`. None: all rows are everywhere, at their places.
    """

    places: Sequence[Sequence[Integers]] | None = None

    @classmethod
    def to_owners(
        cls, owners: Integers, order: Integers, counts: Sequence[int], partitions: int
    ) -> RowMoves:
        """Return the moves of rows to their owners, which hold them in this order.

        Rows are numbered through all old partitions, which hold ``counts`` of them.
        """
        cuts = np.cumsum(counts)[:-1]
        places = []
        for number in range(partitions):
            own = order[owners[order] == number]
            place = np.full(len(owners), ELSEWHERE, np.int64)
            place[own] = np.arange(len(own))
            places.append(np.split(place, cuts))
        return cls(places)

    def of(self, rows: Integers, old: int, new: int) -> Integers:
        """Return the places in a new partition of rows that an old one holds."""
        return rows if self.places is None else self.places[new][old][rows]


def moved_matches(
    made: Sequence[Mapping[str, npt.NDArray[Any]]],
    deployment: Deployment,
    moves: Mapping[tuple[str, str], RowMoves],
) -> list[dict[str, npt.NDArray[Any]]]:
    """Return the matches of each new partition, given those of each old one.

    ``moves`` is by dataflow and stream.
    """
    found: list[dict[str, npt.NDArray[Any]]] = [{} for _ in range(deployment.partitions)]
    placed_queries = deployment.placed()
    for placed in map(placed_queries.__getitem__, deployment.active(len(deployment.changes))):
        for join in (join for part in placed.parts for join in part.joins):
            own = [(old, one[join.name]) for old, one in enumerate(made) if join.name in one]
            for new, matches in enumerate(found if own else ()):
                parts = []
                for old, positions in own:
                    places = positions.copy()
                    for line, source in enumerate(join.sources):
                        if not source.stored:
                            way = moves[placed.dataflow, source.relation]
                            places[line] = way.of(positions[line], old, new)
                    parts.append(places[:, (places != ELSEWHERE).all(axis=0)])
                matches[join.name] = np.concatenate(parts, axis=1)
    return found
