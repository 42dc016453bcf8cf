"""Integers that order rows as ORDER BY does, some per sort key.

A key that may be NULL has two words: 0 for a value and -1 or 1 for NULL, then the code of the
value, complemented for DESC. A hidden key has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from muntin.model.arrays import Integers
from muntin.operators.value_codes import ValueCodes, value_codes
from muntin.plan.node import Node
from muntin.plan.nodes import Exchange
from muntin.plan.top_n import SortKey, TopN
from muntin.plan.window_functions import WindowFunctions
from muntin.state.ranked_rows import RankedRows


class KeptRows(Protocol):
    """Who keeps rows by their words."""

    def __len__(self) -> int: ...

    def known(self, word: int) -> Integers:
        """Return the different values of a word, ascending."""

    def rename(self, word: int, before: Integers, after: Integers) -> None:
        """Replace values of a word, which keep their order; 0 in the word before it: it is used."""


@dataclass(frozen=True)
class _KeptWord:
    """A word of all rows that are kept, as the codes of its sort key see it."""

    rows: KeptRows
    word: int
    descending: bool

    def __len__(self) -> int:
        return len(self.rows)

    def known(self) -> Integers:
        """Return all codes that are kept, ascending."""
        words = self.rows.known(self.word)
        return ~words[::-1] if self.descending else words

    def rename(self, before: Integers, after: Integers) -> None:
        """Use other codes for the same values, in the same order."""
        if self.descending:
            before, after = ~before[::-1], ~after[::-1]
        self.rows.rename(self.word, before, after)


def sort_rows(rows: pa.Table, keys: Sequence[SortKey], times: Integers | None = None) -> pa.Table:
    """Return rows in order; those of each time, if given, apart."""
    nothing = RankedRows(rows.schema, 0)
    words = OrderWords(rows.schema, keys).words(rows, nothing)
    first = [] if times is None else [times]
    return rows.take(pa.array(np.lexsort([*reversed(words), *first])))


class OrderWords:
    """The words of rows of one schema; codes of texts depend on the ``rows`` that are kept."""

    def __init__(self, schema: pa.Schema, keys: Sequence[SortKey]) -> None:
        self._keys = keys
        self._codes: list[ValueCodes] = [value_codes(schema.field(key.column).type) for key in keys]

    def count(self, keys: int) -> int:
        """Return the number of words of the first keys."""
        return sum(1 if key.hidden else 2 for key in self._keys[:keys])

    def words(self, columns: pa.Table, rows: KeptRows) -> list[Integers]:
        """Return the words of rows, one array per word; rename those of kept rows if needed."""
        found: list[Integers] = []
        for key, codes in zip(self._keys, self._codes, strict=True):
            column = columns.column(key.column)
            if not key.hidden:
                missing = (~column.is_valid().to_numpy()).astype(np.int64)
                found.append(-missing if key.nulls_first else missing)
            values = codes.encode(column, _KeptWord(rows, len(found), key.descending))
            values = ~values if key.descending else values
            if column.null_count:
                values = np.where(found[-1] == 0, values, 0)
            found.append(values)
        return found


def tells_apart(order: Sequence[SortKey], columns: Iterable[int], input_: Node) -> bool:
    """Return whether rows with equal sort keys are equal in some columns.

    Positions in streams tell rows apart, except for rows of several partitions and for rows with
    values of window functions, which change.
    """
    if {key.column for key in order} >= set(columns):
        return True
    changing = (Exchange, TopN, WindowFunctions)
    placed = any(key.hidden for key in order)
    return placed and not any(isinstance(below, changing) for below in input_.walk())
