"""The rows that are left of changes: of equal rows the last ones, as many as did not go."""

from __future__ import annotations

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
