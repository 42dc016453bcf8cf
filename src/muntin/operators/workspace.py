"""Memory that operators use only while they run, shared by all operators of an engine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_COLUMNS = 1 << 18


class Workspace:
    """Room for the results of a kernel call: one array, cut to the shape that each operator needs.

    Operators run one after the other, and the reader of an operator's results copies them before
    the operator continues, so one array serves hundreds of queries.
    """

    def __init__(self) -> None:
        self._words = np.empty(0, np.int64)

    def results(self, rows: int, columns: int = _COLUMNS) -> npt.NDArray[np.int64]:
        """Return an array of at least ``columns`` columns with undefined contents."""
        return self.exactly(rows, max(columns, _COLUMNS))

    def exactly(self, rows: int, columns: int) -> npt.NDArray[np.int64]:
        """Return an array of ``columns`` columns with the contents of the last, or undefined."""
        if len(self._words) < rows * columns:
            self._words = np.empty(rows * columns, np.int64)
        return self._words[: rows * columns].reshape(rows, columns)
