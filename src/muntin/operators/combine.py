"""A select over sub-selects, on signed rows.

One input: conditions and the select list, row by row; nothing is kept. Several: binary joins, one
after the other, each by the equalities between what has been joined and the next input
(:mod:`muntin.operators.pair_join`). Conditions are checked as soon as all that they read is there.
Changes of one time that cancel out are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.operators.operator import Operator
from muntin.operators.pair_join import Key, PairJoin
from muntin.operators.row_keys import row_keys
from muntin.operators.signed import Changes
from muntin.plan.expression import ColumnRef, Comparison, Expression
from muntin.plan.key_types import key_type
from muntin.plan.nodes import Join, Project
from muntin.state.group_table import GroupTable


class ProjectOperator(Operator):
    """A select over one sub-select."""

    def __init__(self, node: Project, evaluator: Evaluator) -> None:
        self._node = node
        self._evaluator = evaluator
        self._flat = [ColumnRef(0, name).flat for name in node.input.schema.names]

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes that pass, with the columns of the select list."""
        node = self._node
        (changes,) = inputs
        if not len(changes):
            return Changes.none(node.schema)
        changes = changes.with_columns(changes.columns.rename_columns(self._flat))
        if node.where:
            changes = changes.where(
                self._evaluator.holds(
                    [predicate.expression for predicate in node.where], changes.columns
                )
            )
        columns = self._evaluator.columns(
            [column.expression for column in node.select], changes.columns
        )
        return changes.with_columns(pa.table(columns, schema=node.schema))


@dataclass(frozen=True)
class _Stage:
    """The next input, how it is joined with those before, and the conditions to check then."""

    place: int
    join: PairJoin | None
    conditions: list[Expression]


class CombineOperator(Operator):
    """A select over several inputs, at least one a sub-select; ``ending``: rows may have ends."""

    def __init__(self, node: Join, evaluator: Evaluator, *, ending: bool = False) -> None:
        self.tidy = not ending
        self._node = node
        self._evaluator = evaluator
        self._ending = ending
        self._flat = [
            [ColumnRef(place, name).flat for name in child.schema.names]
            for place, child in enumerate(node.sources)
        ]
        conditions = [predicate.expression for predicate in node.predicates]
        self._alone = [
            [one for one in conditions if one.sources == {place}]
            for place in range(len(node.sources))
        ]
        self._constant = [one for one in conditions if not one.sources]
        self._stages = self._plan()

    def _plan(self) -> list[_Stage]:
        """Return the inputs in the order in which they are joined.

        The next one is tied to those before it by an equality, if there is one.
        """
        left = list(range(len(self._node.sources)))
        done = {left.pop(0)}
        stages = [_Stage(0, None, [])]
        schema = self._named_schema(0)
        while left:
            place = next((place for place in left if self._keys(done, place)), left[0])
            left.remove(place)
            own = self._named_schema(place)
            keys = self._keys(done, place)
            checked = [
                predicate.expression
                for predicate in self._node.predicates
                if len(predicate.expression.sources) > 1
                and place in predicate.expression.sources <= done | {place}
                and _key(predicate.comparison, done, place) is None
            ]
            stages.append(
                _Stage(
                    place,
                    PairJoin(keys, (schema, own), self._evaluator, ending=self._ending),
                    checked,
                )
            )
            schema = pa.schema([*schema, *own])
            done.add(place)
        return stages

    def _named_schema(self, place: int) -> pa.Schema:
        schema = self._node.sources[place].schema
        return pa.schema(
            [field.with_name(flat) for field, flat in zip(schema, self._flat[place], strict=True)]
        )

    def _keys(self, done: set[int], place: int) -> list[Key]:
        """Return the equalities between an input and those that are joined already."""
        found = [_key(predicate.comparison, done, place) for predicate in self._node.predicates]
        return [key for key in found if key is not None]

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes of the join, those of one time put together."""
        if not any(len(changes) for changes in inputs):
            return Changes.none(self._node.schema)
        found = self._own(0, inputs[0])
        for stage in self._stages[1:]:
            assert stage.join is not None, "all but the first are joined with those before"
            found = self._where(
                stage.join.run(found, self._own(stage.place, inputs[stage.place])), stage.conditions
            )
        columns = self._evaluator.columns(
            [column.expression for column in self._node.select], found.columns
        )
        return self._net(found.with_columns(pa.table(columns, schema=self._node.schema)))

    def _own(self, place: int, changes: Changes) -> Changes:
        """Return the changes of one input that can be in a result, under flat names."""
        named = changes.with_columns(changes.columns.rename_columns(self._flat[place]))
        return self._where(named, [*self._alone[place], *self._constant])

    def _where(self, changes: Changes, conditions: Sequence[Expression]) -> Changes:
        return (
            changes.where(self._evaluator.holds(conditions, changes.columns))
            if conditions and len(changes)
            else changes
        )

    def _net(self, changes: Changes) -> Changes:
        """Return equal rows of one time as one, without those that cancel out."""
        if not len(changes):
            return Changes.none(self._node.schema)
        named = changes.columns
        if changes.ends is not None:
            named = named.append_column("end", pa.array(changes.ends))
        table = GroupTable()
        slots = table.touch(table.find(*row_keys(named, self._evaluator)), changes.times)
        counts = table.count(slots, changes.signs)
        weights = counts[1::2] - counts[0::2]
        rows = np.repeat(slots.rows, np.abs(weights))
        ends = None if changes.ends is None else changes.ends[rows]
        signs = np.repeat(np.sign(weights), np.abs(weights))
        return replace(
            changes,
            columns=changes.columns.take(pa.array(rows)),
            times=changes.times[rows],
            signs=signs,
            ends=ends,
        )

    def groups(self) -> int:
        """Return the number of rows kept of all inputs and of intermediate joins."""
        return sum(stage.join.rows() for stage in self._stages if stage.join is not None)

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return sum(stage.join.nbytes() for stage in self._stages if stage.join is not None)


def _key(comparison: Comparison | None, done: set[int], place: int) -> Key | None:
    """Return a comparison as an equality between joined inputs and the next one, if it is one."""
    if comparison is None or comparison.operator != "=":
        return None
    for left, right in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
        if left.sources and left.sources <= done and right.sources == {place}:
            kind = key_type(left.type, right.type)
            return None if kind is None else Key(left, right, kind)
    return None
