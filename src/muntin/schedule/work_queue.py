"""The work queue of a shared join: rows that look for partners, and results that are held back.

Flat arrays on which :mod:`muntin.kernels.shared_join` works; :mod:`muntin.kernels.scheduler_state`
defines their contents. Invariant: an outer row has a place in the ring from when it is taken until
it has finished the last level, a pair has one in the pool until its outer row has, and so does a
partial match of three sources and more.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels import scheduler_state as at
from muntin.kernels.arrays import QueueArrays
from muntin.schedule.levels import Levels

SCHEDULERS = {"lwo": at.LWO, "swf": at.SWF, "mqt": at.MQT}
_LEAST_ROWS = 1 << 10
_LEAST_PLACES = 1 << 10
_NO_LIMIT = (1 << 62) - 1
_TWO = 2


class WorkQueue:
    """The work queue of one join of ``sources`` sources.

    ``counting`` when a window of it counts rows.
    """

    def __init__(self, levels: Levels, scheduler: str, sources: int, *, counting: bool) -> None:
        self._counting = counting
        self._sources = sources
        queues = 1 if scheduler == "lwo" else len(levels)
        self.state = np.zeros(at.STATE_FIELDS, np.int64)
        self.state[[at.SCHEDULER, at.FREE, at.UNTIL]] = SCHEDULERS[scheduler], -1, _NO_LIMIT
        self.state[at.CONTAINED] = levels.contained
        self.done = np.zeros(queues + 1, np.int64)
        self.links = np.full((2, queues + 1), queues, np.int64)
        self.given = np.full(len(levels), -1, np.int64)
        self.forget_choices(levels)
        words = at.P_WORDS if sources == _TWO else at.T_WORDS
        self.pool = np.zeros((_LEAST_PLACES, words), np.int64)
        self._make_ring(_LEAST_ROWS)

    def forget_choices(self, levels: Levels) -> None:
        """Choose anew by these levels, which have the same windows and queries."""
        # What is chosen depends on nothing but the queues where all rows have the same table.
        queues, is_mqt = len(self.done) - 1, self.state[at.SCHEDULER] == at.MQT
        remembered = is_mqt and queues <= at.REMEMBERED and len(levels.reach) == 1
        self.chosen = np.full(1 << queues if remembered else 1, -1, np.int8)

    @property
    def arrays(self) -> QueueArrays:
        """Return the arrays as kernels take them."""
        return QueueArrays(
            self.state, self.done, self.links, self.given, self.chosen,
            self.outers, self.bases, self.bounds, self.pool,
        )  # fmt: skip

    def _make_ring(self, rows: int) -> None:
        self.outers = np.zeros((rows, at.O_WORDS), np.int64)
        self.bases = np.zeros((rows if self._counting else 1, self._sources), np.int64)
        self.bounds = np.zeros((rows if self._sources > _TWO else 1, self._sources), np.int64)

    def reserve(self, rows: int) -> None:
        """Make room for ``rows`` more rows to wait."""
        wanted = self.waiting() + rows
        if wanted <= len(self.outers):
            return
        numbers = np.arange(self.done[-1], self.done[0])
        before = self.outers, self.bases, self.bounds
        self._make_ring(1 << (wanted - 1).bit_length())
        for old, new in zip(before, (self.outers, self.bases, self.bounds), strict=True):
            if len(new) > 1:
                new[numbers & len(new) - 1] = old[numbers & len(old) - 1]

    def widen(self) -> None:
        """Double the pool."""
        before = self.pool
        self.pool = np.empty((2 * len(before), before.shape[1]), np.int64)
        self.pool[: len(before)] = before

    def mark_stale(self) -> None:
        """Let search trees find their next candidates again, because a store has moved."""
        resumes = self.pool[: self.state[at.USED], at.T_RESUME]
        resumes[resumes >= 0] = at.STALE - resumes[resumes >= 0]

    def shrink(self) -> None:
        """Release memory when nothing waits; then nothing is held either."""
        assert not self.waiting(), "rows are still waiting"
        if len(self.outers) > _LEAST_ROWS:
            self._make_ring(_LEAST_ROWS)
        if len(self.pool) > _LEAST_PLACES:
            self.pool = np.zeros((_LEAST_PLACES, self.pool.shape[1]), np.int64)
            self.state[[at.FREE, at.USED]] = -1, 0

    def waiting(self) -> int:
        """Return the number of rows that were taken and have not finished the last level."""
        return int(self.done[0] - self.done[-1])

    def nbytes(self) -> int:
        """Return the bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays[1:])

    @staticmethod
    def nothing() -> dict[str, int]:
        """Return the :meth:`stats` of a join that has no work queue."""
        names = ("rows_waiting", "most_rows_waiting", "results_held", "most_results_held")
        return dict.fromkeys(names, 0)

    def stats(self) -> dict[str, int]:
        """Return the rows that wait and the results that are held, now and at most so far."""
        return {
            "rows_waiting": self.waiting(),
            "most_rows_waiting": int(self.state[at.MOST_WAITING]),
            "results_held": int(self.state[at.HELD]),
            "most_results_held": int(self.state[at.MOST_HELD]),
        }
