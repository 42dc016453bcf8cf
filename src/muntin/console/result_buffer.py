"""Results that wait for a browser: the newest ones, a bounded number, and a count of the others."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

import pyarrow as pa

from muntin.console.rows import newest

MOST = 200
"""Rows that wait for a browser, and that it gets at once."""
_SMALL = 1 << 20
"""Bytes of a table that is kept although few of its rows are."""


@dataclass(frozen=True)
class Taken:
    """The results since the last time: how many there were, and the newest of them."""

    count: int
    table: pa.Table | None

    @property
    def left_out(self) -> int:
        """Return how many of them are not in ``table``."""
        return self.count - (0 if self.table is None else len(self.table))


class ResultBuffer:
    """Takes results inside the engine, in constant time and memory, and never waits for anyone.

    A table with more rows than fit is cut to the newest. If it is large, by a copy, since a slice
    would keep all of it; at most two tables that were cut wait at a time.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._tables: deque[pa.Table] = deque()
        self._rows = self._count = 0

    def offer(self, table: pa.Table) -> None:
        """Take results; forget the oldest if there are too many."""
        if not len(table):
            return
        small = table.nbytes <= _SMALL
        kept = table.slice(max(len(table) - self._most, 0)) if small else newest(table, self._most)
        with self._lock:
            self._count += len(table)
            self._tables.append(kept)
            self._rows += len(kept)
            while self._rows - len(self._tables[0]) >= self._most:
                self._rows -= len(self._tables.popleft())

    def __len__(self) -> int:
        """Return the rows that wait."""
        return self._rows

    def take(self) -> Taken:
        """Return the results since the last call."""
        with self._lock:
            tables, self._tables = self._tables, deque()
            count, self._count, self._rows = self._count, 0, 0
        if not tables:
            return Taken(count, None)
        return Taken(count, newest(pa.concat_tables(tables), self._most))
