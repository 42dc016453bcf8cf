"""Statistics of the plan without limits, from averages over cycles [Mukherji11, section 4.4].

Under limits, measurements are incomplete. What is measured is the share of pairs that match at
each half join. One that does not probe has that of the other direction of its join, since both
compare the same pairs; a join that probes in neither direction keeps its last statistics. A state
of intermediate results with fewer arrivals than without limits is less full, so probes find less in
it: its *fill* is the ratio of its arrivals to those without limits, both averaged over about the
lifetime of its results. Its full size is all pairs of its sides that match, corrected by how its
size compares with its fill; with a fixed number of results, it is its size over its fill.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, inf, sqrt

from muntin.adapt.config import AdapterConfig, seconds_of
from muntin.adapt.model import PlanModel, ratio
from muntin.adapt.shape import TreeShape

_FEW = 20.0
"""Fewer probes than this are not a measurement ..."""
_LONG = 16
"""... so if there are few, averages run over up to this many times as many cycles, ..."""
_MANY = 100.0
"""... until there are this many matches."""
_PRIOR = 8.0
"""The matches that an estimate counts as until there are measurements."""
_MOST_CORRECTION = 4.0
_JUMP = 0.4
"""Earlier cycles are dropped when the newest differs by this share, and significantly."""
_CHANCE = 5.0
_LEAST_FILL = 1e-3
_MARGIN = 3.0
"""Standard deviations by which states are refreshed faster if none are released for their age."""


@dataclass(frozen=True)
class Sample:
    """The counts of one cycle of event time, by half join: arrivals, probes, matches found."""

    cycle: int
    seconds: float
    arrivals: Sequence[float]
    probes: Sequence[float]
    matches: Sequence[float]
    states: Sequence[float]
    """Rows in the own states at its end."""
    resources: float | None = None
    """Probes per second that were available; None: no limit."""
    part: float = 1.0
    """The fraction of keys whose rows could probe."""

    def of_all_keys(self, leaves: int) -> Sample:
        """Return the sample as if intermediate results of all keys were as many as of the part."""
        if self.part >= 1:
            return self

        def scaled(numbers: Sequence[float]) -> tuple[float, ...]:
            return (*numbers[:leaves], *(number / self.part for number in numbers[leaves:]))

        return replace(self, arrivals=scaled(self.arrivals), states=scaled(self.states), part=1.0)


@dataclass(frozen=True)
class Statistics:
    """A model of the plan without limits, and its uncertainty.

    ``scatter`` has the relative standard error of each figure, ``unmeasured`` the joins without
    measurements, ``share`` the estimated share of all results that is produced.
    """

    model: PlanModel
    scatter: tuple[float, ...]
    unmeasured: tuple[int, ...]
    share: float

    @property
    def figures(self) -> tuple[float, ...]:
        """Return the rates and productivities, in the order of ``scatter``."""
        return (*self.model.rates, *self.model.productivity)


class Monitor:
    """Aggregates samples into ``statistics``, which is None before the first sample."""

    def __init__(self, shape: TreeShape, config: AdapterConfig) -> None:
        self.shape = shape
        self.config = config
        self.statistics: Statistics | None = None
        self._arrived: list[deque[tuple[float, float]]] = [
            deque(maxlen=config.cycles) for _ in range(shape.leaves)
        ]
        self._probed: list[deque[tuple[float, float, float]]] = [
            deque(maxlen=_LONG * config.cycles) for _ in range(shape.count)
        ]
        self._made: deque[tuple[float, float]] = deque(maxlen=config.cycles)
        self._seconds = 0.0
        self._shares = [0.0] * shape.count
        self._held = [(0.0, 0.0)] * shape.count
        self._size = [0.0] * shape.count
        self._states: list[float] = []
        self._fed = [0.0] * shape.count
        self._full = [0.0] * shape.count

    @property
    def filled(self) -> bool:
        """Return whether samples cover twice the longest window; states are full by then."""
        if self.statistics is None:
            return False
        rates = self.statistics.model.rates
        longest = [seconds_of(*pair) for pair in zip(self.config.windows, rates, strict=True)]
        return self._seconds >= 2 * max((span for span in longest if span < inf), default=0.0)

    def take(self, sample: Sample) -> Statistics:
        """Learn from a cycle."""
        sample = sample.of_all_keys(self.shape.leaves)
        self._seconds += sample.seconds
        self._remember(sample)
        rates = [
            ratio(sum(rows for rows, _ in cycles), sum(seconds for _, seconds in cycles))
            for cycles in self._arrived
        ]
        for h in range(self.shape.count):
            share = self._selectivity(h)
            if share is not None:
                self._shares[h] = share
        own = self._sizes(sample, rates)
        known = tuple(
            share * own[other]
            for share, other in zip(self._shares, self.shape.partner, strict=True)
        )
        config = self.config
        model = PlanModel(
            self.shape,
            tuple(rates),
            known,
            tuple(own),
            tuple(
                seconds_of(window, rate)
                for window, rate in zip(config.freshness, rates, strict=True)
            ),
            fixed=config.state_rows is not None,
            purged=config.enforced,
            by_key=config.by_key,
            chance=0.0 if config.enforced else _MARGIN,
            costs=config.costs,
        )
        self._follow(sample, model)
        self._made.append(
            (
                sum(sample.matches[h] for h in self.shape.top),
                model.saturation.throughput * sample.seconds,
            )
        )
        made, full = (sum(numbers) for numbers in zip(*self._made, strict=True))
        self.statistics = Statistics(
            model, self._scatter(), self._unmeasured(sample), min(ratio(made, full, 1.0), 1.0)
        )
        return self.statistics

    def _remember(self, sample: Sample) -> None:
        """Add the cycle to the averages; drop earlier cycles if it differs significantly."""
        assert sample.seconds > 0, "a cycle has a length"
        for leaf, cycles in enumerate(self._arrived):
            expected = (
                ratio(sum(rows for rows, _ in cycles), sum(seconds for _, seconds in cycles))
                * sample.seconds
            )
            if cycles and is_apart(sample.arrivals[leaf], expected):
                cycles.clear()
            cycles.append((sample.arrivals[leaf], sample.seconds))
        before = self._states or sample.states
        states = [(old + new) / 2 for old, new in zip(before, sample.states, strict=True)]
        self._states = list(sample.states)
        for h, probed in enumerate(self._probed):
            pairs = sample.probes[h] * states[self.shape.partner[h]]
            probes, matches, compared = self._seen(h)
            expected = ratio(matches, compared) * pairs
            spread = 1 + ratio(matches, probes)  # the matches of one probe are correlated
            if (
                probes >= _FEW
                and sample.probes[h] >= _FEW
                and is_apart(sample.matches[h], expected, spread)
            ):
                probed.clear()
            probed.append((sample.probes[h], sample.matches[h], pairs))

    def _selectivity(self, h: int) -> float | None:
        """Return the share of pairs that match at a half join; None without measurements.

        Both directions of a join compare the same pairs. Where one of them has found few matches or
        has not probed recently, the share of both counts, and where both have, the last one known.
        """
        _, matches, pairs = mine = self._seen(h)
        others = self._seen(self.shape.partner[h])
        both = [one + other for one, other in zip(mine, others, strict=True)]
        if both[0] < _FEW or both[2] <= 0:
            return None
        known = self._shares[h]
        shared = (both[1] + 1) / (both[2] + 1 / known) if known else both[1] / both[2]
        recent = list(self._probed[h])[-self.config.cycles :]
        if not shared or sum(cycle[0] for cycle in recent) < _FEW:
            return shared
        return (matches + _PRIOR) / (pairs + _PRIOR / shared)

    def _seen(self, h: int) -> tuple[float, float, float]:
        """Return the probes, matches and pairs of the last cycles; of more if they are few."""
        probes = matches = pairs = 0.0
        for number, cycle in enumerate(reversed(self._probed[h])):
            if number >= self.config.cycles and probes >= _FEW and matches >= _MANY:
                break
            probes, matches, pairs = probes + cycle[0], matches + cycle[1], pairs + cycle[2]
        return probes, matches, pairs

    def _sizes(self, sample: Sample, rates: Sequence[float]) -> list[float]:
        """Return the rows of each own state when it is full."""
        found = [0.0] * self.shape.count
        for h, state in enumerate(sample.states[: self.shape.leaves]):
            seconds = seconds_of(self.config.windows[h], rates[h])
            # A window that is filling up holds all arrivals; rows kept longer for freshness do
            # not count.
            found[h] = min(state, seconds * rates[h]) if 0 < seconds < inf else state
        for pair in self.shape.joins[:-1]:
            h = self.shape.parent[pair[0]]
            state, most = sample.states[h], self.config.state_rows
            # All pairs that match are alive while both sides are inside.
            share = sum(self._shares[side] for side in pair) / 2
            expected = share * found[pair[0]] * found[pair[1]]
            if most is None and expected > 0:
                found[h] = expected * self._correction(h, state, expected)
            else:
                found[h] = min(state / self._fill(h), most or inf) if state else self._size[h]
        self._size = list(found)
        return found

    def _correction(self, h: int, state: float, expected: float) -> float:
        """Return how many times its expected size a state has been, on average.

        More than once where matching rows arrive together, so that their pairs live longer.
        """
        keep = 1 - 1 / (2 * self.config.cycles)
        held, due = self._held[h]
        self._held[h] = held, due = keep * held + state, keep * due + expected * self._fill(h)
        return min(max((held + _PRIOR) / (due + _PRIOR), 1 / _MOST_CORRECTION), _MOST_CORRECTION)

    def _fill(self, h: int) -> float:
        return min(max(ratio(self._fed[h], self._full[h], 1.0), _LEAST_FILL), 1.0)

    def _follow(self, sample: Sample, model: PlanModel) -> None:
        """Average the arrivals of states, over about half the shortest window of their members."""
        for h in self.shape.susceptible:
            lives = min(
                seconds_of(self.config.windows[leaf], model.rates[leaf])
                for leaf in self.shape.members[h]
            )
            keep = exp(-2 * sample.seconds / lives) if lives > 0 else 0.0
            self._fed[h] = keep * self._fed[h] + (1 - keep) * sample.arrivals[h] / sample.seconds
            self._full[h] = keep * self._full[h] + (1 - keep) * max(
                model.saturation.arrivals[h], sample.arrivals[h] / sample.seconds
            )

    def _scatter(self) -> tuple[float, ...]:
        """Return the relative standard error of each figure."""
        counts = [sum(rows for rows, _ in cycles) for cycles in self._arrived]
        counts += [min(self._seen(h)[:2]) for h in range(self.shape.count)]
        return tuple(1 / sqrt(max(count, 1.0)) for count in counts)

    def _unmeasured(self, sample: Sample) -> tuple[int, ...]:
        """Return the joins, by number, at which rows could arrive but none has probed recently."""
        found = []
        for number, pair in enumerate(self.shape.joins):
            seen = [self._seen(h) for h in pair]
            measured = sum(probes for probes, _, _ in seen) >= _FEW and any(
                pairs > 0 for _, _, pairs in seen
            )
            if not measured and any(
                sample.arrivals[leaf] > 0 for h in pair for leaf in self.shape.members[h]
            ):
                found.append(number)
        return tuple(found)


def leaves_below(shape: TreeShape, join: int) -> tuple[int, ...]:
    """Return the leaves whose paths lead through a join."""
    pair = shape.joins[join]
    return tuple(leaf for leaf in range(shape.leaves) if any(h in shape.paths[leaf] for h in pair))


def is_apart(found: float, expected: float, spread: float = 1.0) -> bool:
    """Return whether a count differs clearly from the expected one, not just by chance."""
    return abs(found - expected) > max(
        _JUMP * expected, _CHANCE * sqrt(spread * max(found, expected, 1.0))
    )
