"""Cuts of tables into pieces, as micro-batches and tasks cut them."""

from __future__ import annotations

from itertools import pairwise
from random import Random

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
