"""Marks: the position of pushed results, which lets a subscriber recognize repeated ones.

Invariant: a batch that runs again after a failure gives the same results under the same marks,
though possibly cut into other pieces. Two numbers per partition are therefore enough to drop
everything that arrived before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

GLOBAL = -1
"""In place of a partition, for results that are computed from those of all partitions."""


@dataclass(frozen=True, order=True)
class Mark:
    """The position of results: batch, partition, and count of the query's earlier results there.

    The result in row ``i`` of a piece always has the position ``(batch, partition, sequence + i)``.
    ``arrived`` is the moment at which the partition got its part of the batch, in seconds since
    1970; it differs between attempts and is not compared.
    """

    batch: int
    partition: int
    sequence: int
    arrived: float = field(default=0.0, compare=False)


class Once:
    """Drops results that arrived before, after a batch ran again; keeps two numbers per partition.

    Examples
    --------
    >>> once = Once()
    >>> piece = pa.record_batch({"k": [1, 2, 3]})
    >>> len(once.new(piece, Mark(0, 0, 0))), once.new(piece, Mark(0, 0, 1)).column("k").to_pylist()
    (3, [3])
    """

    def __init__(self) -> None:
        self._reached: dict[int, tuple[int, int]] = {}

    def new(self, results: pa.RecordBatch, mark: Mark) -> pa.RecordBatch:
        """Return the rows of a piece that did not arrive before, in order; possibly none."""
        reached = self._reached.get(mark.partition, (-1, 0))
        if mark.batch < reached[0]:
            return results.slice(len(results))
        known = reached[1] if mark.batch == reached[0] else 0
        self._reached[mark.partition] = (mark.batch, max(known, mark.sequence + len(results)))
        return results.slice(min(max(known - mark.sequence, 0), len(results)))
