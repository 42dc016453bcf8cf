"""GROUP BY, HAVING and aggregates on signed rows ([HammadTR, section 4.2], for negative tuples).

Computes at every instant what SQL computes from the rows that are there. Changes of one instant are
taken together: the old row of a group that they touch goes and its new row comes, unless they are
equal. A group without rows has no row; the one group of a query without keys always has one.

State: the groups, and what aggregates keep for each. Cost: O(1) per row for counts and sums, O(log
n) for what needs the order of n values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from muntin.aggregates.function import Edge, Frequency, Keyed, Listed, Need, Pairs, Result
from muntin.expressions.evaluator import Evaluator
from muntin.operators.aggregates import Argument, needs_of, results_of
from muntin.operators.arg_extreme import ArgExtreme
from muntin.operators.argument_pairs import ArgumentPairs
from muntin.operators.argument_state import ArgumentState
from muntin.operators.distinct_values import DistinctValues
from muntin.operators.first_last import FirstLast
from muntin.operators.most_frequent import MostFrequent
from muntin.operators.operator import Operator
from muntin.operators.row_keys import row_keys
from muntin.operators.row_list import RowList
from muntin.operators.signed import BEGINNING, Changes
from muntin.plan.expression import ColumnRef
from muntin.plan.nodes import Aggregate, GroupBy
from muntin.state.group_table import GroupTable, Slots

_Over: TypeAlias = tuple[int | None, bool, tuple[int, ...], type[ArgumentState]]
"""What aggregates are over: a column, only its distinct values or all, and an order of rows.

