"""Cuts of tables into pieces, as micro-batches and tasks cut them."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa

_MOST = 3


def cut(rows: pa.Table, random: Random | None) -> list[pa.Table]:
    """Return up to three nonempty pieces, cut at random places; without ``random`` one per row."""
    if random is None:
        edges = list(range(len(rows) + 1))
    else:
        edges = sorted(
            {0, len(rows), *(random.randint(0, len(rows)) for _ in range(random.randrange(_MOST)))}
        )
    return [rows.slice(start, stop - start) for start, stop in pairwise(edges)]


def by_time(rows: pa.Table, column: str) -> list[pa.Table]:
    """Cut rows in order of time into those of one instant."""
    times = rows.column(column).cast(pa.int64()).to_numpy()
    places = [0, *(np.flatnonzero(np.diff(times)) + 1).tolist(), len(times)]
    return [rows.slice(first, last - first) for first, last in pairwise(places) if last > first]
