"""A join below a pipeline: its signed rows go to the operators above it, not to results."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.operators.join import Matches
from muntin.operators.signed import Changes, merged
from muntin.plan.query import Query
from muntin.runtime.result_expiry import signed_rows
from muntin.runtime.running_join import RunningJoin
from muntin.runtime.running_query import RunningQuery

Arrivals: TypeAlias = tuple[npt.NDArray[np.float64] | float, int]
"""The moments at which rows arrived, and the number of rows."""


class RunningLeaf(RunningQuery):
    """A join below operators: passes signed rows on; the tree consolidates its result."""

    def __init__(self, query: Query, join: RunningJoin, duck: Duck) -> None:
        super().__init__(query, join, duck)
        self._waiting: list[Changes] = []
        self._arrivals: list[Arrivals] = []
        self._turn = -1
        self._nothing = Changes.none(self._columns)
        self._taken: tuple[Changes, list[Arrivals]] = self._nothing, []

    @property
    def owner(self) -> str:
        """Return the name of the query that it is part of; the leaf's name adds a number."""
        return self.query.name.rpartition("/")[0]

    @property
    def has_matches(self) -> bool:
        """Return whether matches have come since the last turn."""
        return bool(self._arrivals)

    def is_fresh(self) -> bool:
        """Return whether no row has come since it began, so it has no matches yet."""
        return all(state.log.next == since for state, since in self._since.items())

    def first_time(self) -> int | None:
        """Return the time of the first row after the query; ask before logs are trimmed."""
        times = [
            state.log.time_at(since)
            for state, since in self._since.items()
            if state.log.next > since
        ]
        return min(times, default=None)

    def taken(self, matches: Matches) -> pa.Table | None:
        """Keep the changes of matches for the pipeline."""
        matches = self._maker.passing(self._since_registered(matches))
        if len(matches):
            self._arrivals.append(matches.added())
            if self.expiry is not None:
                self._remember(self.expiry, matches)
            else:
                self._waiting.append(signed_rows(matches, self._maker.select, self.query.every))
        return None

    @property
    def remembers(self) -> bool:
        """Always true: the operators above it keep results."""
        return True

    def changes(self) -> pa.Table | None:
        """Return nothing: the pipeline takes changes by :meth:`take`."""
        return None

    def take(self, turn: int, until: int) -> tuple[Changes, list[Arrivals]]:
        """Return the changes since the turn before, and when their rows came, once per turn.

        They are those up to an instant that all leaves of the pipelines above have reached.
        """
        if self._turn != turn:
            try:
                self._taken = self._changes_since(until), self._arrivals
            except Exception as error:
                self.failure = error  # all pipelines above it fail
                raise
            self._arrivals = []
            self._turn = turn
        return self._taken

    def _changes_since(self, until: int) -> Changes:
        if self.expiry is not None:
            # First, so that at one instant what goes is before what comes, also if that was kept.
            gone = self.expiry.rows(until, self._maker.select)
            self._waiting[:0] = [gone] if len(gone) else []
        if not self._waiting:
            return self._nothing
        found = merged(self._waiting, self._columns)
        self._waiting.clear()
        if len(found) and (found.times[1:] < found.times[:-1]).any():
            order = np.argsort(found.times, kind="stable")
            ends = None if found.ends is None else found.ends[order]
            found = Changes(
                found.columns.take(pa.array(order)), found.times[order], found.signs[order], ends
            )
        if len(found) and found.times[-1] > until:  # another leaf has not come as far
            self._waiting.append(found.where(found.times > until))
            found = found.where(found.times <= until)
        return found
