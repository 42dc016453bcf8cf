"""What a standing query measures of itself: response times, and the work done since it runs by its plan."""

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

BUFFERS = ("input", "most_input", "join", "held", "most_held", "output")
"""The buffers of a query that are counted."""


@dataclass
class ResponseTimes:
    """Release minus arrival of the newest row, of every result; percentiles from a histogram of 12 % steps."""

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
        if (
            isinstance(arrivals, float) or (arrivals == first).all()
        ):  # numpy takes ten times as long for one number
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
        """Take the results that another has noted, as if they had been noted here."""
        self.count += other.count
        self.total += other.total
        self.longest = max(self.longest, other.longest)
        self._histogram += other._histogram

    def to_json(self) -> dict[str, Any]:
        """All of it, for JSON; of the histogram the steps that have something."""
        steps = np.flatnonzero(self._histogram)
        histogram = [steps.tolist(), self._histogram[steps].tolist()]
        return {
            "count": self.count,
            "total": self.total,
            "longest": self.longest,
            "histogram": histogram,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> ResponseTimes:
        """Of such a dict."""
        times = cls(told["count"], told["total"], told["longest"])
        steps, counts = told["histogram"]
        times._histogram[steps] = counts
        return times

    def percentile(self, share: float) -> float:
        """The time within which this share of the results came, to the upper edge of its step."""
        if not self.count:
            return 0.0
        place = int(np.searchsorted(np.cumsum(self._histogram), share * self.count))
        return min(float(_LEAST * 10 ** ((place + 1) / _BUCKETS_PER_DECADE)), self.longest)

    def stats(self) -> dict[str, float]:
        """Mean, percentiles and maximum in seconds."""
        return {
            "mean": self.total / self.count if self.count else 0.0,
            "p50": self.percentile(0.5),
            "p95": self.percentile(0.95),
            "p99": self.percentile(0.99),
            "max": self.longest,
        }


@dataclass(frozen=True)
class WorkMark:
    """What a query had counted at an instant of event time."""

    at: int
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Measured:
    """What was counted between two instants of event time."""

    since: int
    seconds: float
    counts: Mapping[str, int]

    def a_second(self, name: str) -> float:
        """A count for each second of event time."""
        return self.counts[name] / self.seconds


def measured_between(before: WorkMark, after: WorkMark) -> Measured | None:
    """The work between two marks; None while no event time has passed, as nothing can be said for each second.

    >>> measured_between(WorkMark(0, {"comparisons": 10}), WorkMark(4_000_000, {"comparisons": 50})).a_second("comparisons")
    10.0
    """
    if after.at <= before.at:
        return None
    counts = {name: count - before.counts[name] for name, count in after.counts.items()}
    return Measured(before.at, (after.at - before.at) / _SECOND, counts)
