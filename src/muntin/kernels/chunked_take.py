"""Gathering values at many positions from a column in pieces.

The pieces are Arrow buffers, known by their addresses. A coarse table leads from a position to the
piece that holds it (or one shortly before), so a value costs two loads however many pieces there
are, and the cache line of a later value is asked for meanwhile.
"""

from __future__ import annotations

from muntin.kernels.jit import inline, kernel
from muntin.kernels.memory import load_half, load_word, prefetch_address

BLOCK_BITS = 12
_AHEAD = 16


@inline
def place_of(starts, table, rank):
    """Return the piece in which a row stands, by its rank among all rows."""
    piece = table[rank >> BLOCK_BITS]
    while rank >= starts[piece + 1]:
        piece += 1
    return piece


@kernel("(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def gather_words(addresses, starts, table, ranks, out):
    """Copy 64-bit values at ``ranks``.

    Piece ``i`` begins at an address and holds ranks ``starts[i]`` to ``starts[i + 1] - 1``.
    """
    for i in range(ranks.shape[0]):
        if i + _AHEAD < ranks.shape[0]:
            later = ranks[i + _AHEAD]
            piece = place_of(starts, table, later)
            prefetch_address(addresses[piece] + 8 * (later - starts[piece]))
        rank = ranks[i]
        piece = place_of(starts, table, rank)
        out[i] = load_word(addresses[piece] + 8 * (rank - starts[piece]))


@kernel("(int64[::1], int64[::1], int64[::1], int64[::1], int32[::1])")
def gather_halves(addresses, starts, table, ranks, out):
    """Return the same for 32-bit values."""
    for i in range(ranks.shape[0]):
        if i + _AHEAD < ranks.shape[0]:
            later = ranks[i + _AHEAD]
            piece = place_of(starts, table, later)
            prefetch_address(addresses[piece] + 4 * (later - starts[piece]))
        rank = ranks[i]
        piece = place_of(starts, table, rank)
        out[i] = load_half(addresses[piece] + 4 * (rank - starts[piece]))
