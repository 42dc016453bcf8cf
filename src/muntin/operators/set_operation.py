"""DISTINCT, UNION, INTERSECT, EXCEPT and MINUS on signed rows ([HammadTR, sections 4.1 and 4.3]).

The number of times a row is in the result follows from the numbers of times it is on the left and
on the right. Changes of one instant are taken together, and the difference is sent: a row when the
first of its duplicates comes, its retraction when the last one goes. The window-aware forms, which
send the ends of rows instead, are in :mod:`muntin.operators.windowed`.

State: two counts per distinct row. Cost: O(1) per row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.operators.row_keys import row_keys
from muntin.operators.signed import Changes, merged
from muntin.plan.nodes import Distinct, SetOperation, SetOperator
from muntin.state.group_sums import GroupCounts
from muntin.state.group_table import GroupTable

Integers = npt.NDArray[np.int64]

TIMES: dict[SetOperator, Callable[[Integers, Integers], Integers]] = {
    SetOperator.UNION: lambda left, right: (left + right > 0).astype(np.int64),
    SetOperator.INTERSECT: lambda left, right: ((left > 0) & (right > 0)).astype(np.int64),
    SetOperator.INTERSECT_ALL: np.minimum,
    SetOperator.EXCEPT: lambda left, right: ((left > 0) & (right == 0)).astype(np.int64),
    SetOperator.EXCEPT_ALL: lambda left, right: np.maximum(left - right, 0),
    SetOperator.MINUS: lambda left, right: np.where(right == 0, left, 0),
}
"""How often a row is in the result, by how often it is on the left and on the right."""


class CountingOperator:
    """Runs one set operator, or DISTINCT, which is a UNION with nothing."""

    tidy = True
    keeps_rows = True

    def __init__(self, node: SetOperation | Distinct, evaluator: Evaluator) -> None:
        self._schema = node.schema
        self._times = TIMES[node.operator if isinstance(node, SetOperation) else SetOperator.UNION]
        self._evaluator = evaluator
        self._table = GroupTable()
        self._left = GroupCounts()

    def begin(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes before the first row."""
        return self.run(inputs)

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes of the result that changes of the inputs make."""
        changes = merged(inputs, self._schema)
        if not len(changes):
            return Changes.none(self._schema)
        slots = self._table.touch(
            self._table.find(*row_keys(changes.columns, self._evaluator)), changes.times
        )
        self._left.reserve(self._table.capacity)
        every = self._table.count(slots, changes.signs)
        left = (
            self._left.add(slots, np.where(of_left(inputs), changes.signs, 0))
            if len(inputs) > 1
            else every
        )
        result = self._times(left, every - left)
        self._left.forget(self._table.release(slots))
        more = result[1::2] - result[0::2]
        rows = np.repeat(slots.rows, np.abs(more))
        signs = np.repeat(np.sign(more), np.abs(more))
        return Changes(changes.columns.take(pa.array(rows)), changes.times[rows], signs)

    def groups(self) -> int:
        """Return the number of distinct rows."""
        return len(self._table)

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return self._table.nbytes() + self._left.nbytes()


class UnionAllOperator:
    """UNION ALL keeps nothing: the changes of both inputs are those of the result."""

    tidy = False
    keeps_rows = False

    def __init__(self, node: SetOperation) -> None:
        self._schema = node.schema

    def begin(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes before the first row."""
        return self.run(inputs)

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes of both inputs in the order of time."""
        return merged(inputs, self._schema)

    def groups(self) -> int:
        """Return 0: it keeps nothing."""
        return 0

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return 0


def of_left(inputs: Sequence[Changes]) -> npt.NDArray[np.bool_]:
    """Return a mask of the changes from the left input, in the order of ``signed.merged``."""
    sides = np.repeat(np.arange(len(inputs)) == 0, [len(part) for part in inputs])
    times = np.concatenate([part.times for part in inputs])
    return sides[np.argsort(times, kind="stable")]
