"""ARG_MIN and ARG_MAX: the value of the row with the least or greatest key, the oldest of equals.

Two levels of state: the keys of each group in order
(:class:`muntin.state.group_values.GroupValues`), and for each pair of group and key its rows in the
order of time (:class:`muntin.operators.first_last.FirstLast`). The first gives the best key before
and after each run; the second then gives the oldest row of that key at that moment, through rows of
weight 0 that touch the pair without changing it.

State: key, value and number of every row. Cost: O(log n) per row for n rows of a group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.aggregates.function import ArgumentSummary, Edge, Keyed, Picked, RankKind, Result
from muntin.expressions.evaluator import Evaluator
from muntin.kernels import order_statistics as ordering
from muntin.model.arrays import Integers
from muntin.operators.argument_state import ArgumentState
from muntin.operators.first_last import FirstLast, picked_result
from muntin.operators.row_keys import row_keys
from muntin.operators.value_codes import value_codes
from muntin.state.group_sums import GroupCounts, PerGroup
from muntin.state.group_table import GroupTable, Slots
from muntin.state.group_values import GroupValues, Question

_KINDS = {RankKind.LEAST: ordering.LEAST, RankKind.GREATEST: ordering.GREATEST}


class ArgExtreme(ArgumentState):
    """Values of the rows with extreme keys; the first column of the order is the key."""

    def __init__(
        self, kind: pa.DataType, key: pa.DataType, wanted: Sequence[Keyed], evaluator: Evaluator
    ) -> None:
        self._wanted = wanted
        self._evaluator = evaluator
        self._counts = GroupCounts()
        self._keys = GroupValues([Question(_KINDS[keyed.kind]) for keyed in wanted])
        self._codes = value_codes(key)
        self._pairs = GroupTable()
        self._rows = FirstLast(kind, [Edge.OLDEST], evaluator)

    @property
    def _parts(self) -> Sequence[PerGroup]:
        return self._counts, self._keys

    def nbytes(self) -> int:
        """Return the bytes of all that is kept."""
        return super().nbytes() + self._pairs.nbytes() + self._rows.nbytes()

    def run(
        self, slots: Slots, signs: Integers, column: pa.ChunkedArray | None, order: pa.Table
    ) -> ArgumentSummary:
        """Take changes, and return what is kept before and after them."""
        assert column is not None, "there is something to pick"
        key = order.column(0)
        valid = pc.and_(column.is_valid(), key.is_valid()).to_numpy()
        weights = np.where(valid, signs, 0)
        counts = self._counts.add(slots, weights)
        codes = self._codes.encode(key, self._keys)
        best = self._keys.add(slots, weights, codes)
        rows = np.flatnonzero(weights)
        probes = np.tile(np.repeat(np.arange(len(slots)), 2), len(self._wanted))
        runs = np.concatenate([runs_of(slots.run_rows)[rows], runs_of(slots.run_slots)[probes]])
        groups = np.concatenate([slots.groups[rows], slots.slot_groups[probes]])
        keys = self._codes.decode(np.concatenate([codes[rows], best.reshape(-1)]))
        sources = pa.array(
            np.concatenate([rows, np.zeros(len(probes), np.int64)]),
            mask=np.arange(len(runs)) >= len(rows),
        )
        found, places = self._oldest(
            runs, pa.table({"group": groups, "key": keys}),
            np.concatenate([weights[rows], np.zeros(len(probes), np.int64)]),
            column.take(sources), order.select(range(1, order.num_columns)).take(sources),
        )  # fmt: skip
        some = counts > 0
        picked: dict[Picked, Result] = {}
        asked = (
            2 * places[len(rows) :].reshape(len(self._wanted), -1) + np.arange(2 * len(slots)) % 2
        )
        for keyed, at in zip(self._wanted, asked, strict=True):
            picked[keyed] = picked_result(
                found.take(pa.array(at, mask=~some)), some, self._evaluator
            )
        return ArgumentSummary(counts, picked=picked)

    def _oldest(
        self,
        runs: Integers,
        pairs: pa.Table,
        weights: Integers,
        column: pa.ChunkedArray,
        order: pa.Table,
    ) -> tuple[pa.Array, Integers]:
        """Return the values of the oldest rows of touched pairs, before and after.

        The last array has the pair of each row.
        """
        by_run = np.argsort(runs, kind="stable")
        taken = pa.array(by_run)
        groups = self._pairs.find(*row_keys(pairs.take(taken), self._evaluator))
        slots = self._pairs.touch(groups, runs[by_run])
        self._rows.reserve(self._pairs.capacity)
        self._pairs.count(slots, weights[by_run])
        kept = self._rows.run(slots, weights[by_run], column.take(taken), order.take(taken))
        places = np.empty(len(runs), np.int64)
        places[by_run] = slots_of(slots)
        self._rows.forget(self._pairs.release(slots))
        return kept.pick(Edge.OLDEST).values, places


def runs_of(starts: Integers) -> Integers:
    """Return for each row or slot the number of its run."""
    found: Integers = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return found


def slots_of(slots: Slots) -> Integers:
    """Return for each row the slot of its group in its run."""
    width = int(slots.slot_groups.max(initial=0)) + 1
    known = runs_of(slots.run_slots) * width + slots.slot_groups
    order = np.argsort(known)
    wanted = runs_of(slots.run_rows) * width + slots.groups
    found: Integers = order[np.searchsorted(known, wanted, sorter=order)]
    return found
