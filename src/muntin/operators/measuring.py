"""What a running join measures of itself for the planner: rates, rows, different values, selectivities.

Rates are rows stored since the last measurement over the event time that passed. Different values are counted by linear
counting over the ring, selectivities on samples of the windows; measured once for every window's worth of rows, all of it is
O(1) a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.model.clock import BEFORE_ALL
from muntin.model.statistics import JoinStatistics, SourceStatistics
from muntin.state.join_state import JoinState

_SECOND = 1_000_000
_SAMPLE = 2_048
_ENOUGH = 64
"""Matches in a sample from which its share is believed (to an eighth)."""

Node = tuple[int, int]
Edges = tuple[tuple[tuple[Node, Node], float], ...]


class Meter:
    """Remembers how far each store was when it was last read."""

    def __init__(self, state: JoinState, classes: Iterable[frozenset[Node]]) -> None:
        self._state = state
        self._classes = tuple(sorted(classes, key=sorted))
        self._then = BEFORE_ALL
        self._inserted = np.zeros(len(state.specs), np.int64)

    def start(self, now: int) -> None:
        """Count from here, unless it counts already."""
        if self._then <= BEFORE_ALL:
            self._begin(now)

    def _begin(self, now: int) -> None:
        self._then = now
        self._inserted = self._state.stores[:, layout.NEXT].copy()

    def rates(self, now: int) -> list[float] | None:
        """Rows a second of each source since the last reading, which costs next to nothing; None when no time passed."""
        if self._then <= BEFORE_ALL or now <= self._then:
            return None
        arrived = self._state.stores[:, layout.NEXT] - self._inserted
        return [float(count) * _SECOND / (now - self._then) for count in arrived]

    def read(self, now: int) -> JoinStatistics | None:
        """What was measured since the last reading; None when no time passed or a window is empty."""
        if self._then <= BEFORE_ALL or now <= self._then:
            return None
        passed = (now - self._then) / _SECOND
        stores = self._state.stores
        arrived = stores[:, layout.NEXT] - self._inserted
        self._begin(now)
        sources = []
        for s, spec in enumerate(self._state.specs):
            held = int(stores[s, layout.HELD]) if spec.kind != layout.STORED else self._state.rows(s)
            if not held or (spec.kind != layout.STORED and not arrived[s]):
                return None
            rate = 0.0 if spec.kind == layout.STORED else float(arrived[s]) / passed
            rows = rate * spec.size / _SECOND if spec.kind == layout.TIME else float(held)
            sources.append(SourceStatistics(rate, rows, tuple(max(1.0, self._state.distinct(s, code)) for code in range(spec.codes))))
        return JoinStatistics(tuple(sources), self._edges())

    def _edges(self) -> Edges:
        found = []
        for members in self._classes:
            samples = {node: _counted(self._state.sample(*node, _SAMPLE)) for node in members}
            for one, other in combinations(sorted(members), 2):
                share = None if one[0] == other[0] else shared(samples[one], samples[other])
                if share is not None:
                    found.append(((one, other), share))
        return tuple(found)


Counted = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _counted(codes: npt.NDArray[np.int64]) -> Counted:
    values, counts = np.unique(codes, return_counts=True)
    return values, counts


def shared(one: Counted, other: Counted) -> float | None:
    """The share of pairs of equal values in two samples (values and their counts); None when there are too few to tell."""
    _, mine, yours = np.intersect1d(one[0], other[0], assume_unique=True, return_indices=True)
    matches = int((one[1][mine] * other[1][yours]).sum())
    return matches / (int(one[1].sum()) * int(other[1].sum())) if matches >= _ENOUGH else None
