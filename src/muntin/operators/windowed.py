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

import numpy as np
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.kernels.distinct_changes import GREATER, LEFT, LESSER
from muntin.model.arrays import Integers, Mask
from muntin.operators.set_operation import CountingOperator
from muntin.operators.signed import Changes
from muntin.plan.nodes import Distinct, SetOperation, SetOperator
from muntin.state.group_ends import GroupEnds
from muntin.state.group_table import Slots

_RULES = {SetOperator.UNION: GREATER, SetOperator.INTERSECT: LESSER, SetOperator.EXCEPT: LEFT}


def has_ends(node: SetOperation | Distinct) -> bool:
    """Return whether rows of a node can be sent with their ends: each is there once."""
    return isinstance(node, Distinct) or node.operator in _RULES


class OnceOperator(CountingOperator):
    """Runs one of these operators; DISTINCT is a UNION with nothing."""

    tidy = False

    def __init__(self, node: SetOperation | Distinct, evaluator: Evaluator) -> None:
        super().__init__(node, evaluator)
        self._ends = GroupEnds(_RULES[self._operator])

    def _report(self, changes: Changes, slots: Slots, times: Integers, lefts: Mask) -> Changes:
        """Return what is sent: rows with their ends, and invalidations."""
        self._ends.reserve(self._table.capacity)
        given = changes.times, changes.signs, changes.explicit_ends()
        signs, ends = self._ends.report(slots, given, lefts, times[1::2] > 0)
        said = np.flatnonzero(signs)
        rows = slots.rows[said]
        return Changes(
            changes.columns.take(pa.array(rows)), changes.times[rows], signs[said], ends[said]
        )

    def _forget(self, gone: Integers) -> None:
        super()._forget(gone)
        self._ends.forget(gone)

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return super().nbytes() + self._ends.nbytes()
