"""Answers at many instants: from when to when each row is there, and the rows of each answer."""

from __future__ import annotations

from muntin.kernels.jit import kernel

NONE = -1
NEVER = 2**63 - 1


@kernel(
    "(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])",
    part="pipelines",
)
def end_rows(numbers, signs, times, firsts, lasts, nexts, ends):
    """Write when each row that comes leaves; of equal rows, which share a number, the oldest first.

    ``firsts`` and ``lasts`` are for each number the rows that are there, linked by ``nexts``; empty
    before, and again after it.
    """
    for i in range(numbers.shape[0]):
        number = numbers[i]
        if signs[i] > 0:
            ends[i] = NEVER
            nexts[i] = NONE
            if firsts[number] == NONE:
                firsts[number] = i
            else:
                nexts[lasts[number]] = i
            lasts[number] = i
        else:
            ends[i] = times[i]
            row = firsts[number]
            ends[row] = times[i]
            firsts[number] = nexts[row]
    for i in range(numbers.shape[0]):
        firsts[numbers[i]] = NONE


@kernel("(int64[::1], int64[::1], int64[::1], int64[::1])", part="pipelines")
def list_shown(begins, stops, places, rows):
    """Return the rows of answers: each is in those numbered from ``begins`` up to ``stops``.

    ``places`` is where the rows of each answer go.
    """
    for i in range(begins.shape[0]):
        for answer in range(begins[i], stops[i]):
            rows[places[answer]] = i
            places[answer] += 1
