"""What joins with what, how selective it is, and so what each step of a join order meets.

Generalises paper 3's estimate to joins on different attributes: a row that reaches a window is looked up by every equality
with the sources bound before, each of which lets through one row in as many as there are different values on the side that
has more of them (or the share that was measured); of several bound sources with one common value, the least selective
counts, which is the one with the fewest values. For a join on one common attribute this is the paper's formula.

Absurd statistics are taken for the nearest that make sense, so no estimate is ever negative, infinite or undefined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan

from muntin.model.statistics import JoinStatistics, SourceStatistics
from muntin.planner.classes import Node

_LEAST, _MOST = 1e-6, 1e12
_THETA = {"<": 1 / 3, "<=": 1 / 3, ">": 1 / 3, ">=": 1 / 3}
"""Share of pairs that a comparison lets through when nothing is known: the customary third."""

OWN_BUCKETS = 2.5
"""Buckets a row that an index of our own choice has: two for each place of a ring, of which some are free."""
_LEAST_PLACES = 205.0
"""Rows of a window for which the smallest ring there is would be made."""


def sane(number: float, least: float = _LEAST) -> float:
    """A number that can be calculated with."""
    return least if isnan(number) else min(max(number, least), _MOST)


@dataclass(frozen=True)
class Step:
    """What one partial result meets in a window: rows looked at, rows that match, codes compared with each, whether by an index."""

    looked: float
    matched: float
    checks: int
    indexed: bool


@dataclass(frozen=True)
class _Known:
    steps: dict[tuple[frozenset[int], int], Step]
    sizes: dict[frozenset[int], float]


@dataclass(frozen=True)
class JoinGraph:
    """The predicates of a join that codes decide, with the statistics of its sources.

    ``buckets`` has for each source the number of its index's buckets: 0 for an index of our own choice, 1 for none.
    """

    statistics: JoinStatistics
    classes: tuple[frozenset[Node], ...]
    comparisons: tuple[tuple[Node, str, Node], ...]
    buckets: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of sources."""
        return len(self.statistics.sources)

    def having(self, buckets: Sequence[int]) -> JoinGraph:
        """The same join with other indexes."""
        return JoinGraph(self.statistics, self.classes, self.comparisons, tuple(buckets))

    def rate(self, source: int) -> float:
        """New rows a second; 0 for a stored table."""
        rate = self.statistics.sources[source].rate
        return sane(rate) if rate != 0 else 0.0

    def rows(self, source: int) -> float:
        """Rows in the window."""
        return sane(self.statistics.sources[source].rows)

    def distinct(self, node: Node) -> float:
        """Different values of a code; never more than there are rows."""
        known: SourceStatistics = self.statistics.sources[node[0]]
        values = known.distinct[node[1]] if node[1] < len(known.distinct) else known.rows
        return sane(values, 1.0)

    @cached_property
    def _edges(self) -> Mapping[tuple[Node, Node], float]:
        return dict(self.statistics.edges)

    def selectivity(self, one: Node, other: Node, operator: str = "=") -> float:
        """The share of pairs of rows that a predicate between two codes lets through: measured, or estimated."""
        pair = (one, other) if one < other else (other, one)
        measured = self._edges.get(pair)
        if measured is not None and operator == "=":
            return min(sane(measured, 1e-12), 1.0)
        equal = 1 / max(self.distinct(one), self.distinct(other))
        return equal if operator == "=" else 1 - equal if operator == "<>" else _THETA[operator]

    def connected(self, bound: int, source: int) -> bool:
        """Whether an equality lets one source look up the other."""
        return any({bound, source} <= {node[0] for node in members} for members in self.classes)

    @cached_property
    def _known(self) -> _Known:
        """Estimates made before: searches ask for the same ones over and over."""
        return _Known({}, {})

    def step(self, bound: frozenset[int], source: int) -> Step:
        """What a combination of rows of the bound sources meets in the window of ``source``."""
        found = self._known.steps.get((bound, source))
        if found is None:
            found = self._known.steps[bound, source] = self._step(bound, source)
        return found

    def _step(self, bound: frozenset[int], source: int) -> Step:
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
            if (left[0] == source and right[0] in bound) or (right[0] == source and left[0] in bound):
                passing *= self.selectivity(left, right, operator)
                checks += 1
        rows, buckets = self.rows(source), self.buckets[source]
        if not keyed or buckets == 1:
            return Step(rows, rows * passing, max(checks, 1), indexed=False)
        # Rows of one value stay together, however many buckets there are.
        share = max(equal, 1 / buckets) if buckets else min(1.0, equal + 1 / (OWN_BUCKETS * max(rows, _LEAST_PLACES)))
        return Step(rows * share, rows * passing, max(checks, 1), indexed=True)

    def size(self, sources: frozenset[int]) -> float:
        """Combinations of rows of these sources, inside their windows, that match: what a tree would keep for them."""
        found = self._known.sizes.get(sources)
        if found is None:
            found = self._known.sizes[sources] = self._size(sources)
        return found

    def _size(self, sources: frozenset[int]) -> float:
        bound: frozenset[int] = frozenset()
        size = 1.0
        for source in self._connected_order(sources):
            size *= self.step(bound, source).matched if bound else self.rows(source)
            bound |= {source}
        return sane(size, 0.0)

    def _connected_order(self, sources: frozenset[int]) -> list[int]:
        rest = sorted(sources)
        order = [rest.pop(0)]
        while rest:
            found = next((s for s in rest if any(self.connected(bound, s) for bound in order)), rest[0])
            rest.remove(found)
            order.append(found)
        return order

    def birth_rate(self, sources: frozenset[int]) -> float:
        """Combinations of these sources that are made a second."""
        size = self.size(sources)
        return sane(sum(self.rate(source) * size / self.rows(source) for source in sources), 0.0)
