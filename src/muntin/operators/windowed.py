"""W-DISTINCT, W-UNION, W-INTERSECT, W-EXCEPT ([HammadTR, sections 4.1, 4.3]): rows with ends.

The inputs are signed rows, among them the ends of rows; rows that come carry their ends. A row that
comes into the result is sent with the end of the duplicate that stays longest, and nothing is sent
when it ends. If a duplicate that has come since is still there, the row is sent again with the end
of the one that stays longest now: a replacement in the paper's terms. A row that goes before its
end, because one came on the right or was retracted, is invalidated: sent with sign minus and the
end that was sent before.

State: counts and ends per distinct row. Cost: O(1) per row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.kernels.distinct_changes import GREATER, LEFT, LESSER
from muntin.operators.row_keys import row_keys
from muntin.operators.set_operation import TIMES, of_left
from muntin.operators.signed import Changes, merged
from muntin.plan.nodes import Distinct, SetOperation, SetOperator
from muntin.state.group_ends import GroupEnds
from muntin.state.group_sums import GroupCounts
from muntin.state.group_table import GroupTable

_RULES = {SetOperator.UNION: GREATER, SetOperator.INTERSECT: LESSER, SetOperator.EXCEPT: LEFT}


def has_ends(node: SetOperation | Distinct) -> bool:
    """Return whether rows of a node can be sent with their ends: each is there once."""
    return isinstance(node, Distinct) or node.operator in _RULES


class OnceOperator:
    """Runs one of these operators; DISTINCT is a UNION with nothing."""

    tidy = False
    keeps_rows = True

    def __init__(self, node: SetOperation | Distinct, evaluator: Evaluator) -> None:
        operator = node.operator if isinstance(node, SetOperation) else SetOperator.UNION
        self._schema = node.schema
        self._times = TIMES[operator]
        self._evaluator = evaluator
        self._table = GroupTable()
        self._left = GroupCounts()
        self._ends = GroupEnds(_RULES[operator])

    def begin(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes before the first row."""
        return self.run(inputs)

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes of the result, given those of the inputs."""
        changes = merged(inputs, self._schema)
        if not len(changes):
            return Changes.none(self._schema)
        slots = self._table.touch(
            self._table.find(*row_keys(changes.columns, self._evaluator)), changes.times
        )
        for kept in (self._left, self._ends):
            kept.reserve(self._table.capacity)
        every = self._table.count(slots, changes.signs)
        lefts = of_left(inputs)
        left = self._left.add(slots, np.where(lefts, changes.signs, 0))
        present = self._times(left, every - left)[1::2] > 0
        signs, ends = self._ends.report(
            slots, (changes.times, changes.signs, changes.explicit_ends()), lefts, present
        )
        gone = self._table.release(slots)
        self._left.forget(gone)
        self._ends.forget(gone)
        said = np.flatnonzero(signs)
        rows = slots.rows[said]
        return Changes(
            changes.columns.take(pa.array(rows)), changes.times[rows], signs[said], ends[said]
        )

    def groups(self) -> int:
        """Return the number of distinct rows."""
        return len(self._table)

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return self._table.nbytes() + self._left.nbytes() + self._ends.nbytes()
