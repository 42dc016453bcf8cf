"""Outer, semi and anti joins that emit inserts: each row once, and nothing is retracted.

The first input has the matches of the inner join, the next ones the rows that are kept without a
match, as they come and leave their windows; those behind them are ignored. Matches are passed on
as they arise. A row that leaves is emitted, with NULLs for the other side, if it never had a match.
All matches of a row arise before it leaves, in the same batch or an earlier one, so at that moment
the decision is final.

State: for each row inside the windows its identity and whether it had a match. Cost: O(1) per row
and match.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.kernels.first_matches import Words, note_matches
from muntin.model.arrays import Mask
from muntin.operators.operator import Operator
from muntin.operators.row_keys import row_keys
from muntin.operators.signed import Changes, merged
from muntin.plan.node import Node
from muntin.plan.outer_inserts import Kept, OuterInserts
from muntin.state.group_table import GroupTable


class _Side:
    """The rows of one side that are inside their windows, and which of them had a match."""

    def __init__(self, identity: Sequence[str], evaluator: Evaluator) -> None:
        self._identity = list(identity)
        self._evaluator = evaluator
        self._rows = GroupTable()
        self._matched = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return len(self._rows)

    def nbytes(self) -> int:
        return self._rows.nbytes() + self._matched.nbytes

    def run(self, matches: Changes, rows: Changes) -> tuple[Mask, Mask]:
        """Return which matches are the first of a row, and which rows leave without one."""
        self._rows.reserve(len(rows))
        if len(self._matched) < self._rows.capacity:
            larger = np.zeros(self._rows.capacity, np.bool_)
            larger[: len(self._matched)] = self._matched
            self._matched = larger
        never, first = np.empty(len(rows), np.bool_), np.empty(len(matches), np.bool_)
        note_matches(
            self._words(rows),
            rows.signs,
            self._words(matches),
            self._rows.arrays,
            self._matched,
            never,
            first,
        )
        return first, never

    def _words(self, changes: Changes) -> Words:
        if not len(changes):
            return Words(np.empty(0, np.int64), np.empty(0, np.int64))
        return Words(*row_keys(changes.columns.select(self._identity), self._evaluator))


class OuterInsertsOperator(Operator):
    """Runs one join that emits inserts."""

    keeps_rows = True
    tidy = True

    def __init__(self, node: OuterInserts, evaluator: Evaluator) -> None:
        self._node = node
        self._sides = [_Side(node.identity(side), evaluator) for side in node.sides]

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the rows that are emitted."""
        matches = inputs[0].where(inputs[0].signs > 0)
        found: list[Changes] = []
        if self._node.kept is Kept.OUTER:
            found.append(_shown(self._node, matches))
        for side, rows in zip(self._sides, inputs[1:], strict=False):
            first, never = side.run(matches, rows)
            if self._node.kept is Kept.SEMI:
                found.append(_shown(self._node, matches.where(first)))
            else:
                found.append(_coming(_shown(self._node, rows.where(never))))
        return merged(found, self._node.schema)

    def groups(self) -> int:
        """Return the number of rows inside the windows that may be emitted when they leave."""
        return sum(map(len, self._sides))

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return sum(side.nbytes() for side in self._sides)


class CurrentMatchesOperator(Operator):
    """Computes the answer of such a join from the matches and rows that are there now."""

    def __init__(self, node: OuterInserts, evaluator: Evaluator) -> None:
        self._node = node
        self._evaluator = evaluator

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return matches, and rows with one or without one, as the kind of the join says."""
        kept, matches = self._node.kept, inputs[0]
        found = [_shown(self._node, matches)] if kept is Kept.OUTER else []
        for side, rows in zip(self._node.sides, inputs[1:], strict=False):
            matched = self._matched(side, matches, rows)
            chosen = matched if kept is Kept.SEMI else ~matched
            found.append(_shown(self._node, rows.where(chosen)))
        return merged(found, self._node.schema)

    def _matched(self, side: Node, matches: Changes, rows: Changes) -> Mask:
        """Return which rows of a side have a match."""
        identity = self._node.identity(side)
        both = pa.concat_tables([each.columns.select(identity) for each in (matches, rows)])
        numbers = GroupTable().find(*row_keys(both, self._evaluator))
        found: Mask = np.isin(numbers[len(matches) :], numbers[: len(matches)])
        return found


def _shown(node: OuterInserts, changes: Changes) -> Changes:
    """Return changes with the columns of the result, NULL where they have none."""
    columns = [
        changes.columns.column(field.name)
        if field.name in changes.columns.column_names
        else pa.chunked_array([pa.nulls(len(changes), field.type)])
        for field in node.schema
    ]
    return Changes(pa.table(columns, schema=node.schema), changes.times, changes.signs)


def _coming(changes: Changes) -> Changes:
    """Return rows that leave as rows that come at that instant."""
    return Changes(changes.columns, changes.times, np.ones(len(changes), np.int64))
