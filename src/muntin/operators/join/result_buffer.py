"""Room for the matches that a kernel writes before they are handed out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.operators.workspace import Workspace

_MARGIN = 1 << 14
"""Columns beyond those that are worth handing out: for the matches of one more row."""


class ResultBuffer:
    """Part of the workspace of an engine, in the shape that one join needs.

    Operators share the workspace, so the contents are valid only while this join runs.
    """

    def __init__(self, workspace: Workspace, sources: int) -> None:
        self.workspace = workspace
        self.room = 0
        self._rows = 2 + sources

    @property
    def out(self) -> npt.NDArray[np.int64]:
        """Lines of tags, of times and of the positions in each source."""
        return self.workspace.results(self._rows, self.room)

    @property
    def enough(self) -> int:
        """The number of matches that are worth handing out."""
        return int(self.out.shape[1]) - _MARGIN

    def grow(self, need: int) -> None:
        """Make room for at least ``need`` matches."""
        if need > self.out.shape[1]:
            self.room = need + _MARGIN
