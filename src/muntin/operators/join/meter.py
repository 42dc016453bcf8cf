"""What a running join measures for the planner: rates, rows, distinct values, selectivities.

Rates are rows stored since the last measurement per event time that passed. Distinct values are
counted by linear counting over the ring, selectivities on samples of the windows. Measured once per
window's worth of rows, all of it is O(1) per row.

A window shows no more values than it has rows, so where there are many values the share of equal
pairs does not follow from their numbers: it is counted. Where few pairs are equal, or samples are
small, the count is uncertain and is weighed against the estimate from the numbers of values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.kernels.join_sample import count_pairs, count_values
from muntin.model.clock import BEFORE_ALL
from muntin.model.statistics import JoinStatistics, SourceStatistics
from muntin.state.join_state import JoinState

_SECOND = 1_000_000
_SAMPLE = 2_048
_WEIGHT = 8.0
"""The equal pairs that the estimate counts as."""

Integers = npt.NDArray[np.int64]
Node = tuple[int, int]
Edge = tuple[Node, Node]
Edges = tuple[tuple[Edge, float], ...]


class Meter:
    """Keeps how far each store was at the last reading, and the equal pairs found so far."""

    def __init__(self, state: JoinState, classes: Iterable[frozenset[Node]]) -> None:
        self._state = state
        self._classes = tuple(sorted(classes, key=sorted))
        self._then = BEFORE_ALL
        self._inserted = np.zeros(len(state.specs), np.int64)
        self._seen: dict[Edge, tuple[float, float]] = {}

    def start(self, now: int) -> None:
        """Begin to count, unless it has begun."""
        if self._then <= BEFORE_ALL:
            self._begin(now)

    def _begin(self, now: int) -> None:
        self._then = now
        self._inserted = self._state.stores[:, layout.NEXT].copy()

    def rates(self, now: int) -> list[float] | None:
        """Return rows per second of each source since the last reading; None if no time passed."""
        if self._then <= BEFORE_ALL or now <= self._then:
            return None
        arrived = self._state.stores[:, layout.NEXT] - self._inserted
        return [float(count) * _SECOND / (now - self._then) for count in arrived]

    def read(self, now: int) -> JoinStatistics | None:
        """Return the measurements since the last reading; None if there are none."""
        if self._then <= BEFORE_ALL or now <= self._then:
            return None
        passed = (now - self._then) / _SECOND
        stores = self._state.stores
        arrived = stores[:, layout.NEXT] - self._inserted
        self._begin(now)
        sources = []
        for s, spec in enumerate(self._state.specs):
            held = (
                int(stores[s, layout.HELD]) if spec.kind != layout.STORED else self._state.rows(s)
            )
            if not held or (spec.kind != layout.STORED and not arrived[s]):
                return None
            rate = 0.0 if spec.kind == layout.STORED else float(arrived[s]) / passed
            rows = rate * spec.size / _SECOND if spec.kind == layout.TIME else float(held)
            sources.append(
                SourceStatistics(
                    rate,
                    rows,
                    tuple(max(1.0, self._state.distinct(s, code)) for code in range(spec.codes)),
                )
            )
        return JoinStatistics(tuple(sources), self._edges(sources))

    def _edges(self, sources: Sequence[SourceStatistics]) -> Edges:
        found = []
        for members in self._classes:
            counted = {node: CodeSample.of(self._state.sample(*node, _SAMPLE)) for node in members}
            for one, other in combinations(sorted(members), 2):
                if one[0] != other[0]:
                    estimate = 1 / max(
                        sources[one[0]].distinct[one[1]], sources[other[0]].distinct[other[1]]
                    )
                    found.append(
                        (
                            (one, other),
                            self._share((one, other), counted[one], counted[other], estimate),
                        )
                    )
        return tuple(found)

    def _share(self, edge: Edge, one: CodeSample, other: CodeSample, estimate: float) -> float:
        """Return the share of equal pairs; earlier samples count half as much each time."""
        matches, pairs = self._seen.get(edge, (0.0, 0.0))
        matches, pairs = (
            matches / 2 + one.equal_pairs(other),
            pairs / 2 + float(len(one.codes) * len(other.codes)),
        )
        self._seen[edge] = matches, pairs
        return (matches + _WEIGHT) / (pairs + _WEIGHT / estimate)


@dataclass(frozen=True)
class CodeSample:
    """A sample of codes, and a table with the count of each value."""

    codes: Integers
    values: Integers
    counts: Integers

    @classmethod
    def of(cls, codes: Integers) -> CodeSample:
        """Return a sample with its table."""
        places = 1 << (2 * len(codes)).bit_length()
        counted = cls(
            np.ascontiguousarray(codes), np.zeros(places, np.int64), np.zeros(places, np.int64)
        )
        count_values(counted.codes, counted.values, counted.counts)
        return counted

    def equal_pairs(self, other: CodeSample) -> int:
        """Return the number of equal pairs of a code here and one there."""
        return int(count_pairs(self.codes, other.values, other.counts))
