"""The counts of what was dropped, so that counters never fall.

A query that is dropped leaves ``/metrics``. When its name is used again its counters go on from
where they were: else a query that is replaced between two scrapes would seem to lose results.
"""

from __future__ import annotations

from typing import Generic, Protocol, Self, TypeVar

_REMEMBERED = 1_000
"""Names whose counts are kept, those that were dropped last."""


class Addable(Protocol):
    """Counts that can be added up."""

    def __add__(self, other: Self, /) -> Self:
        """Return the sums."""


Counts = TypeVar("Counts", bound=Addable)


class Finished(Generic[Counts]):
    """The counts of dropped queries, or streams, by name whatever its case.

    ``total`` has those of all names, also of the ones no longer remembered.

    >>> finished = Finished(0)
    >>> finished.add("q", 3), finished.add("Q", 4)
    (None, None)
    >>> finished.before("q"), finished.before("r"), finished.total
    (7, 0, 7)
    """

    def __init__(self, nothing: Counts) -> None:
        self.total = nothing
        self._nothing = nothing
        self._counts: dict[str, Counts] = {}

    def add(self, name: str, counts: Counts) -> None:
        """Add the counts of something that is dropped."""
        key = name.casefold()
        self.total = self.total + counts
        self._counts[key] = self._counts.pop(key, self._nothing) + counts
        while len(self._counts) > _REMEMBERED:
            del self._counts[next(iter(self._counts))]

    def before(self, name: str) -> Counts:
        """Return the counts of all that had a name and was dropped."""
        return self._counts.get(name.casefold(), self._nothing)
