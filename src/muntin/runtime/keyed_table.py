"""A stored table whose rows change, each known by its key.

State: the rows, and the place of each by its key. A change costs its rows; the whole content is put
together when a query begins, an answer is asked for, or a checkpoint is written.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.errors import InputError
from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.model.arrays import Integers
from muntin.operators.row_keys import row_keys
from muntin.state.columns import take_rows
from muntin.state.group_table import GroupTable, grown

_LEAST = 1 << 10


class KeyedTable:
    """The rows of one table; ``key`` is a column without NULLs whose values differ."""

    def __init__(self, name: str, key: str, rows: pa.Table, duck: Duck) -> None:
        self._name, self._key = name, key
        self._evaluator = Evaluator(duck)
        self._numbers = GroupTable()
        self._place = np.zeros(0, np.int64)
        """The place of the row of each key plus one."""
        self._log = rows.schema.empty_table()
        self._content: pa.Table | None = None
        self.upsert(rows)

    def __len__(self) -> int:
        return len(self._numbers)

    def content(self) -> pa.Table:
        """Return all rows, in the order in which they were last changed."""
        if self._content is None:
            self._log = take_rows(self._log, np.sort(self._place[self._place > 0]) - 1)
            self._log = self._content = self._log.combine_chunks()
            found = self._numbers.find(*self._words(self._log.column(self._key)))
            self._place[found] = np.arange(len(found)) + 1
        return self._content

    def upsert(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Put rows in the place of those with their keys; return what goes and what comes."""
        self._check(rows.column(self._key))
        numbers = self._find(rows.column(self._key))
        gone = self._rows_at(self._place[numbers])
        self._place[numbers] = len(self._log) + np.arange(len(rows)) + 1
        self._log = pa.concat_tables([self._log, rows])
        self._changed()
        return gone, rows

    def delete(self, keys: pa.ChunkedArray) -> tuple[pa.Table, pa.Table]:
        """Remove the rows with some keys, if they are there; return them, and that none comes."""
        if keys.null_count:
            raise self._null_key()
        numbers = np.unique(self._find(keys))
        gone = self._rows_at(self._place[numbers])
        self._place[numbers] = 0
        self._numbers.give_back(numbers)
        self._changed()
        return gone, self._log.slice(0, 0)

    def _find(self, keys: pa.ChunkedArray) -> Integers:
        numbers = self._numbers.find(*self._words(keys))
        if len(self._place) < self._numbers.capacity:
            self._place = grown(self._place, self._numbers.capacity)
        return numbers

    def _words(self, keys: pa.ChunkedArray) -> tuple[Integers, Integers]:
        if not len(keys):
            none = np.empty(0, np.int64)
            return none, none
        return row_keys(pa.table([keys], names=["key"]), self._evaluator)

    def _rows_at(self, places: Integers) -> pa.Table:
        return take_rows(self._log, places[places > 0] - 1)

    def _changed(self) -> None:
        """Drop rows that were replaced once they are the majority."""
        self._content = None
        if len(self._log) > 2 * len(self) + _LEAST:
            self.content()

    def _check(self, keys: pa.ChunkedArray) -> None:
        if keys.null_count:
            raise self._null_key()
        low, high = self._words(keys)
        order = np.lexsort((high, low))
        same = (np.diff(low[order]) == 0) & (np.diff(high[order]) == 0)
        if same.any():
            value = keys[int(order[np.flatnonzero(same)[0]])].as_py()
            raise InputError(
                f"the rows for table {self._name} have the key {value!r} more than once",
                hint="Keep one row per key",
            )

    def _null_key(self) -> InputError:
        return InputError(
            f"the rows for table {self._name} have NULL as their key {self._key}",
            hint="Give every row a key",
        )
