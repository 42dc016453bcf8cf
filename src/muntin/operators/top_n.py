"""ORDER BY ... LIMIT, and the first or numbered rows per group, on signed rows.

Computes at every instant the rows that SQL keeps. A change of a row moves all rows behind it by one
rank, so at most one row enters and one leaves; rows are looked up by rank. With numbers, every row
behind a change gets another one.

State: all rows of the input, in order. Cost: O(log n) per change for n rows of a group; with
numbers, also the rows behind the change, up to the bound. Texts get codes in their order, and a
batch with new texts sorts the known ones (:mod:`muntin.operators.value_codes`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.kernels import top_rows as kernels
from muntin.kernels.jit import prepare_part
from muntin.model.arrays import Integers
from muntin.operators.operator import Operator
from muntin.operators.order_words import OrderWords, tells_apart
from muntin.operators.row_keys import row_keys
from muntin.operators.signed import Changes
from muntin.plan.top_n import RowNumbering, TopN
from muntin.state.group_table import GroupTable
from muntin.state.ranked_rows import RankedRows

_KINDS = {
    RowNumbering.ROW_NUMBER: kernels.ROW_NUMBER,
    RowNumbering.RANK: kernels.RANK,
    RowNumbering.DENSE_RANK: kernels.DENSE_RANK,
}
_ALL = 1 << 62
"""More rows than there can be."""


class TopNOperator(Operator):
    """Runs one top-n."""

    keeps_rows = True

    def __init__(self, node: TopN, evaluator: Evaluator) -> None:
        prepare_part("top rows")
        self._node = node
        self._evaluator = evaluator
        self._groups = GroupTable()
        self._order = OrderWords(node.input.schema, node.order)
        self._hashes = not tells_apart(node.order, node.columns, node.input)
        words = self._order.count(len(node.order)) + (2 if self._hashes else 0)
        self._kept = node.columns or (0,)  # a table without columns would not count its rows
        kept = pa.schema([node.input.schema.field(place) for place in self._kept])
        self._rows = RankedRows(kept, words)

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes of the first rows that changes of rows make."""
        (changes,) = inputs
        node, rows = self._node, self._rows
        if not len(changes):
            return Changes.none(node.schema)
        numbers = self._numbers(changes.columns)
        slots = self._groups.touch(numbers, changes.times)
        self._groups.count(slots, changes.signs)
        rows.reserve(self._groups.capacity)
        words = self._order.words(changes.columns, rows)
        if self._hashes:
            words.extend(row_keys(changes.columns, self._evaluator))
        table = np.column_stack(words)
        coming = pa.array(np.flatnonzero(changes.signs > 0))
        rows.append(changes.columns.select(self._kept).take(coming))
        if node.number or node.numbering is not RowNumbering.ROW_NUMBER:
            found = rows.number(slots, changes.signs, table, self._numbering())
        else:
            stop = _ALL if node.stop is None else node.stop
            found = rows.cut(slots, changes.signs, table, kernels.RankRange(node.offset, stop))
        columns = rows.values(found)
        if node.number:
            number = np.ascontiguousarray(found[:, kernels.NUMBER])
            columns = columns.append_column(node.number, pa.array(number))
            columns = columns.select(range(columns.num_columns)[-len(node.schema) :])
        self._groups.release(slots)
        rows.clean()
        signs = np.ascontiguousarray(found[:, kernels.SIGN])
        return Changes(columns, changes.times[found[:, kernels.ROW]], signs)

    def _numbers(self, columns: pa.Table) -> Integers:
        """Return the numbers of the groups of rows."""
        if self._node.keys:
            keys = columns.select(self._node.keys)
            return self._groups.find(*row_keys(keys, self._evaluator))
        nothing = np.zeros(columns.num_rows, np.int64)
        return self._groups.find(nothing, nothing)

    def _numbering(self) -> kernels.Numbering:
        node = self._node
        bound = _ALL if node.stop is None else node.stop
        return kernels.Numbering(_KINDS[node.numbering], self._order.count(node.peers), bound)

    def groups(self) -> int:
        """Return the number of different rows."""
        return len(self._rows)

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return self._groups.nbytes() + self._rows.nbytes()
