"""A change of a stored table as queries take it: rows that go and rows that come at an instant.

A change takes effect at the last instant that is closed for a query; with EVERY, where that
instant is shown. So the rows that are processed later find the new content.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.operators.signed import BEGINNING, Changes, merged


@dataclass(frozen=True)
class TableChange:
    """The rows of a change of a table, with signs, at an instant."""

    table: str
    rows: pa.Table
    signs: npt.NDArray[np.int64]
    at: int = BEGINNING

    @classmethod
    def of(cls, table: str, gone: pa.Table, came: pa.Table) -> TableChange:
        """Return the change that takes rows out and puts others in."""
        signs = np.repeat(np.array([-1, 1]), [len(gone), len(came)])
        return cls(table, pa.concat_tables([gone, came]), signs)

    def shown(self, closed: int, every: int | None) -> TableChange:
        """Return it at the instant at which a query shows it that has come to ``closed``."""
        if closed <= BEGINNING:
            return replace(self, at=BEGINNING)
        return replace(self, at=closed if every is None else -(-closed // every) * every)

    def undone(self) -> TableChange:
        """Return the change that takes it back, from the beginning."""
        return replace(self, signs=-self.signs, at=BEGINNING)


def by_table(changes: Iterable[TableChange]) -> dict[str, Changes]:
    """Return changes as the operators of scans take them, by table."""
    parts: dict[str, list[Changes]] = {}
    for one in changes:
        times = np.full(len(one.rows), one.at, np.int64)
        parts.setdefault(one.table, []).append(Changes(one.rows, times, one.signs))
    return {name: merged(some, some[0].columns.schema) for name, some in parts.items()}
