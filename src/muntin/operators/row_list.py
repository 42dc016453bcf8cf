"""LIST: the values of all rows of a group in the order of time, NULLs included.

State: value and number of every row, and its place in the list of its group. Cost: O(n) per instant
that changes a group of n rows, which is the size of the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin.aggregates.function import ArgumentSummary, Listed, Result
from muntin.expressions.evaluator import Evaluator
from muntin.model.arrays import Integers, Mask
from muntin.operators.argument_state import ArgumentState
from muntin.operators.row_keys import row_keys
from muntin.operators.row_log import RowLog
from muntin.state.group_lists import GroupLists
from muntin.state.group_sums import GroupCounts, PerGroup
from muntin.state.group_table import Slots


class RowList(ArgumentState):
    """Lists of values, by an order that columns of the rows give."""

    def __init__(self, kind: pa.DataType, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._counts = GroupCounts()
        self._lists = GroupLists()
        self._log = RowLog(kind, evaluator)

    @property
    def _parts(self) -> Sequence[PerGroup]:
        return self._counts, self._lists

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return super().nbytes() + self._log.nbytes()

    def run(
        self, slots: Slots, signs: Integers, column: pa.ChunkedArray | None, order: pa.Table
    ) -> ArgumentSummary:
        """Take changes, and return the lists before and after them."""
        assert column is not None, "there is something to list"
        counts = self._counts.add(slots, signs)
        numbers = self._lists.add(slots, signs, self._log.number(signs, column, order), counts)
        values = self._log.values(numbers)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        lists = pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32(), mask=np.append(counts == 0, False)), values
        )
        result = Result(lists, self._changed(values, counts, offsets))
        self._log.clean(self._lists)
        return ArgumentSummary(counts, picked={Listed.BY_TIME: result})

    def _changed(self, values: pa.Array, counts: Integers, offsets: Integers) -> Mask:
        """Return which lists have other values after a run than before it."""
        changed: Mask = counts[0::2] != counts[1::2]
        lengths = np.where(changed, 0, counts[0::2])
        ends = np.cumsum(lengths)
        within = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
        before = np.repeat(offsets[0:-1:2], lengths) + within
        after = np.repeat(offsets[1::2], lengths) + within
        low, high = row_keys(pa.table({"value": values}), self._evaluator)
        other = (low[before] != low[after]) | (high[before] != high[after])
        changed[np.repeat(np.arange(len(lengths)), lengths)[other]] = True
        return changed
