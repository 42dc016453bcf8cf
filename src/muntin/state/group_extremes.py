"""The least and greatest values of groups whose rows leave in the order in which they came.

Invariant: of each question a group keeps the values that can still become the answer, in the order
of their rows. O(1) a row amortised; about ln(n) values are kept of n random ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muntin.kernels.monotonic_queue import (
    BLOCK,
    FIRST,
    HELD,
    PER_GROUP,
    PER_QUEUE,
    ROOM,
    ExtremeQueues,
    extreme_slots,
    forget_extremes,
)
from muntin.kernels.order_statistics import GREATEST, NONE, SIZES
from muntin.model.arrays import Integers
from muntin.state.group_table import Slots, grown
from muntin.state.group_values import Question

_FIRST = 1 << 10


class GroupExtremes:
    """Answers to questions about least and greatest values.

    Does for rows in order what GroupValues does for all.
    """

    def __init__(self, questions: Sequence[Question]) -> None:
        self._kinds = np.array([question.kind for question in questions], np.int64)
        self._pool = np.zeros((_FIRST, 2), np.int64)
        self._sizes = np.full(SIZES, NONE, np.int64)
        self._sizes[SIZES - 1] = 0
        self._queues = np.zeros((0, PER_GROUP + len(questions) * PER_QUEUE), np.int64)

    def reserve(self, capacity: int) -> None:
        """Make room for ``capacity`` groups."""
        if len(self._queues) < capacity:
            self._queues = grown(self._queues, capacity)

    def add(self, slots: Slots, weights: Integers, values: Integers) -> Integers:
        """Add values (weight +1) and remove the oldest (-1).

        A row for each question, as GroupValues gives it.
        """
        out = np.empty((len(self._kinds), 2 * len(slots)), np.int64)
        run, row = 0, -1
        while True:
            queues = ExtremeQueues(self._pool, self._sizes, self._queues)
            run, row = extreme_slots(
                slots.arrays, weights, values, queues, self._kinds, run, row, out
            )
            if run == len(slots.run_rows) - 1:
                return out
            self._pool = grown(self._pool, 2 * len(self._pool))

    def _places(self, question: int) -> Integers:
        """Return the places of the pool that hold the values for a question."""
        queue = self._queues[
            :, PER_GROUP + question * PER_QUEUE : PER_GROUP + (question + 1) * PER_QUEUE
        ]
        held = queue[:, HELD]
        number = np.arange(int(held.sum())) - np.repeat(np.cumsum(held) - held, held)
        block, first, room = (np.repeat(queue[:, field], held) for field in (BLOCK, FIRST, ROOM))
        places: Integers = block + ((first + number) & (room - 1))
        return places

    def _values(self, question: int) -> Integers:
        found: Integers = self._pool[self._places(question), 0]
        return ~found if self._kinds[question] == GREATEST else found

    def __len__(self) -> int:
        """Return the number of values that are kept."""
        return int(
            sum(
                self._queues[:, PER_GROUP + question * PER_QUEUE + HELD].sum()
                for question in range(len(self._kinds))
            )
        )

    def known(self) -> Integers:
        """Return all values that are kept, ascending."""
        return np.unique(
            np.concatenate([self._values(question) for question in range(len(self._kinds))])
        )

    def rename(self, before: Integers, after: Integers) -> None:
        """Replace the integers that represent values.

        ``before`` is ascending and ``after`` in the same order, so order stays as it is.
        """
        for question, kind in enumerate(self._kinds):
            renamed = after[np.searchsorted(before, self._values(question))]
            self._pool[self._places(question), 0] = ~renamed if kind == GREATEST else renamed

    def forget(self, groups: Integers) -> None:
        """Make groups as if they had never been."""
        forget_extremes(groups, self._pool, self._sizes, self._queues, len(self._kinds))

    def nbytes(self) -> int:
        """Return the bytes of the arrays."""
        return self._pool.nbytes + self._queues.nbytes
