"""Memory that operators use while they run and that means nothing afterwards, shared by all of an engine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_COLUMNS = 1 << 18


class Workspace:
    """Room for the results of a kernel call: one array, cut to the shape that each operator needs.

    Operators run one after the other, and whoever reads an operator's results has copied them before the operator
    goes on, so one array serves hundreds of queries.
    """

    def __init__(self) -> None:
        self._words = np.empty(0, np.int64)

    def results(self, rows: int, columns: int = _COLUMNS) -> npt.NDArray[np.int64]:
        """An array of at least so many columns; what it holds is undefined."""
        return self.exactly(rows, max(columns, _COLUMNS))

    def exactly(self, rows: int, columns: int) -> npt.NDArray[np.int64]:
        """An array of so many columns; what it holds is undefined, unless it is the one that was asked for last."""
        if len(self._words) < rows * columns:
            self._words = np.empty(rows * columns, np.int64)
        return self._words[: rows * columns].reshape(rows, columns)
