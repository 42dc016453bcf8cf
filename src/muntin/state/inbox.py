"""Rows of one stream that have come but are ahead of the frontier, waiting for their turn.

Invariant: batches stand in the order of arrival, each sorted by time with ties in arrival order; so
a stable sort of what is released keeps (time, arrival) order. Small batches are merged as they
come, which keeps their number logarithmic whatever the size of the pushes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin.state.batch import Batch, join_batches


class Inbox:
    """Waiting rows of one stream."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[Batch] = []

    def add(self, batch: Batch) -> None:
        """Take rows in the order they came."""
        if not len(batch):
            return
        self._batches.append(batch.sorted())
        while len(self._batches) > 1 and 2 * len(self._batches[-1]) >= len(self._batches[-2]):
            joined = join_batches(self._batches[-2:], self._schema).sorted()
            self._batches[-2:] = [
                Batch(joined.rows.combine_chunks(), joined.times, joined.arrivals)
            ]

    def release(self, until: int) -> Batch:
        """Take out all rows of times up to ``until``, in order."""
        parts, rest = [], []
        for batch in self._batches:
            cut = int(np.searchsorted(batch.times, until, side="right"))
            if cut:
                parts.append(batch.part(0, cut))
            if cut < len(batch):
                rest.append(batch.part(cut, len(batch)))
        self._batches = rest
        return join_batches(parts, self._schema).sorted()

    def rows(self) -> pa.Table:
        """Return the rows that wait, in order."""
        return join_batches(self._batches, self._schema).sorted().rows

    def batches(self) -> Sequence[Batch]:
        """Return the rows that wait, each batch sorted by time, in order of arrival."""
        return self._batches

    def oldest(self) -> int | None:
        """Return the time of the oldest row, or None."""
        return min((int(batch.times[0]) for batch in self._batches), default=None)

    def waiting(self) -> int:
        """Return the number of rows that wait."""
        return sum(len(batch) for batch in self._batches)

    def nbytes(self) -> int:
        """Return the bytes of the rows that wait."""
        return sum(batch.rows.nbytes for batch in self._batches)
