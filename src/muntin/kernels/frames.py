"""Frames: the ranks that the frame of a row spans, and the ranks that a change matters to."""

from __future__ import annotations

from typing import NamedTuple

from muntin.kernels.arrays import Table
from muntin.kernels.framed_ranges import rank_by
from muntin.kernels.framed_rows import WORDS
from muntin.kernels.jit import inline
from muntin.kernels.ranked_rows import size_of

ENDLESS = 0
ROWS = 1
PEERS = 2
KEYS = 3
"""Where a frame begins or ends: nowhere, so many rows off, at the peers of the row, at a key."""

START = 0
END = 3
FRAME_FIELDS = 6
"""Of each frame: for both of its bounds the kind; the number of rows, or the column of nodes with
the key; and the column of ``reach``.
"""


class Calls(NamedTuple):
    """What is read for each row; ``results`` is the column of nodes where results begin.

    ``peers`` is the number of words in which peers agree.
    """

    frames: Table
    readings: Table
    peers: int
    results: int


@inline
def load_key(nodes, node, key, count):
    """Put the first words of a node into a key."""
    for word in range(count):
        key[word] = nodes[node, WORDS + word]


@inline
def find_frame(nodes, root, node, rank, calls, frame, memory):
    """Find the first and last rank of the frame of a row; an empty one ends before it begins."""
    frames, _, peers, _ = calls
    key, spans = memory
    size = size_of(nodes, root)
    for bound in (START, END):
        kind = frames[frame, bound]
        behind = bound == END
        if kind == ENDLESS:
            found = size if behind else 0
        elif kind == ROWS:
            found = rank + frames[frame, bound + 1] + (1 if behind else 0)
        elif kind == KEYS and nodes[node, WORDS] == 0:
            key[0] = 0
            key[1] = nodes[node, frames[frame, bound + 1]]
            found = rank_by(nodes, root, key, 2, behind)
        else:
            load_key(nodes, node, key, peers)
            found = rank_by(nodes, root, key, peers, behind)
        if behind:
            spans[frame, 1] = min(found, size) - 1
        else:
            spans[frame, 0] = max(found, 0)


@inline
def find_range(nodes, root, rows, row, calls, order, key):
    """Return the first and last rank whose values a change of a row may change."""
    frames, _, peers, _ = calls
    size = size_of(nodes, root)
    for word in range(order):
        key[word] = rows.words[row, word]
    low = rank_by(nodes, root, key, order, 0)
    high = rank_by(nodes, root, key, order, 1) - 1
    first = low
    last = high
    for frame in range(frames.shape[0]):
        begins = frames[frame, START]
        ends = frames[frame, END]
        if begins <= ROWS and ends <= ROWS:
            before = -frames[frame, START + 1] if begins == ROWS else size
            after = frames[frame, END + 1] if ends == ROWS else size
            first = min(first, low - max(after, 0))
            last = max(last, high + max(before, 0))
            continue
        for bound in (START, END):
            kind = frames[frame, bound]
            behind = bound == START  # rows behind it are those whose frames begin before it
            if kind == ENDLESS:
                found = size if behind else 0
            elif kind == KEYS and rows.words[row, 0] == 0:
                key[0] = 0
                key[1] = rows.reach[row, frames[frame, bound + 2]]
                found = rank_by(nodes, root, key, 2, behind)
            else:
                for word in range(peers):
                    key[word] = rows.words[row, word]
                found = rank_by(nodes, root, key, peers, behind)
            if behind:
                last = max(last, found - 1)
            else:
                first = min(first, found)
    return max(first, 0), min(last, size - 1)
