"""EMIT SNAPSHOT: from changes to the complete answer at every instant of EVERY.

A row is in the answers from when it comes until it goes, so all answers that are due are listed at
once and their rows taken together. A row that goes is found by its number: that of its group, where
the operator below gives one, otherwise one per distinct row. State: the rows of the last answer,
and later changes. Cost: O(1) per change and per row of an answer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.kernels.snapshot import NONE, end_rows, list_shown
from muntin.model.arrays import Integers
from muntin.operators.row_keys import row_keys
from muntin.operators.signed import Changes
from muntin.state.columns import take_rows
from muntin.state.group_table import GroupTable

_AT_ONCE = 1 << 20
"""Rows of answers that are listed at once; at least one answer is."""


class Snapshots:
    """The answer of a query as changes come, in the order of time."""

    def __init__(self, schema: pa.Schema, evaluator: Evaluator) -> None:
        self._schema = schema
        self._evaluator = evaluator
        self._table = GroupTable()
        self._parts: list[Changes] = []
        self._firsts = self._lasts = np.full(0, NONE, np.int64)

    def take(self, changes: Changes) -> None:
        """Take changes; either all have numbers or none."""
        if not len(changes):
            return
        numbers = self._numbers(changes) if changes.numbers is None else changes.numbers
        self._parts.append(
            Changes(
                changes.columns.rename_columns(self._schema.names),
                changes.times,
                changes.signs,
                numbers=numbers,
            )
        )

    def _numbers(self, changes: Changes) -> Integers:
        numbers = self._table.find(*row_keys(changes.columns, self._evaluator))
        slots = self._table.touch(numbers, np.zeros(len(numbers), np.int64))
        self._table.count(slots, changes.signs)
        self._table.release(slots)
        return numbers

    def show(self, first: int, every: int, until: int) -> Iterator[tuple[pa.Table, Integers]]:
        """Yield the rows of the answers from ``first`` on, every ``every``, with their instants.

        Instants at which the answer is empty cost nothing, however many there are. The answers
        come in pieces of about ``_AT_ONCE`` rows.
        """
        while first <= until:
            changes = self._changes()
            total = (until - first) // every + 1
            ends = self._ends(changes)
            coming = changes.signs > 0
            begins = np.clip(-((first - changes.times) // every), 0, total)
            stops = np.where(
                coming, np.clip(-((first - np.minimum(ends, until + 1)) // every), 0, total), 0
            )
            shown = begins < stops
            skipped = int(begins[shown].min()) if shown.any() else total
            count = min(total - skipped, max(_AT_ONCE // max(len(changes), 1), 1))
            first += skipped * every
            last = first + (count - 1) * every
            if count:
                yield self._list(
                    changes,
                    np.clip(begins - skipped, 0, count),
                    np.clip(stops - skipped, 0, count),
                    np.arange(first, last + 1, every),
                )
            self._parts = [changes.where((changes.times > last) | (coming & (ends > last)))]
            first = last + every

    @staticmethod
    def _list(
        changes: Changes, begins: Integers, stops: Integers, instants: Integers
    ) -> tuple[pa.Table, Integers]:
        """Return the rows of answers; each row is in those from its begin up to its stop."""
        count = len(instants)
        shown = begins < stops
        added = np.bincount(begins[shown], minlength=count + 1) - np.bincount(
            stops[shown], minlength=count + 1
        )
        sizes = np.cumsum(added)[:count]
        rows = np.empty(int(sizes.sum()), np.int64)
        list_shown(begins, stops, np.cumsum(sizes) - sizes, rows)
        return take_rows(changes.columns, rows), np.repeat(instants, sizes)

    def _changes(self) -> Changes:
        """Return all that is kept, as one."""
        if len(self._parts) != 1:
            parts = self._parts or [
                Changes(self._schema.empty_table(), *(np.empty(0, np.int64) for _ in range(2)))
            ]
            numbers = [
                np.empty(0, np.int64) if part.numbers is None else part.numbers for part in parts
            ]
            self._parts = [
                Changes(
                    pa.concat_tables([part.columns for part in parts]).combine_chunks(),
                    np.concatenate([part.times for part in parts]),
                    np.concatenate([part.signs for part in parts]),
                    numbers=np.concatenate(numbers),
                )
            ]
        return self._parts[0]

    def _ends(self, changes: Changes) -> Integers:
        """Return the time at which each row left; ``NEVER`` if it has not."""
        assert changes.numbers is not None, "given when they were taken"
        most = int(changes.numbers.max(initial=-1)) + 1
        if most > len(self._firsts):
            self._firsts, self._lasts = (np.full(2 * most, NONE, np.int64) for _ in range(2))
        ends, nexts = np.empty(len(changes), np.int64), np.empty(len(changes), np.int64)
        end_rows(
            changes.numbers, changes.signs, changes.times, self._firsts, self._lasts, nexts, ends
        )
        return ends

    def nbytes(self) -> int:
        """Return the bytes of the answer and of changes that are not shown yet."""
        kept = sum(part.columns.nbytes + 3 * part.times.nbytes for part in self._parts)
        return int(kept) + self._table.nbytes() + self._firsts.nbytes + self._lasts.nbytes
