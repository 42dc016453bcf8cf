"""Turn tables of rows into batches with their times and their moment of arrival."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.state.batch import Batch


def times_of(rows: pa.Table, column: str) -> npt.NDArray[np.int64]:
    """Return the times of rows in microseconds; none may be NULL."""
    values = rows.column(column)
    times: npt.NDArray[np.int64] = (
        values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()).to_numpy()
    )
    return times


def batch_of(rows: pa.Table, times: npt.NDArray[np.int64], arrival: float) -> Batch:
    """Return rows that all arrived at one moment, in seconds of the driver's clock, as a batch."""
    return Batch(rows, times, np.broadcast_to(np.float64(arrival), len(times)))
