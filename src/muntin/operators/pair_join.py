"""A join of two inputs on signed rows, by equalities where there are some.

With weights a join is linear in each input. So the changes of the join are those of the left with
what the right had, those of the right with what the left had, and those of both with each other:
with the product of their weights, at the later of their times. Where rows have ends, a combination
ends with the first of them, and there is none if that is before both have come.

State: the distinct rows of both sides under their keys. Cost: the rows of a batch and what they are
combined with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.model.arrays import Integers
from muntin.operators.row_keys import row_keys
from muntin.operators.signed import Changes
from muntin.plan.expression import Expression
from muntin.state.group_table import GroupTable
from muntin.state.keyed_rows import KeyedRows


@dataclass(frozen=True)
class Key:
    """An equality between two inputs: an expression over each, and the type to compare in."""

    left: Expression
    right: Expression
    type: pa.DataType


@dataclass(frozen=True)
class _Side:
    """New changes of one side whose key is not NULL, with the numbers of their keys."""

    changes: Changes
    keys: Integers


class PairJoin:
    """Joins two inputs; ``schemas`` are those of their columns, all under different names."""

    def __init__(
        self,
        keys: Sequence[Key],
        schemas: tuple[pa.Schema, pa.Schema],
        evaluator: Evaluator,
        *,
        ending: bool,
    ) -> None:
        self._expressions = [key.left for key in keys], [key.right for key in keys]
        self._types = [key.type for key in keys]
        self._evaluator = evaluator
        self._ending = ending
        self._keys = GroupTable()
        self._rows = tuple(KeyedRows(schema) for schema in schemas)
        self._schema = pa.schema([*schemas[0], *schemas[1]])

    def run(self, left: Changes, right: Changes) -> Changes:
        """Return the combinations that changes of both sides make, by time; signs are weights."""
        sides = [self._side(place, changes) for place, changes in enumerate((left, right))]
        for rows in self._rows:
            rows.reserve(self._keys.capacity)
        found = [
            *self._with_kept(0, sides[0]),
            *self._with_kept(1, sides[1]),
            *self._with_new(*sides),
        ]
        self._keep(sides)
        if not found:
            return Changes.none(self._schema)
        columns = pa.concat_tables([part.columns for part in found])
        times, weights = (
            np.concatenate([getattr(part, name) for part in found]) for name in ("times", "signs")
        )
        ends = np.concatenate([part.explicit_ends() for part in found])
        order = np.argsort(times, kind="stable")
        order = order[times[order] < ends[order]] if self._ending else order
        return Changes(
            columns.take(pa.array(order)),
            times[order],
            weights[order],
            ends[order] if self._ending else None,
        )

    def _side(self, place: int, changes: Changes) -> _Side:
        """Return changes without rows whose key is NULL, which is equal to nothing."""
        if not len(changes):
            return _Side(changes, np.empty(0, np.int64))
        if not self._types:
            nothing = np.zeros(len(changes), np.int64)
            return _Side(changes, self._keys.find(nothing, nothing))
        values = self._evaluator.columns(self._expressions[place], changes.columns)
        values = [
            column if column.type == kind else column.cast(kind, safe=False)
            for column, kind in zip(values, self._types, strict=True)
        ]
        table = pa.table(values, names=[str(number) for number in range(len(values))])
        if any(column.null_count for column in values):
            known = np.logical_and.reduce([column.is_valid().to_numpy() for column in values])
            changes, table = changes.where(known), table.filter(pa.array(known))
        return _Side(changes, self._keys.find(*row_keys(table, self._evaluator)))

    def _with_kept(self, place: int, new: _Side) -> list[Changes]:
        """Return combinations of new rows of one side with kept rows of the other."""
        others = self._rows[1 - place]
        if not len(new.keys) or not len(others):
            return []
        rows, matches = others.find(new.keys)
        if not len(rows):
            return []
        mine, theirs = new.changes.columns.take(pa.array(rows)), others.values(matches)
        ends = np.minimum(new.changes.explicit_ends()[rows], others.ends(matches))
        columns = self._beside(*((mine, theirs) if place == 0 else (theirs, mine)))
        return [
            Changes(
                columns,
                new.changes.times[rows],
                new.changes.signs[rows] * others.weights(matches),
                ends,
            )
        ]

    def _with_new(self, left: _Side, right: _Side) -> list[Changes]:
        """Return combinations of new rows of both sides."""
        if not len(left.keys) or not len(right.keys):
            return []
        order = np.argsort(right.keys, kind="stable")
        low, high = (
            np.searchsorted(right.keys[order], left.keys, side=side) for side in ("left", "right")
        )
        counts = high - low
        if not counts.any():
            return []
        one = np.repeat(np.arange(len(left.keys)), counts)
        other = order[
            np.arange(len(one))
            - np.repeat(np.cumsum(counts) - counts, counts)
            + np.repeat(low, counts)
        ]
        columns = self._beside(
            left.changes.columns.take(pa.array(one)), right.changes.columns.take(pa.array(other))
        )
        times = np.maximum(left.changes.times[one], right.changes.times[other])
        ends = np.minimum(left.changes.explicit_ends()[one], right.changes.explicit_ends()[other])
        return [Changes(columns, times, left.changes.signs[one] * right.changes.signs[other], ends)]

    def _beside(self, left: pa.Table, right: pa.Table) -> pa.Table:
        return pa.table([*left.columns, *right.columns], schema=self._schema)

    def _keep(self, sides: Sequence[_Side]) -> None:
        """Add new rows to the kept ones, and drop keys without rows."""
        more, less = [], []
        for rows, side in zip(self._rows, sides, strict=True):
            if not len(side.keys):
                continue
            changes = side.changes
            named = changes.columns
            if self._ending:
                named = named.append_column("end", pa.array(changes.explicit_ends()))
                less.append(rows.expire(int(changes.times[-1])))
            values = changes.columns, changes.signs, changes.explicit_ends()
            coming, going = rows.apply(row_keys(named, self._evaluator), values, side.keys)
            more.append(coming)
            less.append(going)
        looked_up = [side.keys for side in sides]
        keys = np.concatenate([*looked_up, *more, *less])
        lengths = [sum(map(len, parts)) for parts in (looked_up, more, less)]
        slots = self._keys.touch(keys, np.zeros(len(keys), np.int64))
        self._keys.count(slots, np.repeat([0, 1, -1], lengths))
        self._keys.release(slots)

    def rows(self) -> int:
        """Return the number of distinct rows kept of both sides."""
        return sum(map(len, self._rows))

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return self._keys.nbytes() + sum(rows.nbytes() for rows in self._rows)
