"""Signed rows: columns, the time and the sign of each change, and the end of some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from muntin.model.arrays import Integers, Mask
from muntin.operators.instants import order_of
from muntin.state.columns import empty_table, take_rows

BEGINNING = -62_135_596_800_000_000
"""The instant of changes before the first row: 0001-01-01, the first day of calendars."""

NEVER = 2**63 - 1
"""The end of a row that stays until it is retracted."""


@dataclass(frozen=True)
class Changes:
    """Rows that come (+1) and go (-1), sorted by time; a row goes only after an equal one has come.

    Without ``ends`` every row stays until it is retracted. With them, a row that comes is there
    from its time up to its end, at which it goes without a negative row. A row that is retracted
    earlier goes with the end of the one that came, so that the two cancel out at that end. With
    ``numbers``, a row that goes has the number of the one that came, and no other row present has
    it.
    """

    columns: pa.Table
    times: Integers
    signs: Integers
    ends: Integers | None = None
    numbers: Integers | None = None

    def __len__(self) -> int:
        return len(self.times)

    def where(self, mask: Mask) -> Changes:
        """Return the changes of a mask."""
        if mask.all():
            return self
        ends = None if self.ends is None else self.ends[mask]
        numbers = None if self.numbers is None else self.numbers[mask]
        return Changes(
            self.columns.filter(pa.array(mask)), self.times[mask], self.signs[mask], ends, numbers
        )

    def with_columns(self, columns: pa.Table) -> Changes:
        """Return the same changes of other rows."""
        return replace(self, columns=columns)

    def until(self, instant: int) -> tuple[Changes, Changes]:
        """Return the changes up to an instant, and those after it."""
        count = int(np.searchsorted(self.times, instant, side="right"))
        return self._slice(0, count), self._slice(count, len(self))

    def _slice(self, start: int, stop: int) -> Changes:
        ends = None if self.ends is None else self.ends[start:stop]
        return Changes(
            self.columns.slice(start, stop - start),
            self.times[start:stop],
            self.signs[start:stop],
            ends,
        )

    def explicit_ends(self) -> Integers:
        """Return the ends, ``NEVER`` for rows that stay."""
        return np.full(len(self), NEVER, np.int64) if self.ends is None else self.ends

    @classmethod
    def none(cls, schema: pa.Schema) -> Changes:
        """Return no changes."""
        return cls(empty_table(schema), np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def coming(cls, rows: pa.Table, at: int) -> Changes:
        """Return rows that all come at one instant."""
        return cls(rows, np.full(len(rows), at, np.int64), np.ones(len(rows), np.int64))


def _named(columns: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns under the names of a schema."""
    return columns if columns.column_names == schema.names else columns.rename_columns(schema.names)


def merged(parts: Sequence[Changes], schema: pa.Schema) -> Changes:
    """Return changes merged by time, without numbers; at one time in the order of the parts."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return Changes.none(schema)
    if len(parts) == 1:
        (part,) = parts
        return Changes(_named(part.columns, schema), part.times, part.signs, part.ends)
    columns = pa.concat_tables([_named(part.columns, schema) for part in parts])
    times = np.concatenate([part.times for part in parts])
    signs = np.concatenate([part.signs for part in parts])
    ending = any(part.ends is not None for part in parts)
    ends = np.concatenate([part.explicit_ends() for part in parts]) if ending else None
    order = order_of(times)
    if order is None:
        return Changes(columns, times, signs, ends)
    return Changes(
        take_rows(columns, order), times[order], signs[order], None if ends is None else ends[order]
    )
