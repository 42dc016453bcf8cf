"""CORR and COVAR: exact sums over the pairs of two arguments, rows with a NULL in either aside.

State: five sums and a count per group. Cost: O(1) per row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.aggregates.exact import product_parts
from muntin.aggregates.function import ArgumentSummary, PairSums
from muntin.model.arrays import Integers
from muntin.operators.aggregates import reals_of
from muntin.operators.argument_state import ArgumentState
from muntin.state.group_sums import GroupCounts, PerGroup, RealSums
from muntin.state.group_table import Slots


class ArgumentPairs(ArgumentState):
    """Sums over the pairs of an argument and the first column of the order."""

    def __init__(self) -> None:
        self._counts = GroupCounts()
        self._sums = [RealSums() for _ in PairSums._fields]

    @property
    def _parts(self) -> Sequence[PerGroup]:
        return [self._counts, *self._sums]

    def run(
        self, slots: Slots, signs: Integers, column: pa.ChunkedArray | None, order: pa.Table
    ) -> ArgumentSummary:
        """Take changes, and return the sums before and after them."""
        assert column is not None, "there are two arguments"
        other = order.column(0)
        valid = pc.and_(column.is_valid(), other.is_valid()).to_numpy()
        weights = np.where(valid, signs, 0)
        y, x = reals_of(column), reals_of(other)
        numbers = (y,), (x,), product_parts(y, x), product_parts(y, y), product_parts(x, x)
        sums = [
            kept.add(slots, weights, *parts)
            for kept, parts in zip(self._sums, numbers, strict=True)
        ]
        return ArgumentSummary(self._counts.add(slots, weights), pairs=PairSums(*sums))
