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
from typing import NamedTuple

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
from muntin.state.group_sums import GroupCounts
from muntin.state.group_table import GroupTable
from muntin.state.keyed_rows import KeyedRows


class _Turns(NamedTuple):
    """Where keys gain their first match or lose the last, by key and then time.

    ``shown``: left rows of the key are in the result from then on.
    """

    keys: Integers
    times: Integers
    shown: Mask


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
        self._keys = GroupTable()
        self._matches = GroupCounts()
        self._left = KeyedRows(node.schema)

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes of the result."""
        left, words, able = self._keyed(0, inputs[0])
        right, right_words, _ = self._keyed(1, inputs[1])
        always = Changes.none(self._node.schema)
        if not able.all():
            always = left.where(~able) if self._node.anti else always
            left, words = left.where(able), (words[0][able], words[1][able])
        left_keys, right_keys = self._keys.find(*words), self._keys.find(*right_words)
        self._matches.reserve(self._keys.capacity)
        self._left.reserve(self._keys.capacity)
        before = self._matched(left_keys)
        turns = self._count(right, right_keys)
        found = [
            always,
            *self._turned(turns, left, left_keys),
            left.where(self._shown_at(turns, left_keys, left.times, before)),
        ]
        self._keep(left, left_keys, right_keys, right.signs)
        signed = [Changes(one.columns, one.times, one.signs) for one in found]
        return merged(signed, self._node.schema)

    def _keyed(
        self, place: int, changes: Changes
    ) -> tuple[Changes, tuple[Integers, Integers], Mask]:
        """Return changes with the words of their keys, and which of them can match.

        Right rows that cannot are left out.
        """
        nothing = np.empty(0, np.int64)
        if not len(changes):
            return changes, (nothing, nothing), np.empty(0, np.bool_)
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

    def _matched(self, keys: Integers) -> Mask:
        return self._matches.of(keys) > 0

    def _count(self, right: Changes, keys: Integers) -> _Turns:
        """Count the right rows of keys, and return the turns that this makes."""
        if not len(keys):
            return _Turns(keys, keys, np.empty(0, np.bool_))
        slots = self._keys.touch(keys, right.times)
        counts = self._matches.add(slots, right.signs)
        before, after = counts[0::2] > 0, counts[1::2] > 0
        turned = np.flatnonzero(before != after)
        times = right.times[slots.rows[turned]]
        turned_keys = slots.slot_groups[turned]
        order = np.lexsort((times, turned_keys))
        return _Turns(turned_keys[order], times[order], (after[turned] != self._node.anti)[order])

    def _shown_at(self, turns: _Turns, keys: Integers, times: Integers, matched: Mask) -> Mask:
        """Return whether rows of keys are in the result at times; ``matched`` before the batch."""
        shown: Mask = matched != self._node.anti
        if not len(turns.keys) or not len(keys):
            return shown
        # The place of each row among the turns, sorted by key and time; at one time turns first.
        count = len(turns.keys)
        order = np.lexsort(
            (
                np.arange(count + len(keys)) >= count,
                np.concatenate([turns.times, times]),
                np.concatenate([turns.keys, keys]),
            )
        )
        last = np.maximum.accumulate(np.where(order < count, order, -1))
        latest = np.empty(count + len(keys), np.int64)
        latest[order] = last
        latest = latest[count:]
        known = latest >= 0
        known[known] = turns.keys[latest[known]] == keys[known]
        shown[known] = turns.shown[latest[known]]
        return shown

    def _turned(self, turns: _Turns, left: Changes, keys: Integers) -> list[Changes]:
        """Return the left rows that come and go because their keys turn."""
        found: list[Changes] = []
        if not len(turns.keys):
            return found
        signs = np.where(turns.shown, 1, -1)
        places, rows = self._left.find(turns.keys)
        if len(rows):
            weights = self._left.weights(rows)
            found.append(
                _weighted(self._left.values(rows), turns.times[places], signs[places] * weights)
            )
        if not len(keys):
            return found
        order = np.argsort(keys, kind="stable")
        low, high = (
            np.searchsorted(keys[order], turns.keys, side=side) for side in ("left", "right")
        )
        counts = high - low
        turn = np.repeat(np.arange(len(counts)), counts)
        change = order[np.arange(len(turn)) - np.repeat(np.cumsum(counts) - counts - low, counts)]
        earlier = left.times[change] < turns.times[turn]
        turn, change = turn[earlier], change[earlier]
        if len(turn):
            rows_of = left.columns.take(pa.array(change))
            found.append(_weighted(rows_of, turns.times[turn], signs[turn] * left.signs[change]))
        return found

    def _keep(
        self, left: Changes, keys: Integers, right_keys: Integers, right_signs: Integers
    ) -> None:
        """Add the new left rows to the kept ones, and drop keys without rows of either side."""
        more = less = np.empty(0, np.int64)
        if len(keys):
            values = left.columns, left.signs, left.explicit_ends()
            words = row_keys(left.columns, self._evaluator)
            more, less = self._left.apply(words, values, keys)
        touched = np.concatenate([keys, more, less, right_keys])
        held = np.repeat([0, 1, -1], [len(keys), len(more), len(less)])
        slots = self._keys.touch(touched, np.zeros(len(touched), np.int64))
        self._keys.count(slots, np.concatenate([held, right_signs]))
        self._keys.release(slots)

    def groups(self) -> int:
        """Return the number of distinct left rows and of keys."""
        return len(self._left) + len(self._keys)

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return self._keys.nbytes() + self._matches.nbytes() + self._left.nbytes()


def _common_type(left: Expression, right: Expression) -> pa.DataType:
    kind = key_type(left.type, right.type)
    assert kind is not None, "the binder makes keys of comparable types only"
    return kind


def _weighted(rows: pa.Table, times: Integers, weights: Integers) -> Changes:
    """Return rows with weights as signed rows by time."""
    order = np.argsort(times, kind="stable")
    order = np.repeat(order, np.abs(weights[order]))
    return Changes(rows.take(pa.array(order)), times[order], np.sign(weights[order]))
