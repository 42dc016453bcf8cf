"""What is left of changes.

Of equal rows the last ones are left, as many as did not go. What comes and goes at one instant is
no change.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from muntin.expressions.evaluator import Evaluator
from muntin.model.arrays import Integers
from muntin.operators.row_keys import row_keys
from muntin.operators.signed import Changes


def left_of(changes: Changes, evaluator: Evaluator) -> Integers:
    """Return the places of the rows that are left of changes, whatever their times."""
    if not (changes.signs < 0).any():
        return np.arange(len(changes))
    low, high = row_keys(changes.columns, evaluator)
    order = np.lexsort((high, low))  # stable: equal rows stay in their order
    low, high, signs = low[order], high[order], changes.signs[order]
    first = np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1]))
    starts = np.flatnonzero(first)
    lengths = np.diff(np.append(starts, len(order)))
    coming = np.cumsum(signs > 0)
    after: Integers = np.repeat(coming[starts + lengths - 1], lengths) - coming
    kept = (signs > 0) & (after < np.repeat(np.add.reduceat(signs, starts), lengths))
    return np.sort(order[kept])


def first_instant(parts: Iterable[Changes], evaluator: Evaluator) -> int | None:
    """Return the first instant at which changes do not cancel out; None if all of them do."""
    found = [instant for part in parts if (instant := _first(part, evaluator)) is not None]
    return min(found, default=None)


def _first(changes: Changes, evaluator: Evaluator) -> int | None:
    if not len(changes):
        return None
    if changes.signs[0] > 0 and (len(changes) == 1 or changes.times[1] > changes.times[0]):
        return int(changes.times[0])
    low, high = row_keys(changes.columns, evaluator)
    order = np.lexsort((high, low, changes.times))
    words = np.stack([changes.times[order], low[order], high[order]])
    starts = np.flatnonzero(np.append(True, (words[:, 1:] != words[:, :-1]).any(axis=0)))
    net = np.add.reduceat(changes.signs[order], starts)
    instants = words[0, starts[net != 0]]
    return int(instants[0]) if len(instants) else None
