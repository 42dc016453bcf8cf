"""W-Expire ([HammadTR, section 3.2]): rows with ends in, signed rows out.

A row is kept until its end and then goes as a negative row, at its end. State: the rows in runs
sorted by their ends. Each batch makes a run; several runs of about the same size are merged, so
there are few runs and a row is copied O(log n) times. What is due is the head of every run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.model.arrays import Integers
from muntin.operators.instants import order_of
from muntin.operators.signed import NEVER, Changes, merged
from muntin.state.columns import take_rows

_TOGETHER = 8
"""Runs of about the same size that are merged into one."""


@dataclass(frozen=True)
class _Run:
    """Rows sorted by their ends, with the signs they go with; at one end, +1 stands before -1."""

    rows: pa.Table
    ends: Integers
    signs: npt.NDArray[np.int8]

    @classmethod
    def sorted(cls, rows: pa.Table, ends: Integers, signs: npt.NDArray[np.int8]) -> _Run:
        order = order_of(ends) if (signs < 0).all() else np.lexsort((-signs, ends))
        if order is None:
            return cls(rows, ends, signs)
        return cls(take_rows(rows, order), ends[order], signs[order])

    @classmethod
    def of(cls, runs: list[_Run]) -> _Run:
        """Return several runs as one."""
        if len(runs) == 1:
            return runs[0]
        rows = pa.concat_tables([run.rows for run in runs])
        return cls.sorted(
            rows,
            np.concatenate([run.ends for run in runs]),
            np.concatenate([run.signs for run in runs]),
        )

    def cut(self, place: int) -> tuple[_Run, _Run]:
        """Return the rows before a place, and the rest."""
        head = _Run(self.rows.slice(0, place), self.ends[:place], self.signs[:place])
        return head, _Run(self.rows.slice(place), self.ends[place:], self.signs[place:])

    def level(self) -> int:
        return len(self.ends).bit_length() // (_TOGETHER.bit_length() - 1)


class Expire:
    """Keeps rows with their ends, and retracts them when these are due."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._runs: list[_Run] = []
        self._next = NEVER

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
        self._runs.append(
            _Run.sorted(
                rows.columns.rename_columns(self._schema.names),
                rows.ends,
                (-rows.signs).astype(np.int8),
            )
        )
        self._next = min(self._next, int(self._runs[-1].ends[0]))
        self._merge()

    def _merge(self) -> None:
        """Merge the last runs while there are many that are not larger than the last."""
        while True:
            level = self._runs[-1].level()
            alike = 0
            while alike < len(self._runs) and self._runs[-1 - alike].level() <= level:
                alike += 1
            if alike < _TOGETHER:
                return
            self._runs[-alike:] = [_Run.of(self._runs[-alike:])]

    def due(self, until: int) -> Changes:
        """Remove and return the rows that end up to an instant."""
        if self._next > until:
            return Changes.none(self._schema)
        heads, rest = [], []
        for run in self._runs:
            head, tail = run.cut(int(np.searchsorted(run.ends, until, side="right")))
            heads += [head] if len(head.ends) else []
            rest += [tail] if len(tail.ends) else []
        self._runs = rest
        self._next = min((int(run.ends[0]) for run in rest), default=NEVER)
        gone = _Run.of(heads)
        return Changes(gone.rows, gone.ends, gone.signs.astype(np.int64))

    def __len__(self) -> int:
        return sum(len(run.ends) for run in self._runs)

    def nbytes(self) -> int:
        """Return the bytes of the rows that are kept."""
        return sum(run.rows.nbytes + run.ends.nbytes + run.signs.nbytes for run in self._runs)
