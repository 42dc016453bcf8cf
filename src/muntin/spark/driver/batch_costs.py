"""What a batch costs: a fixed time, a time per row, and a time per unit of work. No I/O.

Work is probes plus their matches. The three costs are fitted to the last batches, each of which
counts by its relative error, and to assumptions that count as much as a tenth of a batch. The
assumptions decide only what the batches do not show: while all of them are alike, how much of their
time is fixed. No cost is negative.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt

_REMEMBERED = 12
_ASSUMED = (0.25, 2e-6, 5e-7)
"""Seconds of a batch, per row, and per unit of work."""
_BELIEF = 0.1
"""The weight of an assumption; a batch has 1."""
_LEAST_MARGIN = 1.4
"""Batches take up to this many times what is predicted, or more if some have."""


@dataclass(frozen=True)
class MeasuredBatch:
    """A batch: its duration, input rows and work, its span of event time, the time since the last.

    All times are in seconds; ``since`` is measured from the beginning of the previous batch.
    """

    seconds: float
    rows: float
    work: float
    passed: float = 0.0
    since: float = 0.0


@dataclass
class BatchCosts:
    """Learns the costs of batches."""

    batches: deque[MeasuredBatch] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    costs: tuple[float, ...] = _ASSUMED

    def learn(self, batch: MeasuredBatch) -> None:
        """Add a measured batch."""
        self.batches.append(batch)
        self.costs = _fitted(self.batches)

    def seconds(self, rows: float, work: float) -> float:
        """Return the expected duration of a batch."""
        fixed, per_row, per_unit = self.costs
        return fixed + per_row * rows + per_unit * work

    def margin(self) -> float:
        """Return by how much a batch may exceed its expected duration.

        It is the largest excess of the last batches: so the next one stays below unless it is worse
        than all of them.
        """
        excess = (one.seconds / self.seconds(one.rows, one.work) for one in self.batches)
        return max(_LEAST_MARGIN, *excess, 0.0)

    def work_in(self, seconds: float, rows: float) -> float:
        """Return the work that fits into a duration besides the rows, whatever the excess."""
        left = seconds / self.margin() - self.seconds(rows, 0.0)
        return max(left, 0.0) / max(self.costs[2], 1e-9)


def _fitted(batches: Sequence[MeasuredBatch] | deque[MeasuredBatch]) -> tuple[float, ...]:
    """Return the costs with the least squares of relative errors, none of them negative."""
    assumed = np.array(_ASSUMED)
    found = np.array([(1.0, one.rows, one.work) for one in batches])
    seconds = np.array([one.seconds for one in batches])
    # In units of the assumptions, so that all unknowns are about one.
    left = np.concatenate([found * assumed / seconds[:, None], _BELIEF * np.eye(3)])
    right = np.concatenate([np.ones(len(batches)), np.full(3, _BELIEF)])
    best = min(
        (
            _solution(left, right, kept)
            for size in (1, 2, 3)
            for kept in combinations(range(3), size)
        ),
        key=lambda costs: (
            float(np.sum((left @ costs - right) ** 2)) if costs.min() >= 0 else np.inf
        ),
    )
    return tuple((best * assumed).tolist())


def _solution(
    left: npt.NDArray[np.float64], right: npt.NDArray[np.float64], kept: tuple[int, ...]
) -> npt.NDArray[np.float64]:
    """Return the solution in which only some costs are not zero."""
    costs = np.zeros(left.shape[1])
    costs[list(kept)] = np.linalg.lstsq(left[:, kept], right, rcond=None)[0]
    return costs
