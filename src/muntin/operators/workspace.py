"""Memory that operators use only while they run, shared by all operators of an engine."""

from __future__ import annotations

import numpy as np

from muntin.model.arrays import Integers

_COLUMNS = 1 << 18
_MARGIN = 1 << 14
"""Columns beyond those that are worth handing out: for the matches of one more row."""


class Workspace:
    """Room for the results of a kernel call: one array, cut to the shape that each operator needs.

    Operators run one after the other, and the reader of an operator's results copies them before
    the operator continues, so one array serves hundreds of queries.
    """

    def __init__(self) -> None:
        self._words = np.empty(0, np.int64)

    def results(self, rows: int, columns: int = _COLUMNS) -> Integers:
        """Return an array of at least ``columns`` columns with undefined contents."""
        return self.exactly(rows, max(columns, _COLUMNS))

    def exactly(self, rows: int, columns: int) -> Integers:
        """Return an array of ``columns`` columns with the contents of the last, or undefined."""
        if len(self._words) < rows * columns:
            self._words = np.empty(rows * columns, np.int64)
        return self._words[: rows * columns].reshape(rows, columns)


class ResultBuffer:
    """Part of the workspace of an engine, in the shape that one join needs.

    Operators share the workspace, so the contents are valid only while this join runs.
    """

    def __init__(self, workspace: Workspace, sources: int) -> None:
        self.workspace = workspace
        self.room = 0
        self._rows = 2 + sources

    @property
    def out(self) -> Integers:
        """Lines of tags, of times and of the positions in each source."""
        return self.workspace.results(self._rows, self.room)

    @property
    def enough(self) -> int:
        """Return the number of matches that are worth handing out."""
        return int(self.out.shape[1]) - _MARGIN

    def grow(self, need: int) -> None:
        """Make room for at least ``need`` matches."""
        if need > self.out.shape[1]:
            self.room = need + _MARGIN
