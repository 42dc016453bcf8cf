"""The work that the next batch may have, so that it ends before the trigger interval does. No I/O.

A state machine: measured batches in, a limit out. The duration of a batch is predicted from its
rows and its work (:mod:`muntin.spark.driver.batch_costs`). The next batch has what arrives while
the last one runs: its rows and its span of event time are predicted as well, for a rate that goes
on rising as it did. The limit is on work, that is, on probes and their matches, and holds from
the first batch on. So a load that jumps is contained in the batch in which it arrives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from muntin.spark.driver.batch_costs import BatchCosts, MeasuredBatch

_AIM = 0.85
"""The fraction of the trigger interval in which a batch is to end, even one with a large excess."""
_LEAST = 0.02
"""The fraction of the trigger interval that is left for work even if rows alone take all of it."""
_MOST_GROWTH = 1.5
_MOST_RAISE = 2.5
"""The work of a batch is at most this multiple of the most that recent ones had ..."""
_SMALL = 5e4
"""... plus this for each second of the interval: what a slow machine does in a sixth of it."""
_RECENT = 4


@dataclass
class BatchPacer:
    """Limits the work of batches.

    Parameters
    ----------
    interval : float
        Seconds between batches, by the trigger; 0 sets no limit.
    """

    interval: float
    costs: BatchCosts = field(default_factory=BatchCosts)

    def learn(self, batch: MeasuredBatch) -> None:
        """Add a measured batch."""
        if self.interval and batch.seconds > 0 and batch.rows > 0:
            self.costs.learn(batch)

    def work(self) -> float | None:
        """Return the work per second of event time that the next batches may have; None: any."""
        if not self.interval:
            return None
        least = _LEAST * self.interval / max(self.costs.costs[2], 1e-9)
        fits = self.costs.work_in(_AIM * self.interval, self._rows())
        seen = max((one.work for one in self.costs.batches), default=0.0)
        known = _MOST_RAISE * seen + _SMALL * self.interval
        return max(min(fits, known), least) / self._span()

    def _span(self) -> float:
        """Return the event time that the next batch covers."""
        recent = list(self.costs.batches)[-_RECENT:]
        # The median, since one batch may begin after a silent time.
        speeds = [one.passed / one.since for one in recent if one.passed > 0 and one.since > 0]
        return max((median(speeds) if speeds else 1.0) * self._wait(), 1e-3)

    def _wait(self) -> float:
        """Return the time since the last batch began when the next one does."""
        batches = self.costs.batches
        return max(self.interval, batches[-1].seconds if batches else 0.0)

    def _rows(self) -> float:
        """Return the rows that the next batch has, if their rate goes on rising as it did."""
        rates = [one.rows / one.since for one in self.costs.batches if one.since > 0]
        if not rates:
            return 0.0
        before = rates[-2] if len(rates) > 1 else rates[-1]
        growth = min(max(rates[-1] / before, 1.0), _MOST_GROWTH)
        return rates[-1] * growth * self._wait()
