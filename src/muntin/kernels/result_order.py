"""Results of one event in order: by partner in FROM order, from most to least recent.

Kernels make results event by event, so only runs of equal tags have to be sorted, and most runs are
short or in order.
"""

from __future__ import annotations

from muntin.kernels.jit import inline, kernel


@inline
def goes_before(out, one, other):
    """Return whether a result has the more recent partner in the first source where two differ."""
    for row in range(2, out.shape[0]):
        if out[row, one] != out[row, other]:
            return out[row, one] > out[row, other]
    return False


@inline
def sort_run(out, order, start, length):
    """Order the places of a run by Shell's method, an insertion sort for short ones."""
    for place in range(length):
        order[place] = start + place
    gap = 1
    while gap < length // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for place in range(gap, length):
            moved = order[place]
            to = place
            while to >= gap and goes_before(out, moved, order[to - gap]):
                order[to] = order[to - gap]
                to -= gap
            order[to] = moved
        gap //= 3


@inline
def rearrange(out, order, moved, start, length):
    """Put the results of a run into an order; they have tag and time in common."""
    for row in range(2, out.shape[0]):
        for place in range(length):
            moved[place] = out[row, order[place]]
        for place in range(length):
            out[row, start + place] = moved[place]


@kernel("(int64[:,:], int64[::1], int64[::1])")
def sort_matches(out, order, moved):
    """Bring the results of every event into their ruled order.

    ``order`` and ``moved`` are room for as many as there are.
    """
    count = out.shape[1]
    start = 0
    for place in range(1, count + 1):
        if place < count and out[0, place] == out[0, start]:
            continue
        for other in range(start + 1, place):
            if goes_before(out, other, other - 1):
                sort_run(out, order, start, place - start)
                rearrange(out, order, moved, start, place - start)
                break
        start = place
