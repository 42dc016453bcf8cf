"""W-Expire ([HammadTR, section 3.2]): rows with ends in, signed rows out.

A row is kept until its end and then goes as a negative row, at its end. State: the rows in a log,
in the order they came, and a timing wheel of their positions by their ends
(:mod:`muntin.state.expiring_matches`). A row comes and goes in O(1). Rows do not end in the order
they come, so once most rows of the log have gone the others are copied into a new one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.model.arrays import Integers, Mask
from muntin.operators.signed import NEVER, Changes, merged
from muntin.state.batch import batch_of
from muntin.state.expiring_matches import Endings
from muntin.state.stream_log import StreamLog

_LOOSE = 3
"""Rows in the log for each row that is kept, above which the log is copied."""
_FEW = 1 << 10
"""Rows that may always be in the log."""


class Expire:
    """Keeps rows with their ends, and retracts them when these are due."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._nothing = Changes.none(schema)
        self._columns = [str(place) for place in range(len(schema))]
        self._stored = pa.schema(list(zip(self._columns, schema.types, strict=True)))
        self._log = StreamLog(self._stored)
        self._horizon = 1
        self._endings = Endings(1, self._horizon)
        self._first = 0
        """The position before which all rows have gone."""
        self._latest = -NEVER

    @property
    def next(self) -> int:
        """An instant before which no row ends."""
        return self._endings.next

    def run(self, rows: Changes, until: int) -> Changes:
        """Return rows as they come and those that end up to an instant; at one time -1 first."""
        self.take(rows)
        return merged(
            [self.due(until), Changes(rows.columns, rows.times, rows.signs)], self._schema
        )

    def take(self, rows: Changes) -> None:
        """Keep rows that have an end."""
        if rows.ends is None or not len(rows):
            return
        rows = rows.where(rows.ends < NEVER)
        if not len(rows):
            return
        assert rows.ends is not None, "they have ends"
        if (longest := int((rows.ends - rows.times).max())) > 2 * self._horizon:
            self._rebuild(longest)
        self._keep(rows.columns, rows.ends, rows.signs < 0)

    def _keep(self, rows: pa.Table, ends: Integers, coming: Mask) -> None:
        """Store rows; ``coming`` ones come at their ends: they were retracted before."""
        start, count = self._log.next, len(ends)
        # The log needs no times: rows are found by their positions.
        self._log.append(
            batch_of(rows.rename_columns(self._columns), np.zeros(count, np.int64), 0.0)
        )
        self._endings.put(ends, (2 * np.arange(start, start + count) + coming)[np.newaxis])
        self._latest = max(self._latest, int(ends.max()))

    def due(self, until: int) -> Changes:
        """Remove and return the rows that end up to an instant; at one end +1 before -1."""
        if self.next > until:
            return self._nothing
        ends, positions, coming = self._pop(until)
        order = np.lexsort((~coming, ends))
        ends, positions, coming = ends[order], positions[order], coming[order]
        gone = Changes(self._rows(positions), ends, np.where(coming, 1, -1))
        self._release(positions)
        return gone

    def _pop(self, until: int) -> tuple[Integers, Integers, Mask]:
        ends, marked = self._endings.pop(until)
        return ends.copy(), marked[0] >> 1, (marked[0] & 1).astype(bool)

    def _rows(self, positions: Integers) -> pa.Table:
        return pa.table(self._log.gather(positions, self._columns), schema=self._schema)

    def _release(self, gone: Integers) -> None:
        """Release the rows of the log up to which all have gone, or copy the others."""
        if not len(self):
            self._first = self._log.next
        elif len(gone) and gone.min() == self._first and gone.max() < self._first + len(gone):
            self._first += len(gone)
        self._log.trim(self._first)
        if self._log.next - self._first > _LOOSE * len(self) + _FEW:
            self._rebuild(self._horizon)

    def _rebuild(self, horizon: int) -> None:
        """Copy what is kept into a new log, and into a wheel for rows that stay that long."""
        ends, positions, coming = self._pop(self._latest)
        order = np.argsort(positions)
        rows = self._rows(positions[order])
        self._log, self._first = StreamLog(self._stored), 0
        self._horizon = horizon
        self._endings = Endings(1, horizon)
        if len(order):
            self._keep(rows, ends[order], coming[order])

    def __len__(self) -> int:
        return len(self._endings)

    def nbytes(self) -> int:
        """Return the bytes of the rows that are kept."""
        return self._log.nbytes() + self._endings.nbytes()
