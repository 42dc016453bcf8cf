"""The join graph with its selectivities, and the estimates of the steps of a join order.

Generalizes [Golab03]'s estimate to joins on different attributes: a row that reaches a window is
looked up by every equality with the sources bound before, each of which lets through one row in as
many as there are different values on the side that has more of them (or the share that was
measured); of several bound sources with one common value, the least selective counts, which is the
one with the fewest values. For a join on one common attribute this is the paper's formula.

Absurd statistics are taken for the nearest that make sense, so no estimate is ever negative,
infinite or undefined.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Any

from muntin.model.statistics import JoinStatistics, SourceStatistics
from muntin.planner.classes import CodeRef

_LEAST, _MOST = 1e-6, 1e12
_THETA = {"<": 1 / 3, "<=": 1 / 3, ">": 1 / 3, ">=": 1 / 3}
"""Share of pairs that a comparison lets through when nothing is known: the customary third."""

OWN_BUCKETS = 2.5
"""Buckets per row of an index that the user did not size: two per slot of a ring, of which some
are free."""
_LEAST_PLACES = 205.0
"""Rows of a window for which the smallest ring there is would be made."""


def sane(number: float, least: float = _LEAST) -> float:
    """Return a number that can be calculated with."""
    return least if isnan(number) else min(max(number, least), _MOST)


@dataclass(frozen=True)
class StepEstimate:
    """What one partial result meets in a window.

    Rows looked at, rows that match, codes compared with each, whether by an index.
    """

    looked: float
    matched: float
    checks: int
    indexed: bool


@dataclass(frozen=True)
class JoinGraph:
    """The predicates of a join that codes decide, with the statistics of its sources.

    ``buckets`` has for each source the number of its index's buckets: 0 for an index of our own
    choice, 1 for none.
    """

    statistics: JoinStatistics
    classes: tuple[frozenset[CodeRef], ...]
    comparisons: tuple[tuple[CodeRef, str, CodeRef], ...]
    buckets: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of sources."""
        return len(self.statistics.sources)

    def having(self, buckets: Sequence[int]) -> JoinGraph:
        """Return the same join with other indexes."""
        if tuple(buckets) == self.buckets:
            return self
        return JoinGraph(self.statistics, self.classes, self.comparisons, tuple(buckets))

    @cached_property
    def _rates(self) -> tuple[float, ...]:
        return tuple(
            sane(source.rate) if source.rate != 0 else 0.0 for source in self.statistics.sources
        )

    def rate(self, source: int) -> float:
        """Return new rows per second; 0 for a stored table."""
        return self._rates[source]

    @cached_property
    def _rows(self) -> tuple[float, ...]:
        return tuple(sane(source.rows) for source in self.statistics.sources)

    def rows(self, source: int) -> float:
        """Return the number of rows in the window."""
        return self._rows[source]

    def distinct(self, node: CodeRef) -> float:
        """Different values of a code; never more than there are rows."""
        known: SourceStatistics = self.statistics.sources[node[0]]
        values = known.distinct[node[1]] if node[1] < len(known.distinct) else known.rows
        return sane(values, 1.0)

    @cached_property
    def _edges(self) -> Mapping[tuple[CodeRef, CodeRef], float]:
        return dict(self.statistics.edges)

    def selectivity(self, one: CodeRef, other: CodeRef, operator: str = "=") -> float:
        """Return the share of pairs of rows that a predicate between two codes lets through.

        Measured, or estimated.
        """
        pair = (one, other) if one < other else (other, one)
        measured = self._edges.get(pair)
        if measured is not None and operator == "=":
            return min(sane(measured, 1e-12), 1.0)
        equal = 1 / max(self.distinct(one), self.distinct(other))
        return equal if operator == "=" else 1 - equal if operator == "<>" else _THETA[operator]

    @cached_property
    def _linked(self) -> tuple[frozenset[int], ...]:
        """For each source those that an equality connects it with."""
        groups = [frozenset(node[0] for node in members) for members in self.classes]
        return tuple(
            frozenset().union(*(group for group in groups if source in group))
            for source in range(self.count)
        )

    def linked(self, sources: frozenset[int]) -> frozenset[int]:
        """Return all sources that an equality lets one of these look up.

        These may be among them.
        """
        return frozenset().union(*(self._linked[source] for source in sources))

    @cached_property
    def _near(self) -> tuple[frozenset[int], ...]:
        """For each source those that any predicate connects it with."""
        pairs = [{left[0], right[0]} for left, _, right in self.comparisons]
        return tuple(
            linked.union(*(pair for pair in pairs if source in pair))
            for source, linked in enumerate(self._linked)
        )

    @cached_property
    def _known(self) -> dict[Hashable, Any]:
        """Estimates made before: searches ask for the same ones over and over."""
        return {}

    def step(self, bound: frozenset[int], source: int) -> StepEstimate:
        """Return the estimate of a step from the bound sources to the window of ``source``."""
        near = bound & self._near[source]
        found: StepEstimate | None = self._known.get((near, source))
        if found is None:
            found = self._known[near, source] = self._step(near, source)
        return found

    def _step(self, bound: frozenset[int], source: int) -> StepEstimate:
        equal, checks, keyed = 1.0, 0, False
        for members in self.classes:
            others = [node for node in members if node[0] in bound]
            for node in members:
                if node[0] == source and others:
                    equal *= max(self.selectivity(node, other) for other in others)
                    checks += 1
                    keyed = True
        passing = equal
        for left, operator, right in self.comparisons:
            if (left[0] == source and right[0] in bound) or (
                right[0] == source and left[0] in bound
            ):
                passing *= self.selectivity(left, right, operator)
                checks += 1
        rows, buckets = self.rows(source), self.buckets[source]
        if not keyed or buckets == 1:
            return StepEstimate(rows, rows * passing, max(checks, 1), indexed=False)
        # Rows of one value stay together, however many buckets there are.
        share = (
            max(equal, 1 / buckets)
            if buckets
            else min(1.0, equal + 1 / (OWN_BUCKETS * max(rows, _LEAST_PLACES)))
        )
        return StepEstimate(rows * share, rows * passing, max(checks, 1), indexed=True)

    def size(self, sources: frozenset[int]) -> float:
        """Return combinations of rows of these sources, inside their windows, that match.

        What a tree would keep for them.
        """
        found: float | None = self._known.get(sources)
        if found is None:
            last = self._last(sources)
            before = sources - {last}
            # Without its last source the rest is gone through in the same order.
            rows = (
                self.size(before) * self.step(before, last).matched if before else self.rows(last)
            )
            found = self._known[sources] = sane(rows, 0.0)
        return found

    def _last(self, sources: frozenset[int]) -> int:
        """Return the source that is last if the next one is always the first connected one."""
        rest = sorted(sources)
        last = rest.pop(0)
        reached = self._linked[last]
        while rest:
            last = next((source for source in rest if source in reached), rest[0])
            rest.remove(last)
            reached |= self._linked[last]
        return last

    def birth_rate(self, sources: frozenset[int]) -> float:
        """Return combinations of these sources that are made per second."""
        size = self.size(sources)
        return sane(sum(self.rate(source) * size / self.rows(source) for source in sources), 0.0)
