"""Results in the ruled order: those of one event with their partners in FROM order, from most to least recent.

Kernels make results event by event, so only runs of equal tags have to be sorted, and most runs are short or in order.
"""

from __future__ import annotations

from muntin.kernels.compiling import inline, kernel


@inline
def goes_before(out, one, other):
    """Whether a result has a more recent partner in the first source in which the two differ."""
    for row in range(2, out.shape[0]):
        if out[row, one] != out[row, other]:
            return out[row, one] > out[row, other]
    return False


@inline
def sort_run(out, order, start, stop):
    """Sort one run of the order by Shell's method, which is an insertion sort for short ones."""
    gap = 1
    while gap < (stop - start) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for place in range(start + gap, stop):
            moved = order[place]
            to = place
            while to - gap >= start and goes_before(out, moved, order[to - gap]):
                order[to] = order[to - gap]
                to -= gap
            order[to] = moved
        gap //= 3


@kernel("(int64[:,:], int64[::1])")
def sort_matches(out, order):
    """Fill ``order`` with the places of the results in their ruled order; returns whether that differs from the order they are in."""
    changed = False
    count = order.shape[0]
    start = 0
    for place in range(count):
        order[place] = place
    for place in range(1, count + 1):
        if place < count and out[0, place] == out[0, start]:
            continue
        disordered = False
        for other in range(start + 1, place):
            if goes_before(out, other, other - 1):
                disordered = True
                break
        if disordered:
            sort_run(out, order, start, place)
            changed = True
        start = place
    return changed
