"""FIRST and LAST: the value of the oldest and of the newest row of a group, NULLs aside.

The time of a row of a join is that of its newest member. Among rows of one time, those stand first
whose members came first, the members compared in the order of FROM.
:class:`muntin.operators.row_log.RowLog` numbers rows in this order.

State: value and number of every row inside the windows. Cost: O(log n) per row for n rows of a
group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin.aggregates.function import ArgumentSummary, Edge, Picked, Result, differ
from muntin.expressions.evaluator import Evaluator
from muntin.kernels import order_statistics as ordering
from muntin.model.arrays import Integers, Mask
from muntin.operators.argument_state import ArgumentState
from muntin.operators.row_keys import row_keys
from muntin.operators.row_log import RowLog
from muntin.state.group_sums import GroupCounts, PerGroup
from muntin.state.group_table import Slots
from muntin.state.group_values import GroupValues, Question

_KINDS = {Edge.OLDEST: ordering.LEAST, Edge.NEWEST: ordering.GREATEST}


def picked_result(values: pa.Array, some: Mask, evaluator: Evaluator) -> Result:
    """Return the values of single rows, where there are some, and which of them changed."""
    low, high = row_keys(pa.table({"value": values}), evaluator)
    return Result(values, differ(low, high, some))


class FirstLast(ArgumentState):
    """Values of the oldest and newest rows, by an order that columns of the rows give."""

    def __init__(self, kind: pa.DataType, edges: Sequence[Edge], evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._edges = edges
        self._counts = GroupCounts()
        self._numbers = GroupValues([Question(_KINDS[edge]) for edge in self._edges])
        self._log = RowLog(kind, evaluator)

    @property
    def _parts(self) -> Sequence[PerGroup]:
        return self._counts, self._numbers

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return super().nbytes() + self._log.nbytes()

    def run(
        self, slots: Slots, signs: Integers, column: pa.ChunkedArray | None, order: pa.Table
    ) -> ArgumentSummary:
        """Take changes, and return what is kept before and after them."""
        assert column is not None, "there is something to pick"
        weights = np.where(column.is_valid().to_numpy(), signs, 0) if column.null_count else signs
        counts = self._counts.add(slots, weights)
        some = counts > 0
        answers = self._numbers.add(slots, weights, self._log.number(weights, column, order))
        found: dict[Picked, Result] = {}
        for edge, numbers in zip(self._edges, answers, strict=True):
            found[edge] = picked_result(self._log.values(numbers, ~some), some, self._evaluator)
        self._log.clean(self._numbers)
        return ArgumentSummary(counts, picked=found)
