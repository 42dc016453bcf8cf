"""The values of rows that an operator knows by number: appended as they come, looked up by place.

Values of rows that have gone are taken out when they are the most, so the log has at most twice as
many rows as are there, and the cost is O(1) per row.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.model.arrays import Integers
from muntin.state.columns import take_rows

_LEAST = 1 << 10
_PIECES = 64
"""Pieces from which on they are concatenated: lookups take longer the more there are."""


class ValueLog:
    """The values of rows of a schema, which has a column at least."""

    def __init__(self, schema: pa.Schema) -> None:
        self._log = schema.empty_table()

    def __len__(self) -> int:
        """Return the number of rows, gone ones included."""
        return len(self._log)

    def nbytes(self) -> int:
        """Return the bytes of all values."""
        return int(self._log.nbytes)

    def append(self, columns: pa.Table, signs: Integers) -> Integers:
        """Append the rows that come, and return for each change where its values are."""
        coming = signs > 0
        places: Integers = len(self._log) + np.cumsum(coming) - 1
        came = columns if coming.all() else columns.filter(pa.array(coming))
        if len(came):
            self._log = pa.concat_tables([self._log, came])
        return places

    def take(self, places: Integers) -> pa.Table:
        """Return the values at places; NULLs at -1."""
        missing = places < 0
        if missing.any():
            return self._log.take(pa.array(places, mask=missing))
        return take_rows(self._log, np.ascontiguousarray(places))

    def is_sparse(self, there: int) -> bool:
        """Return whether most rows have gone, given how many are there."""
        return len(self._log) >= 2 * there + _LEAST

    def keep(self, places: Integers) -> None:
        """Keep the values at some places only, from now on at the places 0, 1, ..."""
        self._log = take_rows(self._log, places).combine_chunks()

    def join_pieces(self) -> None:
        """Concatenate what was appended if it is in many pieces."""
        if self._log.num_columns and self._log.column(0).num_chunks > _PIECES:
            self._log = self._log.combine_chunks()
