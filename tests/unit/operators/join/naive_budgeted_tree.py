"""The tree join under probe budgets, row by row in plain Python: a twin of the compiled one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import floor

from muntin.model.settings import ProbeChoice
from muntin.model.window import TimeWindow, window_size
from muntin.operators.join.probe_limiter import Budgets, CycleSample
from muntin.plan.join import JoinPlan, TreeStep

Row = tuple[int, int]
"""Time and key."""
Bound = dict[int, int]
"""Positions by source."""

SECOND = 1_000_000
EMPTY_CYCLES = 8
MASK = 2**64 - 1


def mixed(code: int) -> int:
    x = code & MASK
    for _ in range(2):
        x = ((x ^ (x >> 32)) * 0xD6E8FEB86659FD93) & MASK
    return x ^ (x >> 32)


@dataclass
class Cycle:
    """Counts of one cycle."""

    number: int
    budgets: list[int | None]
    cap: float | None
    work: float | None
    expected: list[int]
    arrivals: list[int]
    probes: list[int]
    matches: list[int]

    @property
    def used(self) -> int:
        return sum(self.probes)


@dataclass
class NaiveTree:
    """A tree join that takes rows in total order.

    ``results`` are (time, positions); ``samples`` are the counts of each finished cycle.
    """

    plan: JoinPlan
    decide: Callable[[CycleSample], Budgets | None]
    rows: list[list[Row]] = field(init=False)
    results: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    samples: list[CycleSample] = field(default_factory=list)
    stale: int = 0

    def __post_init__(self) -> None:
        assert self.plan.limiting is not None
        assert self.plan.tree is not None
        self.limiting, self.tree = self.plan.limiting, self.plan.tree
        self.count = len(self.plan.sources)
        self.joins = 2 * self.count - 2
        self.rows = [[] for _ in range(self.count)]
        self.nodes: list[list[Bound]] = [[] for _ in self.tree.nodes]
        self.ages = [0] * self.count
        self.budgets = Budgets.unlimited(self.count)
        self.cycle: Cycle | None = None
        self.sampled = 0
        self.new = self.counted_at = 0
        self.counted: tuple[int, ...] = (0,) * len(self.nodes)

    # -- cycles ------------------------------------------------------------------------------------

    def pass_time(self, now: int) -> None:
        """Finish the cycles that are over."""
        if self.cycle is None:
            return
        until = now // self.limiting.period
        while self.sampled < until and self.sampled <= self.cycle.number + EMPTY_CYCLES:
            real = self.sampled == self.cycle.number
            nothing = (0,) * self.joins
            arrivals, probes, matches = (
                tuple(each) if real else nothing
                for each in (self.cycle.arrivals, self.cycle.probes, self.cycle.matches)
            )
            self.new += sum(arrivals)
            sample = CycleSample(
                self.sampled,
                arrivals,
                probes,
                matches,
                self._states((self.sampled + 1) * self.limiting.period - 1),
            )
            self.samples.append(sample)
            decided = self.decide(sample)
            if decided is not None:
                self.budgets = decided
            self.sampled += 1

    def _begin(self, number: int) -> None:
        last, seconds = self.cycle, self.limiting.period / SECOND
        since = float(number % 2**20)
        budgets = [
            None
            if rate is None
            else floor((since + 1.0) * (rate * seconds)) - floor(since * (rate * seconds))
            for rate in self.budgets.rates
        ]
        expected = (
            last.arrivals if last is not None and last.number == number - 1 else [0] * self.joins
        )
        cap = None
        if self.budgets.cap is not None:
            quota, unspent = self.budgets.cap * seconds, 0.0
            if last is not None:
                unspent = (
                    max((-1.0 if last.cap is None else last.cap) - last.used, 0.0)
                    + (number - last.number - 1) * quota
                )
            cap = quota + min(unspent, max(quota, 1.0))
        work = None if self.budgets.work is None else self.budgets.work * seconds
        counts = ([0] * self.joins for _ in range(3))
        self.cycle = Cycle(number, budgets, cap, work, expected, *counts)
        self.sampled = number

    def _may_probe(self, h: int) -> bool:
        cycle = self.cycle
        assert cycle is not None
        cycle.arrivals[h] += 1
        if cycle.cap is not None and cycle.used >= floor(cycle.cap):
            return False
        if cycle.work is not None and cycle.used + sum(cycle.matches) >= floor(cycle.work):
            return False
        budget, expected = cycle.budgets[h], cycle.expected[h]
        if budget is not None:
            if cycle.probes[h] >= budget:
                return False
            if (
                self.limiting.choice is ProbeChoice.NEWEST
                and cycle.arrivals[h] <= expected - budget
            ):
                return False
            if self.limiting.choice is ProbeChoice.RANDOM and expected > budget:
                drawn = mixed(
                    mixed(mixed(mixed(self.limiting.seed) ^ h) ^ cycle.number) ^ cycle.arrivals[h]
                )
                if (drawn >> 11) * 2.0**-53 * expected >= budget:
                    return False
        cycle.probes[h] += 1
        return True

    # -- rows --------------------------------------------------------------------------------------

    def take(self, source: int, row: Row) -> None:
        """Take the next row in total order."""
        time = row[0]
        number = time // self.limiting.period
        if self.cycle is None or number != self.cycle.number:
            self.pass_time(time)
            self._begin(number)
        self.rows[source].append(row)
        found = list(self._climb(source, 0, {source: len(self.rows[source]) - 1}, source, time))
        order = sorted(found, key=lambda bound: tuple(-bound[s] for s in range(self.count)))
        self.results += [(time, tuple(bound[s] for s in range(self.count))) for bound in order]
        for bound in found:
            ages = [self._age(s, bound[s], time) for s in range(self.count)]
            self.stale += any(
                age >= fresh for age, fresh in zip(ages, self.limiting.freshness, strict=True)
            )
            self.ages = list(map(max, self.ages, ages))

    def _climb(self, leaf: int, level: int, bound: Bound, h: int, time: int) -> Iterator[Bound]:
        if not self._may_probe(h):
            return
        climb = self.tree.climbs[leaf][level]
        for partner in list(self._partners(climb, time)):
            both = bound | partner
            if len({self.rows[s][place][1] for s, place in both.items()}) > 1:
                continue
            assert self.cycle is not None
            self.cycle.matches[h] += 1
            if climb.parent is None:
                yield both
            else:
                self.nodes[climb.parent].append(both)
                yield from self._climb(leaf, level + 1, both, self.count + climb.parent, time)

    def _partners(self, climb: TreeStep, time: int) -> Iterator[Bound]:
        """Yield the matches of a climb in its sibling, newest first."""
        if climb.source is not None:
            for place in reversed(range(len(self.rows[climb.source]))):
                if self._in_leaf(climb.source, place, time):
                    yield {climb.source: place}
        else:
            yield from reversed(self._partial_matches(climb.node or 0, time))

    def _partial_matches(self, node: int, time: int) -> list[Bound]:
        last = (
            self.nodes[node][-self.limiting.state_rows :]
            if self.limiting.state_rows
            else self.nodes[node]
        )
        return [
            each
            for each in last
            if all(self._in_partial_match(s, place, time) for s, place in each.items())
        ]

    def _states(self, time: int) -> tuple[int, ...]:
        leaves = [
            sum(self._in_leaf(s, place, time) for place in range(len(rows)))
            for s, rows in enumerate(self.rows)
        ]
        if 8 * self.new >= sum(self.counted) or self.sampled - self.counted_at >= 64:
            self.counted = tuple(
                len(self._partial_matches(node, time)) for node in range(len(self.nodes))
            )
            self.new, self.counted_at = 0, self.sampled
        return (*leaves, *self.counted)

    def _age(self, source: int, place: int, time: int) -> int:
        """Return the age of a row in the unit of its window."""
        if isinstance(self.plan.query.sources[source].window, TimeWindow):
            return time - self.rows[source][place][0]
        return len(self.rows[source]) - 1 - place

    def _in_leaf(self, source: int, place: int, time: int) -> bool:
        return self._age(source, place, time) < window_size(self.plan.query.sources[source].window)

    def _in_partial_match(self, source: int, place: int, time: int) -> bool:
        if self.limiting.state_rows is None:
            return self._in_leaf(source, place, time)
        return (
            not self.limiting.enforce
            or self._age(source, place, time) < self.limiting.freshness[source]
        )


def run_naive(
    plan: JoinPlan,
    rows: Sequence[Sequence[Row]],
    until: int,
    decide: Callable[[CycleSample], Budgets | None],
) -> NaiveTree:
    """Run all rows of each stream by time, in one run; the streams are the sources."""
    twin = NaiveTree(plan, decide)
    for source, row in sorted(
        ((source, row) for source, stream in enumerate(rows) for row in stream),
        key=lambda each: (each[1][0], each[0]),
    ):
        twin.take(source, row)
    twin.pass_time(until)
    return twin
