"""The distinct values of groups, for aggregates with DISTINCT: a value counts once per group.

A value comes with its first row and goes with its last. State: a count per group and value. Cost:
O(1) per row.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.model.arrays import Integers
from muntin.operators.row_keys import row_keys
from muntin.state.group_table import GroupTable, Slots


class DistinctValues:
    """Turns the weights of rows into those of distinct values."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._table = GroupTable()
        self._evaluator = evaluator

    def weights(self, slots: Slots, weights: Integers, column: pa.ChunkedArray) -> Integers:
        """Return +1 or -1 for rows whose value came or went in their run, else 0.

        Rows of weight 0 are ignored.
        """
        found = np.zeros(len(weights), np.int64)
        rows = np.flatnonzero(weights)
        if len(rows):
            runs = np.repeat(np.arange(len(slots.run_rows) - 1), np.diff(slots.run_rows))
            keys = row_keys(
                pa.table(
                    [pa.array(slots.groups[rows]), column.take(pa.array(rows))],
                    names=["group", "value"],
                ),
                self._evaluator,
            )
            values = self._table.touch(self._table.find(*keys), runs[rows])
            there = self._table.count(values, weights[rows]) > 0
            found[rows[values.rows]] = there[1::2].astype(np.int64) - there[0::2]
            self._table.release(values)
        return found

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return self._table.nbytes()
