"""How far the queries of a join have got while its work is deferred.

A tactic that defers its work (:mod:`muntin.operators.join.shared`) serves some windows before
others: a level has all matches up to the instant before the oldest row that has not finished it.
Queries with inserts get a match at once. Changes of an instant are made together, so queries with
changes, and the operators above joins, get the matches of complete instants only; those of the
instant in progress are kept here, per level. So what a query emits does not depend on when the join
released it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import monotonic_ns
from typing import TYPE_CHECKING

import numpy as np

from muntin.operators.join import Matches, NewRows
from muntin.operators.join.matches import LevelMatches
from muntin.operators.join.released import ReleasedMatches
from muntin.operators.join.schedule import TurnPace
from muntin.plan.query import Emit
from muntin.runtime.join_scheduling import levels_of
from muntin.runtime.result_queue import Results

if TYPE_CHECKING:
    from muntin.runtime.running_join import RunningJoin


def _nothing() -> Results:
    return iter(())


class LevelProgress:
    """The progress of the levels of one join, and the delivery of what they have reached.

    ``above`` runs the operators above the join over that.
    """

    def __init__(self, join: RunningJoin) -> None:
        self._join = join
        self.above: Callable[[], Results] = _nothing
        self._complete: dict[tuple[int, ...], int] = {}
        """While matches are routed, the instant up to which those of each level are complete."""
        self._reached: dict[tuple[int, ...], int] = {}
        """While work is deferred, the instant up to which each level has got its matches."""
        self._early: dict[tuple[int, ...], Matches] = {}

    def reached(self, sizes: tuple[int, ...]) -> int:
        """Return the instant up to which the queries of some windows have got all matches."""
        if not self._reached:
            return self._join.now
        return self._reached.get(sizes, min(self._reached.values()))

    @property
    def is_partial(self) -> bool:
        """Return whether the matches that are routed may be a part of those of their instants."""
        return bool(self._complete)

    def is_behind(self) -> bool:
        """Return whether a level lacks matches, or the changes of instants that are complete."""
        return any(instant < self._join.now for instant in self._reached.values())

    def begin(self) -> None:
        """Note what has been reached before rows are taken whose work is deferred.

        Rows of the last instant may still come: a join begins at a frontier within an instant.
        """
        if self._join.query.emit is Emit.CHANGES and not self._reached:
            levels = levels_of(self._join.query, self._join.group)
            self._reached = dict.fromkeys(levels, self._join.now - 1)

    def end(self) -> None:
        """Note that no work is deferred any more."""
        assert not self._early, "the matches of complete instants are routed"
        self._reached = {}

    def work(self, news: Sequence[NewRows], until: int, pace: TurnPace) -> Results:
        """Yield the results of new rows in the order of the scheduler."""
        self.begin()
        for released in self._join.operator.run(news, until, pace):
            began = monotonic_ns()
            yield from self.deliver([released])
            pace.delivered(monotonic_ns() - began)
        yield from self.deliver([])
        self.end()

    def deliver(self, pieces: Iterable[LevelMatches]) -> Results:
        """Yield the results of all that the join has released up to now."""
        join = self._join
        if self._reached:
            levels = levels_of(join.query, join.group)
            self._complete = dict(zip(levels, self._instants(), strict=True))
        for piece in pieces:
            yield from join.route(piece)
        if any(early.times[0] <= self._until(sizes) for sizes, early in self._early.items()):
            yield from join.route(ReleasedMatches.nothing(len(join.plan.sources)))
        if self._reached:
            self._reached, self._complete = self._complete, {}
            yield from self.emit()

    def _instants(self) -> list[int]:
        """Return the instants that the levels have reached; with EVERY, those that are shown."""
        every, now = self._join.query.every, self._join.now
        return [
            instant if every is None or instant >= now else instant // every * every
            for instant in self._join.operator.work.reached()
        ]

    def emit(self) -> Results:
        """Yield the changes of queries, and of those above the join, up to what is reached."""
        for member in self._join.members:
            yield from self._join.results(member, member.changes)
        yield from self.above()

    def complete(self, sizes: tuple[int, ...], matches: Matches) -> Matches:
        """Return the matches of a level that are due now; keep those of the last instant."""
        if sizes in self._early:
            matches = Matches.concatenate(self._early.pop(sizes), matches)
        due = int(np.searchsorted(matches.times, self._until(sizes), side="right"))
        if due == len(matches):
            return matches
        self._early[sizes] = matches.between(due, len(matches))
        return matches.between(0, due)

    def _until(self, sizes: tuple[int, ...]) -> int:
        return self._complete.get(sizes, min(self._complete.values()))
