"""The measurements of a standing query: response times, and its work under the current plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log10
from typing import Any

import numpy as np
import numpy.typing as npt

_SECOND = 1_000_000
_BUCKETS_PER_DECADE = 20
_LEAST = 1e-7
_DECADES = 12

_STEPS_PER_BOUND = 5
_FIRST_STEP, _LAST_STEP = 3 * _BUCKETS_PER_DECADE, 9 * _BUCKETS_PER_DECADE
BOUNDS = tuple(
    float(f"{_LEAST * 10 ** (step / _BUCKETS_PER_DECADE):.3g}")
    for step in range(_FIRST_STEP, _LAST_STEP + 1, _STEPS_PER_BOUND)
)
"""Upper bounds of exported response times: four per decade, from 100 µs to 100 s.

They are rounded to three digits, so a time within 0.2 % of one may count on the other side.
"""

BUFFERS = ("input", "most_input", "join", "held", "most_held", "output")
"""The buffers of a query that are counted."""


@dataclass
class ResponseTimes:
    """The response time of every result: its release minus the arrival of its newest row.

    Percentiles come from a histogram with steps of 12 %.
    """

    count: int = 0
    total: float = 0.0
    longest: float = 0.0
    _histogram: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(_DECADES * _BUCKETS_PER_DECADE + 1, np.int64)
    )

    def add(self, moment: float, arrivals: npt.NDArray[np.float64] | float, count: int) -> None:
        """Note results that were released at a moment."""
        if not count:
            return
        self.count += count
        first = arrivals if isinstance(arrivals, float) else float(arrivals[0])
        if isinstance(arrivals, float) or (arrivals == first).all():
            # NumPy takes ten times as long for a single number.
            wait = max(moment - first, 0.0)
            self.total += wait * count
            self.longest = max(self.longest, wait)
            step = log10(max(wait, _LEAST) / _LEAST) * _BUCKETS_PER_DECADE
            self._histogram[min(int(step), len(self._histogram) - 1)] += count
            return
        waits = np.maximum(moment - arrivals, 0.0)
        self.total += float(waits.sum())
        self.longest = max(self.longest, float(waits.max()))
        steps = np.clip(
            np.log10(np.maximum(waits, _LEAST) / _LEAST) * _BUCKETS_PER_DECADE,
            0,
            len(self._histogram) - 1,
        )
        np.add.at(self._histogram, steps.astype(np.int64), 1)

    def merge(self, other: ResponseTimes) -> None:
        """Add the results of another, as if they had been noted here."""
        self.count += other.count
        self.total += other.total
        self.longest = max(self.longest, other.longest)
        self._histogram += other._histogram

    def since(self, earlier: ResponseTimes) -> ResponseTimes:
        """Return those noted after a copy was made; all of them, if it is of another query.

        >>> times = ResponseTimes()
        >>> times.add(1.0, 0.9, 5)
        >>> before = times.copy()
        >>> times.add(2.0, 1.0, 1)
        >>> times.since(before).count
        1
        """
        if earlier.count > self.count:
            return self.copy()
        return ResponseTimes(
            self.count - earlier.count,
            self.total - earlier.total,
            self.longest,
            self._histogram - earlier._histogram,
        )

    def copy(self) -> ResponseTimes:
        """Return them as they are now."""
        return ResponseTimes(self.count, self.total, self.longest, self._histogram.copy())

    def to_json(self) -> dict[str, Any]:
        """Return all of it for JSON; of the histogram only the steps that are not empty."""
        steps = np.flatnonzero(self._histogram)
        histogram = [steps.tolist(), self._histogram[steps].tolist()]
        return {
            "count": self.count,
            "total": self.total,
            "longest": self.longest,
            "histogram": histogram,
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> ResponseTimes:
        """Return the response times in a dict of :meth:`to_json`."""
        times = cls(found["count"], found["total"], found["longest"])
        steps, counts = found["histogram"]
        times._histogram[steps] = counts
        return times

    def percentile(self, fraction: float) -> float:
        """Return the time within which a fraction of the results came, rounded up to its step."""
        if not self.count:
            return 0.0
        place = int(np.searchsorted(np.cumsum(self._histogram), fraction * self.count))
        return min(float(_LEAST * 10 ** ((place + 1) / _BUCKETS_PER_DECADE)), self.longest)

    def cumulative(self) -> tuple[int, ...]:
        """Return how many results came within each of :data:`BOUNDS`, and at last of all.

        They are read at once, so they fit together while another thread adds results.
        """
        sums = np.cumsum(self._histogram)
        within = sums[_FIRST_STEP - 1 : _LAST_STEP : _STEPS_PER_BOUND]
        return (*within.tolist(), int(sums[-1]))

    def stats(self) -> dict[str, float]:
        """Return mean, percentiles and maximum in seconds."""
        return {
            "mean": self.total / self.count if self.count else 0.0,
            "p50": self.percentile(0.5),
            "p95": self.percentile(0.95),
            "p99": self.percentile(0.99),
            "max": self.longest,
        }


@dataclass(frozen=True)
class WorkMark:
    """The counts of a query at an instant of event time."""

    at: int
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Measured:
    """The counts between two instants of event time."""

    since: int
    seconds: float
    counts: Mapping[str, int]

    def per_second(self, name: str) -> float:
        """Return a count per second of event time."""
        return self.counts[name] / self.seconds


def measured_between(before: WorkMark, after: WorkMark) -> Measured | None:
    """Return the work between two marks, or None if no event time has passed between them.

    >>> before, after = WorkMark(0, {"pairs": 10}), WorkMark(4_000_000, {"pairs": 50})
    >>> measured_between(before, after).per_second("pairs")
    10.0
    """
    if after.at <= before.at:
        return None
    counts = {name: count - before.counts[name] for name, count in after.counts.items()}
    return Measured(before.at, (after.at - before.at) / _SECOND, counts)
