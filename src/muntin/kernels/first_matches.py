"""Rows inside their windows, and which of them ever had a match."""

from __future__ import annotations

from typing import NamedTuple

from muntin.kernels.arrays import Flags, GroupArrays, Integers
from muntin.kernels.group_ids import NONE, add_group, find_group, remove_group
from muntin.kernels.jit import kernel


class Words(NamedTuple):
    """Two words for each row."""

    low: Integers
    high: Integers


@kernel(Words, Integers, Words, GroupArrays, Flags, Flags, Flags, part="pipelines")
def note_matches(rows, signs, matches, known, matched, never, first):
    """Take the rows that come, then matches, then the rows that leave.

    ``never`` gets which rows leave without ever having had a match, ``first`` which matches are the
    first of a row. There is room for as many new rows as there are changes.
    """
    for i in range(signs.shape[0]):
        if signs[i] > 0:
            matched[add_group(rows.low[i], rows.high[i], known)] = False
    for i in range(matches.low.shape[0]):
        row = find_group(matches.low[i], matches.high[i], known)
        first[i] = row != NONE and not matched[row]
        if row != NONE:
            matched[row] = True
    for i in range(signs.shape[0]):
        never[i] = False
        if signs[i] < 0:
            row = find_group(rows.low[i], rows.high[i], known)
            never[i] = not matched[row]
            remove_group(row, known)
