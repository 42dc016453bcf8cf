"""The work that a batch may have, learned from the durations of earlier batches. No I/O.

A batch that takes longer than its part of the trigger interval has its work cut in proportion; one
that has time left gets more. Work is probes plus their matches: with more rows in the windows, a
probe finds more and takes longer. The fixed cost of a batch and the event time per second are
learned from the last batches.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

_TARGET, _AIM = 0.75, 0.6
"""The fraction of the trigger interval above which a batch is too long, and the one to aim at."""
_LEAST_CUT, _MOST_RAISE = 0.2, 1.4
_USED = 0.8
"""A limit of which less than this was used does not show what is possible."""
_REMEMBERED = 8
_ALIKE = 0.1
"""Batches whose work differs by less than this do not show what work costs."""


@dataclass(frozen=True)
class MeasuredBatch:
    """A batch: its duration, probes and matches, its span of event time, the time since the last.

    All times are in seconds; ``since`` is measured from the beginning of the previous batch.
    """

    seconds: float
    probes: float
    found: float = 0.0
    passed: float = 0.0
    since: float = 0.0

    @property
    def work(self) -> float:
        """The probes and matches together."""
        return self.probes + self.found


@dataclass
class BatchPacer:
    """Learns how much work a batch may have; ``most`` is None while batches are short enough.

    Parameters
    ----------
    interval : float
        Seconds between batches, by the trigger; 0 sets no limit.
    """

    interval: float
    most: float | None = None
    _batches: deque[MeasuredBatch] = field(
        default_factory=lambda: deque(maxlen=_REMEMBERED), repr=False
    )
    _given: float | None = field(default=None, repr=False)

    def learn(self, batch: MeasuredBatch) -> None:
        """Add a measured batch."""
        if not self.interval or batch.seconds <= 0:
            return
        self._batches.append(batch)
        target = _TARGET * self.interval
        if batch.probes <= 0 or (
            batch.seconds <= target and (self.most is None or batch.work < _USED * self.most)
        ):
            return
        aim = _AIM * self.interval
        besides = min(self._besides(), 0.9 * aim)
        right = batch.work * (aim - besides) / max(batch.seconds - besides, 1e-3)
        self.most = min(max(right, _LEAST_CUT * batch.work), _MOST_RAISE * batch.work)

    def _besides(self) -> float:
        """Return the fixed seconds of a batch: the intercept of a line through the last ones."""
        work, seconds = np.array([(batch.work, batch.seconds) for batch in self._batches]).T
        if np.ptp(work) <= _ALIKE * work.max():
            return 0.0
        slope, start = np.polyfit(work / work.max(), seconds, 1)
        return float(min(max(start, 0.0), seconds.min())) if slope > 0 else 0.0

    def resources(self) -> float | None:
        """Return the probes per second of event time for the next batch; call it once per batch.

        The next batch contains everything that arrived during the last one.
        """
        if self.most is None:
            return None
        last = self._batches[-1]
        # A batch after a long one covers much time, so the speed shows only over several.
        waited = sum(batch.since for batch in self._batches)
        speed = (
            sum(batch.passed for batch in self._batches if batch.since) / waited
            if waited > 0
            else 1.0
        )
        span = speed * max(self.interval, last.seconds)
        # Matches per probe depend on which probes are allowed: the most of the last batches counts.
        finding = max(
            batch.work / batch.probes
            for batch in list(self._batches)[-_REMEMBERED // 2 :]
            if batch.probes > 0
        )
        found = self.most / finding / max(span, 1e-3)
        self._given = found if self._given is None else min(found, _MOST_RAISE * self._given)
        return self._given

    def release(self) -> None:
        """Remove the limit, because everything fits again."""
        self.most = self._given = None
