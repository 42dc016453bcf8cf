"""Route the matches of a join to the queries that share it.

Each query takes the matches inside its windows. A query that fails has no more results and does not
affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.operators.join import Matches
from muntin.operators.join.matches import LevelMatches
from muntin.runtime.window_distance import WindowDistances

if TYPE_CHECKING:
    from muntin.runtime.running_query import RunningQuery

Results = Iterator[tuple["RunningQuery", pa.Table]]


class MatchRouter:
    """The queries of a join; ``failing`` are those that failed since the list was last cleared."""

    def __init__(self, distances: WindowDistances) -> None:
        self.members: list[RunningQuery] = []
        self.failing: list[RunningQuery] = []
        self._distances = distances

    def route(self, found: LevelMatches, levels: Sequence[tuple[int, ...]]) -> Results:
        """Yield the results of each query; ``levels`` are the different windows of all of them."""
        level_of = {sizes: level for level, sizes in enumerate(levels)}
        narrowing = self._distances.narrowing()
        inside: dict[tuple[int, ...], Matches] = {}
        for member in self.members:
            sizes = member.sizes
            if sizes not in inside:
                narrow = partial(narrowing.apply, member.narrow)
                inside[sizes] = found.of_level(level_of.get(sizes, 0), narrow)
            if len(inside[sizes]):
                yield from self._results(member, partial(member.taken, inside[sizes]))

    def changes(self) -> Results:
        """Yield the changes that queries put together once all matches of an instant are there."""
        for member in self.members:
            yield from self._results(member, member.changes)

    def _results(self, member: RunningQuery, make: Callable[[], pa.Table | None]) -> Results:
        if member.failure is not None:
            return
        try:
            table = make()
        except Exception as error:  # noqa: BLE001 (any error concerns this query alone)
            member.failure = error
            self.failing.append(member)
            return
        if table is not None:
            yield member, table
