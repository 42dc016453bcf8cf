"""Semi and anti joins on signed rows, by keys.

A left row is in the result while the right input has a row of its key (semi) or has none (anti).
Let ``left(t)`` be the left rows of a key after instant ``t``, and ``shown(t)`` 1 if they are in the
result. The result changes by ``left(t-) * (shown(t) - shown(t-))``, the rows that were there when
their key is matched first or no more, and by ``(left(t) - left(t-)) * shown(t)``, the changes of
the left input. Right rows count only by number, so none of their values are kept.

State: the distinct left rows under their keys, and a number of right rows per key. Cost: the rows
of a batch, and the left rows of keys that gain their first match or lose the last.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.model.arrays import Integers, Mask
from muntin.operators.operator import Operator
from muntin.operators.row_keys import row_keys
from muntin.operators.signed import Changes, merged
from muntin.plan.expression import ColumnRef, Expression
from muntin.plan.key_types import key_type
from muntin.plan.semi_join import SemiJoin
from muntin.state.semi_join_rows import SemiJoinRows

_NOTHING = np.empty(0, np.int64)


class SemiJoinOperator(Operator):
    """Runs one semi or anti join."""

    keeps_rows = True

    def __init__(self, node: SemiJoin, evaluator: Evaluator) -> None:
        self._node = node
        self._evaluator = evaluator
        self._flat = [
            [ColumnRef(place, name).flat for name in child.schema.names]
            for place, child in enumerate((node.left, node.right))
        ]
        self._expressions = [key.left for key in node.keys], [key.right for key in node.keys]
        self._types = [_common_type(key.left, key.right) for key in node.keys]
        self._kept = SemiJoinRows(node.schema, anti=node.anti)

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes of the result."""
        left, words, able = self._keyed(0, inputs[0])
        right, right_words, _ = self._keyed(1, inputs[1])
        always = Changes.none(self._node.schema)
        if not able.all():
            always = left.where(~able) if self._node.anti else always
            left, words = left.where(able), (words[0][able], words[1][able])
        columns = left.columns
        found = self._kept.run(
            (columns, words, self._row_words(left), left.times, left.signs),
            (right_words, right.times, right.signs),
        )
        always = Changes(always.columns, always.times, always.signs)
        return merged([always, Changes(*found)], self._node.schema)

    def _row_words(self, left: Changes) -> tuple[Integers, Integers]:
        if not len(left):
            return _NOTHING, _NOTHING
        return row_keys(left.columns, self._evaluator)

    def _keyed(
        self, place: int, changes: Changes
    ) -> tuple[Changes, tuple[Integers, Integers], Mask]:
        """Return changes with the words of their keys, and which of them can match.

        Right rows that cannot are left out.
        """
        if not len(changes):
            return changes, (_NOTHING, _NOTHING), np.empty(0, np.bool_)
        flat = changes.columns.rename_columns(self._flat[place])
        values = self._evaluator.columns(self._expressions[place], flat)
        values = [
            column if column.type == kind else column.cast(kind, safe=False)
            for column, kind in zip(values, self._types, strict=True)
        ]
        able = np.ones(len(changes), np.bool_)
        if not self._node.nulls_match:
            for column in values:
                if column.null_count:
                    able &= column.is_valid().to_numpy()
        if place == 0 and self._node.conditions:
            able &= self._evaluator.holds(list(self._node.conditions), flat)
        table = pa.table(values, names=[str(number) for number in range(len(values))])
        if place == 1 and not able.all():
            changes, table = changes.where(able), table.filter(pa.array(able))
        return changes, row_keys(table, self._evaluator), able

    def groups(self) -> int:
        """Return the number of distinct left rows and of keys."""
        return len(self._kept)

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return self._kept.nbytes()


def _common_type(left: Expression, right: Expression) -> pa.DataType:
    kind = key_type(left.type, right.type)
    assert kind is not None, "the binder makes keys of comparable types only"
    return kind
