"""Session windows: rows with the bounds of their sessions, which change as rows extend them.

A row enters the result when it comes and leaves it when its session is over. If a row extends a
session, its other rows leave with the old end and enter with the new one at that instant, unless
nothing above reads the end. Sessions depend on the times of rows, so with EVERY too rows count at
their own times; only what changes is shown at its multiples.

State: the rows of open sessions, and what is shown of them. Cost: O(1) per row, and the rows of a
session for each instant at which it is extended and its end is read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.kernels.sessions import EACH, FINAL, STEADY
from muntin.model.arrays import Integers
from muntin.operators.operator import TimedOperator
from muntin.operators.row_keys import row_keys
from muntin.operators.signed import BEGINNING, NEVER, Changes
from muntin.plan.sessions import HIDDEN, SessionEnds, SessionWindows
from muntin.state.batch import times_of
from muntin.state.columns import time_column
from muntin.state.session_rows import SessionChanges, SessionRows

_MODES = {SessionEnds.EACH: EACH, SessionEnds.STEADY: STEADY, SessionEnds.FINAL: FINAL}


class SessionOperator(TimedOperator):
    """Keeps the sessions of one stream."""

    def __init__(self, node: SessionWindows, evaluator: Evaluator, every: int | None) -> None:
        self._node = node
        self._evaluator = evaluator
        self._names = node.input.schema.names
        shown = pa.schema(list(node.input.schema)[:-HIDDEN])
        self._kept = SessionRows(shown, node.gap, every, _MODES[node.ends])
        self._clock = BEGINNING

    @property
    def clock(self) -> int:
        """Return how far time has come."""
        return self._clock

    @property
    def due(self) -> int:
        """Return the instant at which a session may be over."""
        found = self._kept.due()
        return NEVER if found is None else found

    def move(self, now: int) -> None:
        """Note how far time has come: all rows up to then are here, or come with the next run."""
        self._clock = max(self._clock, now)

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes up to the clock."""
        (changes,) = inputs
        rows = changes.columns
        positions: Integers = rows.column(self._names[-1]).to_numpy()
        times = times_of(rows, self._names[-HIDDEN])
        found = self._kept.run(
            rows.select(range(len(self._names) - HIDDEN)),
            self._words(rows),
            (times, positions),
            self._clock,
        )
        return self._changes(found)

    def present(self) -> Changes:
        """Return the rows of open sessions."""
        return self._changes(self._kept.present())

    def positions(self) -> Integers:
        """Return the positions of the rows of open sessions in their stream."""
        return self._kept.positions()

    def _words(self, rows: pa.Table) -> tuple[Integers, Integers]:
        if not self._node.keys or not len(rows):
            none = np.zeros(len(rows), np.int64)
            return none, none
        return row_keys(rows.select(list(self._node.keys)), self._evaluator)

    def _changes(self, found: SessionChanges) -> Changes:
        bounds = [time_column(found.starts), time_column(found.ends)]
        columns = pa.table([*found.rows.columns, *bounds], schema=self._node.schema)
        times = found.times
        if len(times) > 1 and (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            return Changes(columns.take(pa.array(order)), times[order], found.signs[order])
        return Changes(columns, times, found.signs)

    def groups(self) -> int:
        """Return the number of rows that are kept."""
        return len(self._kept)

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return self._kept.nbytes()
