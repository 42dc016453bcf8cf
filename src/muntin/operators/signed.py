"""Changes of rows: columns, the time at which each change takes effect, and its sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

BEGINNING = -62_135_596_800_000_000
"""The instant of changes that were there before any row came: 0001-01-01, the first that calendars know."""


@dataclass(frozen=True)
class Changes:
    """Rows that come (+1) and go (-1), sorted by time; a row goes only after an equal one has come."""

    columns: pa.Table
    times: Integers
    signs: Integers

    def __len__(self) -> int:
        return len(self.times)

    def where(self, mask: Mask) -> Changes:
        """Some of them."""
        return self if mask.all() else Changes(self.columns.filter(pa.array(mask)), self.times[mask], self.signs[mask])

    @classmethod
    def none(cls, schema: pa.Schema) -> Changes:
        """No changes."""
        return cls(schema.empty_table(), np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def coming(cls, rows: pa.Table, at: int) -> Changes:
        """Rows that all come at one instant."""
        return cls(rows, np.full(len(rows), at, np.int64), np.ones(len(rows), np.int64))


def merged(parts: Sequence[Changes], schema: pa.Schema) -> Changes:
    """Changes put together in the order of time; those of one time stay in the order of the parts."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return Changes.none(schema)
    if len(parts) == 1:
        return Changes(parts[0].columns.rename_columns(schema.names), parts[0].times, parts[0].signs)
    columns = pa.concat_tables([part.columns.rename_columns(schema.names) for part in parts])
    times = np.concatenate([part.times for part in parts])
    signs = np.concatenate([part.signs for part in parts])
    if (times[1:] >= times[:-1]).all():
        return Changes(columns, times, signs)
    order = np.argsort(times, kind="stable")
    return Changes(columns.take(pa.array(order)), times[order], signs[order])
