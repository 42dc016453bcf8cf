"""As-of joins on signed rows: each left row with the last right row that is not after it.

At every instant a left row is in the result with the nearest right row of its key that is there,
or, in an outer join, with NULLs if there is none. A right row that comes is the match of the left
rows behind it up to the next right row; when it goes, these get the match of the rows before them.

State: the distinct rows of both inputs, in order under their keys. Cost: the rows of a batch, and
the left rows that get another match. Rows that come in order, as those of streams do, need no
search. Left rows that cannot match, such as those with a NULL key, are not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from muntin.expressions.codes import real_codes, whole_codes
from muntin.expressions.evaluator import Evaluator
from muntin.kernels.asof_join import INSERTS, OUTER
from muntin.kernels.jit import prepare_part
from muntin.model.arrays import Integers, Mask
from muntin.operators.operator import Operator
from muntin.operators.order_words import OrderWords
from muntin.operators.row_keys import row_keys
from muntin.operators.signed import Changes, merged
from muntin.plan.asof_join import AsofJoin
from muntin.plan.expression import ColumnRef
from muntin.plan.key_types import key_type
from muntin.plan.nodes import Exchange
from muntin.plan.semi_join import KeyPair
from muntin.state.asof_rows import AsofRows, SideRows

_OWN = 2
"""Words of the order before those of ties: what rows are ordered by, and the side."""


@dataclass(frozen=True)
class _TieWords:
    """The words of ties, as the codes of their columns see those of all right rows."""

    rows: AsofRows

    def __len__(self) -> int:
        return len(self.rows)

    def known(self, word: int) -> Integers:
        """Return the different values of a word, ascending."""
        return self.rows.known(_OWN + word)

    def rename(self, word: int, before: Integers, after: Integers) -> None:
        """Replace values of a word."""
        self.rows.rename(_OWN + word, before, after)


class AsofJoinOperator(Operator):
    """Runs one as-of join; with ``answers`` it emits what is there, not what arises."""

    keeps_rows = True

    def __init__(self, node: AsofJoin, evaluator: Evaluator, *, answers: bool = False) -> None:
        prepare_part("asof join")
        self._node = node
        self._evaluator = evaluator
        self._flat = [
            [ColumnRef(place, name).flat for name in child.schema.names]
            for place, child in enumerate((node.left, node.right))
        ]
        self._identity = [
            () if any(isinstance(below, Exchange) for below in child.walk()) else own
            for child, own in zip((node.left, node.right), node.identity, strict=True)
        ]  # positions of several partitions are not apart
        self._types = [_common_type(pair) for pair in (*node.keys, node.at)]
        self._ties = OrderWords(node.right.schema, node.ties)
        form = (OUTER if node.outer else 0) | (INSERTS if node.inserts and not answers else 0)
        words = _OWN + self._ties.count(len(node.ties))
        schemas = [
            pa.schema([child.schema.field(place) for place in places])
            for child, places in ((node.left, node.left_columns), (node.right, node.right_columns))
        ]
        self._rows = AsofRows(schemas[0], schemas[1], words, form)
        self._words = words

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes of the result."""
        node = self._node
        (left, lefts), (right, _) = self._side(0, inputs[0]), self._side(1, inputs[1])
        found = self._rows.run(left, right)
        columns = pa.table(
            [*found[0].columns, *found[1].columns],
            schema=node.schema,
        )
        parts = [Changes(columns, *found[2:])]
        if node.outer and not lefts.all():
            parts.append(self._without_match(inputs[0].where(~lefts)))
        return merged(parts, node.schema)

    def _without_match(self, changes: Changes) -> Changes:
        """Return changes of left rows that cannot match, beside NULLs."""
        node = self._node
        if node.inserts:
            changes = changes.where(changes.signs > 0)
        nulls = [
            pa.nulls(len(changes), node.right.schema.field(place).type)
            for place in node.right_columns
        ]
        columns = changes.columns.select(node.left_columns).columns
        table = pa.table([*columns, *nulls], schema=node.schema)
        return Changes(table, changes.times, changes.signs)

    def _side(self, place: int, changes: Changes) -> tuple[SideRows, Mask]:
        """Return the changes of an input that can match, with their words, and which those are."""
        able = np.ones(len(changes), np.bool_)
        node = self._node
        values: list[pa.ChunkedArray] = []
        if len(changes):
            flat = changes.columns.rename_columns(self._flat[place])
            pairs = (*node.keys, node.at)
            values = self._evaluator.columns(
                [pair.right if place else pair.left for pair in pairs], flat
            )
            values = [
                column if column.type == kind else column.cast(kind, safe=False)
                for column, kind in zip(values, self._types, strict=True)
            ]
            for column in values:
                if column.null_count:
                    able &= column.is_valid().to_numpy()
            if place == 0 and node.conditions:
                able &= self._evaluator.holds(list(node.conditions), flat)
            if not able.all():
                changes = changes.where(able)
                values = [column.filter(pa.array(able)) for column in values]
        return self._words_of(place, changes, values), able

    def _words_of(
        self, place: int, changes: Changes, values: Sequence[pa.ChunkedArray]
    ) -> SideRows:
        node = self._node
        columns = changes.columns.select(node.right_columns if place else node.left_columns)
        if not len(changes):
            empty = np.empty(0, np.int64)
            words = np.empty((0, self._words), np.int64)
            return SideRows(columns, (empty, empty), (empty, empty), words, empty, empty)
        order = np.zeros((len(changes), self._words), np.int64)
        codes = _codes(values[-1])
        order[:, 0] = ~codes if node.is_forward else codes
        # Of rows at one place in the order, the one that is found stands before the one that seeks.
        order[:, 1] = place != (node.operator in {">=", "<="})
        if place:
            for number, word in enumerate(self._ties.words(changes.columns, self._kept), _OWN):
                order[:, number] = word
        identity = self._identity[place]
        rows = changes.columns.select(identity) if identity else changes.columns
        keys = pa.table(list(values[:-1]), names=[str(number) for number in range(len(node.keys))])
        nothing = np.zeros(len(changes), np.int64)
        key_words = row_keys(keys, self._evaluator) if node.keys else (nothing, nothing)
        return SideRows(
            columns,
            key_words,
            row_keys(rows, self._evaluator),
            order,
            changes.times,
            changes.signs,
        )

    @property
    def _kept(self) -> _TieWords:
        return _TieWords(self._rows)

    def groups(self) -> int:
        """Return the number of distinct rows and of keys."""
        return len(self._rows)

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return self._rows.nbytes()


def _codes(values: pa.ChunkedArray) -> Integers:
    """Return integers in the order of numbers or times."""
    return real_codes(values) if pat.is_floating(values.type) else whole_codes(values)


def _common_type(pair: KeyPair) -> pa.DataType:
    kind = key_type(pair.left.type, pair.right.type)
    assert kind is not None, "the binder pairs comparable types only"
    return kind
