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
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.model.arrays import Integers, Mask
from muntin.operators.operator import Operator
from muntin.operators.row_keys import row_keys
from muntin.operators.signed import Changes, merged
from muntin.plan.nodes import Distinct, SetOperation, SetOperator
from muntin.state.group_sums import GroupCounts
from muntin.state.group_table import GroupTable, Slots

TIMES: dict[SetOperator, Callable[[Integers, Integers], Integers]] = {
    SetOperator.UNION: lambda left, right: (left + right > 0).astype(np.int64),
    SetOperator.INTERSECT: lambda left, right: ((left > 0) & (right > 0)).astype(np.int64),
    SetOperator.INTERSECT_ALL: np.minimum,
    SetOperator.EXCEPT: lambda left, right: ((left > 0) & (right == 0)).astype(np.int64),
    SetOperator.EXCEPT_ALL: lambda left, right: np.maximum(left - right, 0),
    SetOperator.MINUS: lambda left, right: np.where(right == 0, left, 0),
}
"""How often a row is in the result, by how often it is on the left and on the right."""


class CountingOperator(Operator):
    """Runs one set operator, or DISTINCT, which is a UNION with nothing."""

    tidy = True
    keeps_rows = True

    def __init__(self, node: SetOperation | Distinct, evaluator: Evaluator) -> None:
        self._operator = node.operator if isinstance(node, SetOperation) else SetOperator.UNION
        self._schema = node.schema
        self._evaluator = evaluator
        self._table = GroupTable()
        self._left = GroupCounts()

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes of the result that changes of the inputs make."""
        changes = merged(inputs, self._schema)
        if not len(changes):
            return Changes.none(self._schema)
        slots = self._table.touch(
            self._table.find(*row_keys(changes.columns, self._evaluator)), changes.times
        )
        self._left.reserve(self._table.capacity)
        left = every = self._table.count(slots, changes.signs)
        lefts = of_left(inputs)
        if len(inputs) > 1:
            left = self._left.add(slots, np.where(lefts, changes.signs, 0))
        found = self._report(changes, slots, TIMES[self._operator](left, every - left), lefts)
        self._forget(self._table.release(slots))
        return found

    def _report(
        self,
        changes: Changes,
        slots: Slots,
        times: Integers,
        lefts: Mask,  # noqa: ARG002 (a subclass asks for it)
    ) -> Changes:
        """Return what is sent, given how often each row was there before and is there after."""
        more = times[1::2] - times[0::2]
        rows = np.repeat(slots.rows, np.abs(more))
        signs = np.repeat(np.sign(more), np.abs(more))
        return Changes(changes.columns.take(pa.array(rows)), changes.times[rows], signs)

    def _forget(self, gone: Integers) -> None:
        self._left.forget(gone)

    def groups(self) -> int:
        """Return the number of distinct rows."""
        return len(self._table)

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return self._table.nbytes() + self._left.nbytes()


class UnionAllOperator(Operator):
    """UNION ALL keeps nothing: the changes of both inputs are those of the result."""

    def __init__(self, node: SetOperation) -> None:
        self._schema = node.schema

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes of both inputs in the order of time."""
        return merged(inputs, self._schema)


def of_left(inputs: Sequence[Changes]) -> Mask:
    """Return a mask of the changes from the left input, in the order of ``signed.merged``."""
    sides = np.repeat(np.arange(len(inputs)) == 0, [len(part) for part in inputs])
    times = np.concatenate([part.times for part in inputs])
    return sides[np.argsort(times, kind="stable")]
