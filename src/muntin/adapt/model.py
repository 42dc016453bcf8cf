"""The output of a tree of joins under probe budgets [Mukherji11, sections 2 to 4.1, appendix A].

Work is counted in probes, of rows and of intermediate results alike, or by their measured costs
(:mod:`muntin.adapt.probe_costs`). A half join makes ``productivity`` results per probe, which
arrive at its parent. All rates are per second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import inf, isnan, sqrt
from operator import mul

from muntin.adapt.probe_costs import ProbeCosts
from muntin.adapt.shape import ROOT, TreeShape

MOST = 1e15
"""The cap on all statistics, except for an unlimited rate."""


@dataclass(frozen=True)
class Flow:
    """The rows per second that arrive and that probe at each half join, and the results.

    ``productivity`` has the results per probe at each half join, ``throughput`` the results of the
    tree per second, ``resources`` the units of work per second of all probes and their matches.
    """

    arrivals: tuple[float, ...]
    probes: tuple[float, ...]
    productivity: tuple[float, ...]
    throughput: float
    resources: float


@dataclass(frozen=True)
class PlanModel:
    """A tree and its statistics by half join."""

    shape: TreeShape
    """The tree."""
    rates: tuple[float, ...]
    """Arrivals of the leaves."""
    productivity: tuple[float, ...]
    """Results per probe, when every state is as full as it is without limits (equation 3)."""
    own: tuple[float, ...]
    """Rows of the own states, when they are full."""
    freshness: tuple[float, ...] = ()
    """For each leaf, how old its rows may be in a result, in seconds; infinity: no limit."""
    fixed: bool = True
    """Whether states hold a fixed number of intermediate results, as in [Mukherji11]. If not,
    their size follows the arrivals, and an intermediate result leaves when one of its members is
    too old, so that nothing has to be refreshed.
    """
    purged: bool = False
    """Whether fixed states also release results too old for freshness, so that few arrivals do
    not fill them.
    """
    by_key: bool = False
    """Whether the rows that probe may be those of some keys."""
    chance: float = 0.0
    """By how many standard deviations of the arrivals fixed states are refreshed faster than the
    average requires.
    """
    costs: ProbeCosts | None = None
    """The units of work of each step; None: each probe is a unit, and nothing else counts."""

    def __post_init__(self) -> None:
        leaves, count = self.shape.leaves, self.shape.count
        for name, length in (
            ("rates", leaves),
            ("productivity", count),
            ("own", count),
            ("freshness", leaves),
        ):
            values: Sequence[float] = getattr(self, name) or (
                (inf,) * leaves if name == "freshness" else ()
            )
            assert len(values) == length, f"{name} has {len(values)} values instead of {length}"
            most = inf if name in {"rates", "freshness"} else MOST
            object.__setattr__(
                self,
                name,
                tuple(
                    0.0 if isnan(value) else min(max(float(value), 0.0), most) for value in values
                ),
            )

    @cached_property
    def windows(self) -> tuple[float, ...]:
        """Return how long a row of each leaf stays in its state: rows over rate (appendix A)."""
        return tuple(ratio(self.own[leaf], rate) for leaf, rate in enumerate(self.rates))

    def held(self, h: int) -> float:
        """Return the average number of arrivals until a result has left its fixed state."""
        return self.own[h] + self.chance * sqrt(self.own[h])

    # Output rates ---------------------------------------------------------------------------------

    def flow(self, budgets: Sequence[float]) -> Flow:
        """Return the flow under probe budgets (equations 2 and 4), at most what arrives."""
        return self._flow(budgets, self.filling)

    def throughput(self, budgets: Sequence[float]) -> float:
        """Return the results per second under probe budgets."""
        return self.flow(budgets).throughput

    def flow_of_part(self, budgets: Sequence[float], part: float) -> Flow:
        """Return the flow when these budgets are for the rows of a part of the keys.

        Within the part, rates are the part of all rates, and a probe finds as much as among all
        rows. States are as full as if all keys had budgets in proportion.
        """
        whole = self.flow([allowed / part for allowed in budgets])
        return Flow(
            tuple(part * rows for rows in whole.arrivals),
            tuple(part * rows for rows in whole.probes),
            whole.productivity,
            part * whole.throughput,
            part * whole.resources,
        )

    def sent_up(self, rows: Sequence[float]) -> Flow:
        """Return the flow when these rows of each leaf probe, and all that they produce."""
        return self.flow((*rows, *[inf] * (self.shape.count - self.shape.leaves)))

    @cached_property
    def saturation(self) -> Flow:
        """Return the flow when all arrivals probe: saturation (equation 1, note 9)."""
        return self._flow((inf,) * self.shape.count, None)

    @cached_property
    def filling(self) -> tuple[float, ...] | None:
        """Return the arrivals that fill each state; None if states are always full.

        An intermediate result leaves a fixed state when its first member is too old; on average,
        members are half their window old.
        """
        if not self.fixed:
            return self.saturation.arrivals
        if not self.purged:
            return None
        left = [
            fresh - window / 2 for fresh, window in zip(self.freshness, self.windows, strict=True)
        ]
        lives = [min(left[leaf] for leaf in members) for members in self.shape.members]
        return tuple(ratio(size, life) for size, life in zip(self.own, lives, strict=True))

    def _flow(self, budgets: Sequence[float], full: Sequence[float] | None) -> Flow:
        """Compute the flow bottom up; ``full`` has the arrivals that fill each state."""
        shape = self.shape
        arrivals = [*self.rates, *[0.0] * (shape.count - shape.leaves)]
        probes = [0.0] * shape.count
        productivity = list(self.productivity)
        throughput = resources = 0.0
        for pair in shape.joins:
            for h in pair:
                probes[h] = min(max(budgets[h], 0.0), arrivals[h])
            for h in pair:
                other = shape.partner[h]
                if full is not None and other >= shape.leaves:
                    productivity[h] *= min(ratio(arrivals[other], full[other], 1.0), 1.0)
                made = _times(probes[h], productivity[h])
                resources += _times(probes[h], self.probe_costs[h])
                resources += _times(made, self.match_costs[h])
                if shape.parent[h] == ROOT:
                    throughput += made
                else:
                    arrivals[shape.parent[h]] += made
        return Flow(tuple(arrivals), tuple(probes), tuple(productivity), throughput, resources)

    # Costs ----------------------------------------------------------------------------------------

    @cached_property
    def probe_costs(self) -> tuple[float, ...]:
        """Return the units of work of a probe that finds nothing; scanned states are full."""
        costs = self.costs or ProbeCosts.unit(self.shape.count)
        return tuple(
            probe + _times(scanned, self.own[other])
            for probe, scanned, other in zip(
                costs.probe, costs.scanned, self.shape.partner, strict=True
            )
        )

    @cached_property
    def match_costs(self) -> tuple[float, ...]:
        """Return the units of work of a match."""
        return (self.costs or ProbeCosts.unit(self.shape.count)).match

    @cached_property
    def step_costs(self) -> tuple[float, ...]:
        """Return the units of work of a probe and its matches, when states are full."""
        return tuple(
            probe + match * found
            for probe, match, found in zip(
                self.probe_costs, self.match_costs, self.productivity, strict=True
            )
        )

    def work(self, probes: Sequence[float], matches: Sequence[float]) -> float:
        """Return the units of work of counted probes and matches."""
        return sum(
            cost * count
            for costs, counts in ((self.probe_costs, probes), (self.match_costs, matches))
            for cost, count in zip(costs, counts, strict=True)
        )

    # Paths ----------------------------------------------------------------------------------------

    @cached_property
    def cardinalities(self) -> tuple[tuple[float, ...], ...]:
        """For each path, the results after each half join per row of the leaf (equation 5)."""
        return tuple(
            tuple(accumulate((self.productivity[h] for h in path), mul))
            for path in self.shape.paths
        )

    @cached_property
    def path_costs(self) -> tuple[float, ...]:
        """For each path, the work per row of the leaf; in probes 1 + phi_1 + ... + phi_(n-1)."""
        return tuple(
            sum(rows * self.step_costs[h] for rows, h in zip((1.0, *found[:-1]), path, strict=True))
            for path, found in zip(self.shape.paths, self.cardinalities, strict=True)
        )

    @cached_property
    def path_productivity(self) -> tuple[float, ...]:
        """For each path, the results per unit of work anywhere on it (equation 8)."""
        return tuple(
            found[-1] / cost
            for found, cost in zip(self.cardinalities, self.path_costs, strict=True)
        )

    def division(self, path: int, resources: float) -> tuple[float, ...]:
        """Return the probes of a path by hop, so that all output is consumed.

        See equations 6 and 7.
        """
        first = resources / self.path_costs[path]
        return tuple(first * before for before in (1.0, *self.cardinalities[path][:-1]))

    def path_limit(self, path: int) -> float:
        """Return the resources with which all rows of the leaf reach the root."""
        return _times(self.rates[path], self.path_costs[path])

    def budgets(self, assigned: Sequence[Sequence[float]]) -> tuple[float, ...]:
        """Return the probe budget of each half join, from probes by path and hop."""
        found = [0.0] * self.shape.count
        for path, hops in zip(self.shape.paths, assigned, strict=True):
            for h, share in zip(path, hops, strict=True):
                found[h] += share
        return tuple(found)

    def selectivity(self, h: int) -> float:
        """Return the results per pair of a probing row and a row of the partner's state."""
        return ratio(self.productivity[h], self.own[self.shape.partner[h]])


def ratio(number: float, divisor: float, nothing: float = 0.0) -> float:
    """Return a quotient; ``nothing`` where the divisor is 0."""
    return number / divisor if divisor > 0 else nothing


def _times(number: float, factor: float) -> float:
    """Return a product in which 0 times infinity is 0."""
    return number * factor if number > 0 and factor > 0 else 0.0
