"""Compute a column when some rows fail, by halving the rows until the failing ones are alone.

Cost: O(f log n) computations for f failing rows among n.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from muntin.errors import EvaluationError
from muntin.expressions.duck import EvaluationFailure
from muntin.model.arrays import Mask

MOST = 4_096
"""The largest number of rows of a batch that may fail.

If more fail, the expression counts as one that cannot be evaluated: the search would take too long.
"""

Compute = Callable[[pa.Table], pa.ChunkedArray]


def salvage(compute: Compute, rows: pa.Table, what: str) -> tuple[pa.ChunkedArray, Mask]:
    """Return the values of all rows, NULL where ``compute`` fails, and a mask of those rows.

    Raises :class:`muntin.errors.EvaluationError` if ``compute`` fails even without rows, or on more
    than ``MOST`` of them. ``what`` names the column in that error.
    """
    try:
        kind = compute(rows.slice(0, 0)).type
    except EvaluationFailure as error:
        raise EvaluationError(f"{what} cannot be evaluated: {first_line(error)}") from error
    failed = np.zeros(len(rows), bool)
    pieces: list[pa.Array] = []
    failures = 0
    ranges = [(0, len(rows))]
    while ranges:
        start, stop = ranges.pop()
        try:
            pieces += compute(rows.slice(start, stop - start)).chunks
        except EvaluationFailure as error:
            if stop - start > 1:
                middle = (start + stop) // 2
                ranges += [(middle, stop), (start, middle)]
                continue
            failures += 1
            if failures > MOST:
                raise EvaluationError(
                    f"{what} fails on more than {MOST:,} rows of a batch: {first_line(error)}"
                ) from error
            failed[start] = True
            pieces.append(pa.nulls(1, kind))
    return pa.chunked_array(pieces, type=kind), failed


def first_line(error: BaseException) -> str:
    """Return the first line of an error."""
    return (str(error).splitlines() or [type(error).__name__])[0]
