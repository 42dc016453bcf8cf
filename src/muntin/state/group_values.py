"""The values of each group in order: least, greatest, ranks, number of distinct ones.

Invariant: a group holds every value as often as it was added and not removed, in a sorted block
while they are few and in a tree when they are many. O(log n) per row for n values of a group, and
per question about a slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muntin.kernels.order_statistics import (
    BLOCK,
    BLOCK_FIELDS,
    COUNT,
    DEEPEST,
    FREE,
    HELD,
    KEY,
    META,
    NODE_FIELDS,
    NONE,
    ROOM,
    SIZES,
    USED,
    Questions,
    ValueBlocks,
    ValueTrees,
    order_slots,
)
from muntin.model.arrays import Integers
from muntin.state.group_table import Slots, grown

_FIRST = 1 << 10
_MOST = 512
"""Most values of a group in a block: moving half of them costs about as much as a tree of them."""


@dataclass(frozen=True)
class Question:
    """What is asked.

    A kind of :mod:`muntin.kernels.order_statistics`, for ranks with the fraction, also as a ratio
    of integers.
    """

    kind: int
    fraction: float = 0.0
    ratio: tuple[int, int] = (0, 1)


class GroupValues:
    """Ordered values, which are integers here, and the questions asked about them.

    Groups of more than ``most`` values are trees.
    """

    def __init__(self, questions: Sequence[Question], most: int = _MOST) -> None:
        self._most = most
        self._kinds = np.array([question.kind for question in questions], np.int64)
        self._questions = Questions(
            self._kinds,
            np.array([question.fraction for question in questions], np.float64),
            np.array([question.ratio for question in questions], np.int64).reshape(-1, 2),
        )
        self._pool = np.zeros(_FIRST, np.int64)
        self._sizes = np.full(SIZES, NONE, np.int64)
        self._sizes[SIZES - 1] = 0
        self._blocks = np.zeros((0, BLOCK_FIELDS), np.int64)
        self._nodes = np.zeros((_FIRST, NODE_FIELDS), np.int64)
        self._roots = np.zeros(0, np.int64)
        self._distinct = np.zeros(0, np.int64)
        self._meta = np.zeros(META, np.int64)
        self._meta[FREE] = NONE
        self._path = np.empty(DEEPEST, np.int64)

    def reserve(self, capacity: int) -> None:
        """Make room for ``capacity`` groups."""
        if len(self._roots) < capacity:
            self._roots = grown(self._roots, capacity, fill=NONE)
            self._distinct = grown(self._distinct, capacity)
            self._blocks = grown(self._blocks, capacity)

    def add(self, slots: Slots, weights: Integers, values: Integers) -> Integers:
        """Add values (weight +1) and remove them (-1).

        A row for each question, before and after side by side; 0: no value.
        """
        coming = weights > 0
        # Only groups that are trees, or are becoming trees, need nodes: for what comes, and for
        # what they have in their blocks.
        many = (
            np.bincount(slots.groups[coming], minlength=1)
            if coming.any()
            else np.zeros(1, np.int64)
        )
        touched = np.flatnonzero(many)
        blocks = self._blocks[touched]
        trees = (blocks[:, ROOM] < 0) | (blocks[:, HELD] + many[touched] > self._most)
        wanted = int(self._meta[USED]) + int(many[touched][trees].sum() + blocks[trees, HELD].sum())
        if wanted > len(self._nodes):
            self._nodes = grown(self._nodes, 1 << (wanted - 1).bit_length())
        out = np.empty((len(self._kinds), 2 * len(slots)), np.int64)
        run, row = 0, 0
        trees_now = ValueTrees(self._nodes, self._roots, self._distinct, self._meta, self._path)
        while True:
            blocks_now = ValueBlocks(self._pool, self._sizes, self._blocks, self._most)
            run, row = order_slots(
                slots.arrays, weights, values, blocks_now, trees_now, self._questions, run, row, out
            )
            if run == len(slots.run_rows) - 1:
                return out
            self._pool = grown(self._pool, 2 * len(self._pool))

    def __len__(self) -> int:
        """Return the number of different values, counted per group."""
        return int(self._distinct.sum())

    def _in_blocks(self) -> Integers:
        """Return the places of the pool that hold values."""
        held = self._blocks[:, HELD]
        first = np.repeat(self._blocks[:, BLOCK], held)
        return first + np.arange(int(held.sum())) - np.repeat(np.cumsum(held) - held, held)

    def known(self) -> Integers:
        """Return all values that are there, ascending."""
        used = self._nodes[: int(self._meta[USED])]
        return np.unique(
            np.concatenate([used[used[:, COUNT] > 0, KEY], self._pool[self._in_blocks()]])
        )

    def rename(self, before: Integers, after: Integers) -> None:
        """Replace the integers that represent values.

        ``before`` is ascending and ``after`` in the same order, so order stays as it is.
        """
        used = self._nodes[: int(self._meta[USED])]
        there = used[:, COUNT] > 0
        used[there, KEY] = after[np.searchsorted(before, used[there, KEY])]
        places = self._in_blocks()
        self._pool[places] = after[np.searchsorted(before, self._pool[places])]

    def forget(self, groups: Integers) -> None:
        """Do nothing: a group without rows has no values."""
        assert (self._roots[groups] == NONE).all(), "what came in has gone out"
        assert (self._blocks[groups, HELD] == 0).all(), "what came in has gone out"

    def nbytes(self) -> int:
        """Return the bytes of the arrays."""
        return sum(
            array.nbytes
            for array in (self._pool, self._blocks, self._nodes, self._roots, self._distinct)
        )
