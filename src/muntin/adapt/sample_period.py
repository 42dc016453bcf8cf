"""How many cycles are observed together, while monitoring tunes itself [Mukherji11, section 5.4].

A cycle has its counts in any case; what is saved are statistics and decisions. While nothing
changes, the period doubles up to its bound. A cycle that clearly differs from the last observation
ends the period at once and is observed alone, so a jump is seen as soon as without gathering, and a
slow change at the latest when the longest period ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf

from muntin.adapt.model import ratio
from muntin.adapt.monitor import Sample, is_apart
from muntin.adapt.shape import TreeShape

LONGEST = 8
"""The most cycles of a period that tunes itself."""
_RESOURCES = 0.05
"""Resources that differ by more than this share end a period."""
_QUIET = 4
"""Observations without a change after which the period doubles."""


@dataclass
class SamplePeriod:
    """Gathers the samples of ``cycles`` cycles, at most ``longest``, into one."""

    shape: TreeShape
    longest: int = 1
    cycles: int = 1
    _gathered: list[Sample] = field(default_factory=list)
    _last: Sample | None = None
    _quiet: int = 0

    def take(self, sample: Sample) -> tuple[Sample, ...]:
        """Return what is to be observed now: nothing, a period, or a period and what differs."""
        if self.longest == 1:
            return (sample,)
        if self._differs(sample):
            found = (*self._merged(), sample)
            self.shorten()
        else:
            self._gathered.append(sample)
            found = self._merged() if len(self._gathered) >= self.cycles else ()
        self._last = found[-1] if found else self._last
        return found

    def shorten(self) -> None:
        """Observe each cycle again: something has changed."""
        self.cycles, self._quiet = 1, 0

    def lengthen(self) -> None:
        """Note an observation that changed nothing."""
        self._quiet += 1
        if self._quiet >= _QUIET:
            self.cycles, self._quiet = min(2 * self.cycles, self.longest), 0

    def _merged(self) -> tuple[Sample, ...]:
        """Return the gathered samples as one; none if there are none."""
        parts, self._gathered = self._gathered, []
        if len(parts) < 2:
            return tuple(parts)
        arrivals, probes, matches = (
            tuple(sum(counts) for counts in zip(*columns, strict=True))
            for columns in (
                [one.arrivals for one in parts],
                [one.probes for one in parts],
                [one.matches for one in parts],
            )
        )
        seconds = sum(one.seconds for one in parts)
        merged = replace(
            parts[-1], seconds=seconds, arrivals=arrivals, probes=probes, matches=matches
        )
        return (merged,)

    def _differs(self, sample: Sample) -> bool:
        """Return whether rates or matches per probe differ significantly from the last ones."""
        last = self._last
        if last is None or sample.part != last.part:
            return True
        available, before = (
            inf if one.resources is None else one.resources for one in (sample, last)
        )
        if available != before and abs(available - before) > _RESOURCES * before:
            return True
        leaves = range(self.shape.leaves)
        scale = sample.seconds / last.seconds
        if any(is_apart(sample.arrivals[leaf], scale * last.arrivals[leaf]) for leaf in leaves):
            return True
        for h in range(self.shape.count):
            found = ratio(last.matches[h], last.probes[h])
            if is_apart(sample.matches[h], found * sample.probes[h], 1 + found):
                return True
        return False
