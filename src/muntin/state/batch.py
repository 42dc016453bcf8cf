"""A run of rows of one stream: Arrow columns, their times as integers, and when they arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.model.arrays import Integers, Reals
from muntin.state.columns import empty_table


@dataclass(frozen=True)
class Batch:
    """Rows with their times (microseconds) and moments of arrival (seconds of a steady clock)."""

    rows: pa.Table
    times: Integers
    arrivals: Reals

    def __len__(self) -> int:
        return len(self.times)

    def part(self, start: int, stop: int) -> Batch:
        """Return rows ``start`` to ``stop - 1``, without a copy."""
        return Batch(
            self.rows.slice(start, stop - start), self.times[start:stop], self.arrivals[start:stop]
        )

    def take(self, order: Integers) -> Batch:
        """Return the rows at the given indexes."""
        return Batch(self.rows.take(pa.array(order)), self.times[order], self.arrivals[order])

    def sorted(self) -> Batch:
        """Return the rows in the order of time, ties as they stand."""
        if len(self) < 2 or bool((self.times[1:] >= self.times[:-1]).all()):
            return self
        return self.take(np.argsort(self.times, kind="stable"))


def join_batches(batches: Sequence[Batch], schema: pa.Schema) -> Batch:
    """One batch of several, in their order."""
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return Batch(empty_table(schema), np.empty(0, np.int64), np.empty(0, np.float64))
    return Batch(
        pa.concat_tables([batch.rows for batch in batches]),
        np.concatenate([batch.times for batch in batches]),
        np.concatenate([batch.arrivals for batch in batches]),
    )


def times_of(rows: pa.Table, column: str) -> Integers:
    """Return the times of rows in microseconds; none may be NULL."""
    values = rows.column(column)
    times: Integers = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()).to_numpy()
    return times


def batch_of(rows: pa.Table, times: Integers, arrival: float) -> Batch:
    """Return rows that all arrived at one moment, in seconds of the driver's clock, as a batch."""
    return Batch(rows, times, np.broadcast_to(np.float64(arrival), len(times)))
