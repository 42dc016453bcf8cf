"""FIRST and LAST: the value of the oldest and of the newest row of a group, NULLs aside.

The time of a row of a join is that of its newest member. Among rows of one time, those stand first
whose members came first, the members compared in the order of FROM. Rows are numbered in this order
as they come, since later batches are later in time. A row that leaves is identified by its value
and the positions of its members in their streams. Rows of several partitions may have the same
positions: those with equal values then share a number, the others are numbered by partition.

State: value and number of every row inside the windows. Cost: O(log n) per row for n rows of a
group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin.aggregates.function import ArgumentSummary, Edge, Keyed, Result, differ
from muntin.expressions.codes import whole_codes
from muntin.expressions.evaluator import Evaluator
from muntin.kernels import order_statistics as ordering
from muntin.model.arrays import Integers, Mask
from muntin.operators.argument_state import ArgumentState
from muntin.operators.row_keys import row_keys
from muntin.state.group_sums import GroupCounts, PerGroup
from muntin.state.group_table import GroupTable, Slots, grown
from muntin.state.group_values import GroupValues, Question

_KINDS = {Edge.OLDEST: ordering.LEAST, Edge.NEWEST: ordering.GREATEST}
_LEAST = 1 << 10
_PIECES = 64
"""Pieces of the log that are merged into one: lookups take longer with more pieces."""


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
        self._rows = GroupTable()
        self._number_of = np.zeros(0, np.int64)
        self._log = pa.chunked_array([], kind)

    @property
    def _parts(self) -> Sequence[PerGroup]:
        return self._counts, self._numbers

    def nbytes(self) -> int:
        """Return the bytes of state."""
        rows = self._rows.nbytes() + self._number_of.nbytes + int(self._log.nbytes)
        return super().nbytes() + rows

    def run(
        self, slots: Slots, signs: Integers, column: pa.ChunkedArray | None, order: pa.Table
    ) -> ArgumentSummary:
        """Take changes, and return what is kept before and after them."""
        assert column is not None, "there is something to pick"
        weights = np.where(column.is_valid().to_numpy(), signs, 0) if column.null_count else signs
        counts = self._counts.add(slots, weights)
        some = counts > 0
        answers = self._numbers.add(slots, weights, self._numbered(weights, column, order))
        found: dict[Edge | Keyed, Result] = {}
        for edge, numbers in zip(self._edges, answers, strict=True):
            values = self._log.take(pa.array(numbers, mask=~some))
            found[edge] = picked_result(values.combine_chunks(), some, self._evaluator)
        self._clean()
        return ArgumentSummary(counts, picked=found)

    def _numbered(self, weights: Integers, column: pa.ChunkedArray, order: pa.Table) -> Integers:
        """Return the numbers of rows; new rows get one, rows of weight 0 any."""
        numbers = np.zeros(len(weights), np.int64)
        rows = np.flatnonzero(weights)
        if not len(rows):
            return numbers
        named = order.append_column("value", column).take(pa.array(rows))
        found = self._rows.find(*row_keys(named, self._evaluator))
        if len(self._number_of) < self._rows.capacity:
            self._number_of = grown(self._number_of, self._rows.capacity)
        coming = np.flatnonzero((weights[rows] > 0) & (self._rows.counts(found) == 0))
        ranked = coming[
            np.lexsort([whole_codes(part)[coming] for part in reversed(named.columns[:-1])])
        ]
        ranked = ranked[np.sort(np.unique(found[ranked], return_index=True)[1])]
        self._number_of[found[ranked]] = len(self._log) + np.arange(len(ranked))
        self._log = pa.chunked_array(
            [*self._log.chunks, *column.take(pa.array(rows[ranked])).chunks], self._log.type
        )
        if self._log.num_chunks > _PIECES:
            self._log = pa.chunked_array([self._log.combine_chunks()], self._log.type)
        numbers[rows] = self._number_of[found]
        touched = self._rows.touch(found, np.zeros(len(found), np.int64))
        self._rows.count(touched, weights[rows])
        self._rows.release(touched)
        return numbers

    def _clean(self) -> None:
        """Drop the values of rows that have left, once those are the majority."""
        if len(self._log) < 2 * len(self._rows) + _LEAST:
            return
        there = self._numbers.known()
        after = np.arange(len(there))
        self._numbers.rename(there, after)
        places = np.minimum(np.searchsorted(there, self._number_of), max(len(there) - 1, 0))
        self._number_of = after[places] if len(there) else np.zeros_like(self._number_of)
        self._log = pa.chunked_array(
            [self._log.take(pa.array(there)).combine_chunks()], self._log.type
        )
