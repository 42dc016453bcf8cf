"""MODE: the most frequent value of a group, the least of several, NULLs aside.

Three levels of state: how often each group has each value, the frequencies of each group in order,
and for each pair of group and frequency its values in order. A value whose frequency changes moves
from one pair to another. The second level gives the greatest frequency before and after each run,
the third its least value at that moment, through rows of weight 0 that touch the pair.

State: a count and two places per distinct value. Cost: O(log n) per row for n values of a group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin.aggregates.function import ArgumentSummary, Frequency, Result, differ, masked
from muntin.expressions.evaluator import Evaluator
from muntin.kernels import order_statistics as ordering
from muntin.model.arrays import Integers
from muntin.operators.arg_extreme import runs_of, slots_of
from muntin.operators.argument_state import ArgumentState
from muntin.operators.row_keys import row_keys
from muntin.operators.value_codes import value_codes
from muntin.state.group_sums import GroupCounts, PerGroup
from muntin.state.group_table import GroupTable, Slots
from muntin.state.group_values import GroupValues, Question


class MostFrequent(ArgumentState):
    """The most frequent values of groups."""

    def __init__(self, kind: pa.DataType, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._counts = GroupCounts()
        self._codes = value_codes(kind)
        self._table = GroupTable()
        self._frequencies = GroupValues([Question(ordering.GREATEST)])
        self._pairs = GroupTable()
        self._values = GroupValues([Question(ordering.LEAST)])

    @property
    def _parts(self) -> Sequence[PerGroup]:
        return self._counts, self._frequencies

    def nbytes(self) -> int:
        """Return the bytes of all that is kept."""
        rest = self._table.nbytes() + self._pairs.nbytes() + self._values.nbytes()
        return super().nbytes() + rest

    def run(
        self, slots: Slots, signs: Integers, column: pa.ChunkedArray | None, order: pa.Table
    ) -> ArgumentSummary:
        """Take changes, and return what is kept before and after them."""
        del order
        assert column is not None, "there is something to count"
        weights = np.where(column.is_valid().to_numpy(), signs, 0) if column.null_count else signs
        counts = self._counts.add(slots, weights)
        codes = self._codes.encode(column, self._values)
        runs, rows, moves = self._moves(slots, weights, column)
        groups, moved = slots.groups[rows], codes[rows]
        starts = np.searchsorted(runs, np.arange(len(slots.run_rows)))
        placed = Slots(groups, slots.rows, starts, slots.run_slots, slots.slot_groups)
        (best,) = self._frequencies.add(placed, np.sign(moves), np.abs(moves))
        probes = np.repeat(np.arange(len(slots)), 2)
        found, places = self._least(
            np.concatenate([runs, runs_of(slots.run_slots)[probes]]),
            pa.table(
                {
                    "group": np.concatenate([groups, slots.slot_groups[probes]]),
                    "frequency": np.concatenate([np.abs(moves), best]),
                }
            ),
            np.concatenate([np.sign(moves), np.zeros(len(probes), np.int64)]),
            np.concatenate([moved, np.zeros(len(probes), np.int64)]),
        )
        answers = found[2 * places[len(runs) :] + np.arange(len(probes)) % 2]
        some = counts > 0
        result = Result(masked(self._codes.decode(answers), some), differ(some, answers))
        return ArgumentSummary(counts, picked={Frequency.MOST: result})

    def _moves(
        self, slots: Slots, weights: Integers, column: pa.ChunkedArray
    ) -> tuple[Integers, Integers, Integers]:
        """Return for values whose frequency changed the runs, rows, and frequencies.

        That before with a minus, then that after.
        """
        rows = np.flatnonzero(weights)
        runs = runs_of(slots.run_rows)[rows]
        named = pa.table({"group": slots.groups[rows], "value": column.take(pa.array(rows))})
        values = self._table.touch(self._table.find(*row_keys(named, self._evaluator)), runs)
        frequencies = self._table.count(values, weights[rows])
        self._table.release(values)
        frequencies[0::2] *= -1
        moving = np.repeat(frequencies[0::2] + frequencies[1::2] != 0, 2) & (frequencies != 0)
        firsts = np.repeat(values.rows, 2)[moving]
        return runs[firsts], rows[firsts], frequencies[moving]

    def _least(
        self, runs: Integers, pairs: pa.Table, weights: Integers, codes: Integers
    ) -> tuple[Integers, Integers]:
        """Return the least values of touched pairs before and after, and the pair of each row."""
        by_run = np.argsort(runs, kind="stable")
        groups = self._pairs.find(*row_keys(pairs.take(pa.array(by_run)), self._evaluator))
        slots = self._pairs.touch(groups, runs[by_run])
        self._values.reserve(self._pairs.capacity)
        self._pairs.count(slots, weights[by_run])
        (found,) = self._values.add(slots, weights[by_run], codes[by_run])
        places = np.empty(len(runs), np.int64)
        places[by_run] = slots_of(slots)
        self._values.forget(self._pairs.release(slots))
        return found, places