Those that need state of different classes share none.
"""

_ZERO = np.zeros(1, np.int64)
_NONE = np.empty(0, np.int64)


class GroupByOperator(Operator):
    """Runs one grouping."""

    keeps_rows = True

    def __init__(self, node: GroupBy, evaluator: Evaluator) -> None:
        self._node = node
        self._evaluator = evaluator
        self._table = GroupTable()
        self._arguments: dict[_Over, ArgumentState] = {}
        self._places: list[tuple[_Over, int]] = []
        by_argument: dict[_Over, list[Aggregate]] = {}
        for aggregate in node.aggregates:
            state = _state_of(needs_of([aggregate], self._kind(aggregate.argument)))
            over = aggregate.argument, aggregate.distinct, aggregate.order, state
            mine = by_argument.setdefault(over, [])
            self._places.append((over, len(mine)))
            mine.append(aggregate)
        self._over = by_argument
        for over, aggregates in by_argument.items():
            self._arguments[over] = self._argument(over, aggregates)
        flat = [ColumnRef(0, name).flat for name in node.groups.names]
        self._flat = flat
        shown = {
            column.expression.column.flat for column in node.select if column.expression.column
        }
        plain = all(column.expression.column for column in node.select)
        # Rows of different groups differ in a key, and old and new rows of a group in an
        # aggregate: nothing can cancel out.
        self.tidy = plain and node.having is None and shown == set(flat)
        self._only_group: int | None = None

    def _argument(self, over: _Over, aggregates: Sequence[Aggregate]) -> ArgumentState:
        place, distinct, order, state = over
        kind = self._kind(place)
        needs = needs_of(aggregates, kind)
        if state is FirstLast:
            edges = sorted(need for need in needs if isinstance(need, Edge))
            return FirstLast(kind, edges, self._evaluator)
        if state is ArgExtreme:
            keyed = [need for need in needs if isinstance(need, Keyed)]
            return ArgExtreme(kind, self._kind(order[0]), keyed, self._evaluator)
        if state in {RowList, MostFrequent}:
            return state(kind, self._evaluator)
        if state is ArgumentPairs:
            return ArgumentPairs()
        values = DistinctValues(self._evaluator) if distinct else None
        return Argument(kind, needs, values, in_order=self._node.input.expires_in_order)

    def _kind(self, place: int | None) -> pa.DataType | None:
        return None if place is None else self._node.input.schema.field(place).type

    def begin(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes before the first row: without keys there is a row over no rows."""
        if self._node.keys:
            return self.run(inputs)
        (self._only_group,) = self._table.find(_ZERO, _ZERO)
        slots = Slots(
            _NONE, _NONE, np.array([0, 0]), np.array([0, 1]), np.array([self._only_group])
        )
        results = self._aggregate(slots, _NONE, self._node.input.schema.empty_table())
        groups = pa.table([result.values.slice(1) for result in results], names=self._flat)
        first = self._above(
            replace(Changes.coming(groups, BEGINNING), numbers=np.full(1, self._only_group))
        )
        rest = self.run(inputs)
        return Changes(
            pa.concat_tables([first.columns, rest.columns]),
            np.concatenate([first.times, rest.times]),
            np.concatenate([first.signs, rest.signs]),
            numbers=np.full(len(first) + len(rest), self._only_group),
        )

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes of groups that changes of rows make."""
        (changes,) = inputs
        if not len(changes):
            return Changes.none(self._node.schema)
        keys = changes.columns.select(range(self._node.keys))
        if self._node.keys:
            numbers = self._table.find(*row_keys(keys, self._evaluator))
        else:
            assert self._only_group is not None, "it has begun"
            numbers = np.full(len(changes), self._only_group, np.int64)
        slots = self._table.touch(numbers, changes.times)
        counts = self._table.count(slots, changes.signs)
        results = self._aggregate(slots, changes.signs, changes.columns)
        there = counts > 0 if self._node.keys else np.ones(len(counts), bool)
        changed = np.logical_or.reduce(
            [there[0::2] != there[1::2], *(result.changed for result in results)]
        )
        keep = there & np.repeat(changed, 2)
        if self._node.keys:
            gone = self._table.release(slots)
            for argument in self._arguments.values():
                argument.forget(gone)
        kept = np.flatnonzero(keep)
        firsts = slots.rows[kept // 2]
        columns = [column.take(pa.array(firsts)) for column in keys.columns]
        columns += [result.values.take(pa.array(kept)) for result in results]
        signs = np.where(kept % 2 == 0, -1, 1)
        found = Changes(
            pa.table(columns, names=self._flat),
            changes.times[firsts],
            signs,
            numbers=slots.slot_groups[kept // 2],
        )
        return self._above(found)

    def _aggregate(
        self, slots: Slots, signs: np.ndarray[tuple[int], np.dtype[np.int64]], rows: pa.Table
    ) -> list[Result]:
        found = {}
        for over, argument in self._arguments.items():
            place, _, order, _ = over
            argument.reserve(self._table.capacity)
            column = None if place is None else rows.column(place)
            found[over] = results_of(
                self._over[over], argument.run(slots, signs, column, rows.select(order))
            )
        return [found[over][number] for over, number in self._places]

    def _above(self, groups: Changes) -> Changes:
        """Return the rows that pass HAVING, with the columns of the select list."""
        node = self._node
        if node.having is not None and len(groups):
            groups = groups.where(self._evaluator.holds([node.having], groups.columns))
        columns = self._evaluator.columns(
            [column.expression for column in node.select], groups.columns
        )
        return groups.with_columns(pa.table(columns, schema=node.schema))

    def groups(self) -> int:
        """Return the number of groups."""
        return len(self._table)

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return self._table.nbytes() + sum(
            argument.nbytes() for argument in self._arguments.values()
        )


def _state_of(needs: AbstractSet[Need]) -> type[ArgumentState]:
    """Return the class of the state that holds what an aggregate needs."""
    found = {state for need, state in _STATES.items() if any(isinstance(n, need) for n in needs)}
    assert len(found) <= 1, "an aggregate needs one class of state"
    return found.pop() if found else Argument


_STATES: Mapping[type, type[ArgumentState]] = {
    Edge: FirstLast,
    Keyed: ArgExtreme,
    Listed: RowList,
    Frequency: MostFrequent,
    Pairs: ArgumentPairs,
}
