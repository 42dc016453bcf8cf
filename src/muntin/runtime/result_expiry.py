"""Retract results of a query where its join does not ([HammadTR, section 3]).

A match ends when the first of its rows leaves its window, which is known in advance. Under Hybrid,
matches are kept as positions, and their rows are built again when they end. Under Time Probing and
Input Triggered, rows are built once and kept; under the latter they leave only when a row comes.
Operators above a join take rows with their ends instead, and expire them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.model.settings import Strategy
from muntin.model.window import window_size
from muntin.operators.expire import Expire
from muntin.operators.expire_matches import ExpireMatches
from muntin.operators.join import Matches
from muntin.operators.signed import BEGINNING, Changes, merged
from muntin.plan.query import Query

Integers = npt.NDArray[np.int64]
_HORIZON = 86_400_000_000
"""The most that a timing wheel is laid out for, in microseconds; results may stay longer."""
Select: TypeAlias = Callable[[Matches], pa.Table]
"""Makes the columns of the select list."""


class ResultExpiry(Protocol):
    """Keeps the results of one query until they end."""

    def take(self, matches: Matches, ends: Integers, select: Select) -> None:
        """Take matches and their ends."""

    def changes(self, now: int, select: Select) -> Changes:
        """Return the signed rows since the last call, up to ``now``."""

    def rows(self, now: int, select: Select) -> Changes:
        """Return the same for operators that go by the strategy: rows may have ends."""

    def release(self) -> None:
        """Let the next call of :meth:`changes` go by ``now`` alone."""

    def __len__(self) -> int:
        """Return the number of results that are kept."""

    def nbytes(self) -> int:
        """Return the bytes of results that are kept."""


class HybridExpiry:
    """Keeps matches."""

    def __init__(self, query: Query) -> None:
        horizon = max(min(window_size(source.window), _HORIZON) for source in query.sources)
        self._every = query.every
        self._nothing = Changes.none(pa.schema(list(query.output_schema)[2:]))
        self._kept = ExpireMatches(len(query.sources), horizon)

    def take(self, matches: Matches, ends: Integers, select: Select) -> None:  # noqa: ARG002
        """Take matches and their ends."""
        times, positions = shown(matches.times, self._every), matches.positions
        if self._every is not None:
            ends = shown(ends, self._every)
            seen = np.flatnonzero(ends > times)  # what ends before it is shown never is
            times, ends, positions = times[seen], ends[seen], positions.take(seen, axis=1)
        self._kept.take(times, ends, positions)

    def changes(self, now: int, select: Select) -> Changes:
        """Return the signed rows since the last call, up to ``now``."""
        if not self._kept.is_due(now):
            return self._nothing
        return signed_rows(self._kept.run(now), select)

    rows = changes

    def release(self) -> None:
        """Do nothing: it always goes by ``now``."""

    def members(self) -> Integers:
        """Return the positions of the matches that are kept, a row for each source."""
        return self._kept.members()

    def __len__(self) -> int:
        return len(self._kept)

    def nbytes(self) -> int:
        """Return the bytes of matches that are kept."""
        return self._kept.nbytes()


class ProbedExpiry:
    """Keeps rows until event time reaches their ends."""

    def __init__(self, query: Query) -> None:
        self._every = query.every
        self._schema = pa.schema(list(query.output_schema)[2:])
        self._nothing = Changes.none(self._schema)
        self._kept = Expire(self._schema)
        self._came: list[Changes] = []

    def take(self, matches: Matches, ends: Integers, select: Select) -> None:
        """Take matches and their ends."""
        ones = np.ones(len(matches), np.int64)
        times = shown(np.array(matches.times), self._every)
        came = Changes(select(matches), times, ones, shown(ends, self._every))
        # What ends before it is shown never is.
        self._came.append(came if self._every is None else came.where(came.explicit_ends() > times))

    def changes(self, now: int, select: Select) -> Changes:
        """Return the signed rows since the last call, up to ``now``."""
        came = self.rows(now, select)
        until = self._until(came, now)
        return self._kept.run(came, until) if len(came) or self._kept.next <= until else came

    def rows(self, now: int, select: Select) -> Changes:  # noqa: ARG002
        """Return the rows since the last call with their ends, which operators expire."""
        came, self._came = self._came, []
        return merged(came, self._schema) if came else self._nothing

    def _until(self, came: Changes, now: int) -> int:  # noqa: ARG002
        return now

    def release(self) -> None:
        """Do nothing: it always goes by ``now``."""

    def __len__(self) -> int:
        return len(self._kept)

    def nbytes(self) -> int:
        """Return the bytes of rows that are kept."""
        return self._kept.nbytes()


class TriggeredExpiry(ProbedExpiry):
    """Keeps rows; those that end wait until a row arrives."""

    def __init__(self, query: Query) -> None:
        super().__init__(query)
        self._releases = False

    def release(self) -> None:
        """Let the next call of :meth:`changes` retract all that has ended."""
        self._releases = True

    def _until(self, came: Changes, now: int) -> int:
        releases, self._releases = self._releases, False
        if releases:
            return now
        return int(came.times[-1]) if len(came) else BEGINNING


EXPIRIES: Mapping[Strategy, Callable[[Query], ResultExpiry]] = {
    Strategy.NEGATIVE: HybridExpiry,
    Strategy.PROBING: ProbedExpiry,
    Strategy.INPUT: TriggeredExpiry,
}
"""By the strategy of the operators above a join; those under Hybrid receive signed rows."""


def shown(instants: Integers, every: int | None) -> Integers:
    """Return the instants at which a query shows changes: the next multiples of EVERY."""
    return instants if every is None else -(-instants // every) * every


def signed_rows(matches: Matches, select: Select, every: int | None = None) -> Changes:
    """Return matches that come, and go unless none do, as signed rows, when they are shown."""
    times = shown(np.array(matches.times), every)
    signs = np.ones(len(matches)) if matches.signs is None else matches.signs
    return Changes(select(matches), times, signs.astype(np.int64))
