"""How many pairs of rows have equal codes, counted on samples.

A hash table of one sample, looked up by the other.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.jit import inline, kernel
from muntin.kernels.rows import mix


@inline
def place_of(code, values, counts):
    """Return where a code is in the table, or the free place where it would be."""
    mask = np.int64(values.shape[0] - 1)
    place = np.int64(mix(code)) & mask
    while counts[place] != 0 and values[place] != code:
        place = (place + 1) & mask
    return place


@kernel("(int64[::1], int64[::1], int64[::1])")
def count_values(codes, values, counts):
    """Count every code in a table.

    A power of two of places, more than there are codes, with all counts 0 before.
    """
    for code in codes:
        place = place_of(code, values, counts)
        values[place] = code
        counts[place] += 1


@kernel("(int64[::1], int64[::1], int64[::1])")
def count_pairs(codes, values, counts):
    """Pairs of a code and an equal one that was counted in the table."""
    pairs = np.int64(0)
    for code in codes:
        pairs += counts[place_of(code, values, counts)]
    return pairs
