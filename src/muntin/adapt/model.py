"""The output of a tree of joins under probe budgets [Mukherji11, sections 2 to 4.1, appendix A].

Work is counted in probes, of rows and of intermediate results alike. A half join makes
``productivity`` results per probe, which arrive at its parent. All rates are per second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import inf, isnan, sqrt
from operator import mul

from muntin.adapt.shape import ROOT, TreeShape

MOST = 1e15
"""The cap on all statistics, except for an unlimited rate."""


@dataclass(frozen=True)
class Flow:
    """The rows per second that arrive and that probe at each half join, and the results.

    ``productivity`` has the results per probe at each half join, ``throughput`` the results of the
    tree per second.
    """

    arrivals: tuple[float, ...]
    probes: tuple[float, ...]
    productivity: tuple[float, ...]
    throughput: float

    @property
    def resources(self) -> float:
        """All probes."""
        return sum(self.probes)


@dataclass(frozen=True)
class PlanModel:
    """A tree and its statistics by half join.

    Parameters
    ----------
    shape
        The tree.
    rates
        Arrivals of the leaves.
    productivity
        Results per probe, when every state is as full as it is without limits (equation 3).
    own
        Rows of the own states, when they are full.
    freshness
        For each leaf, how old its rows may be in a result, in seconds; infinity: no limit.
    fixed
        Whether states hold a fixed number of intermediate results, as in [Mukherji11]. If not,
        their size follows the arrivals, and an intermediate result leaves when one of its members
        is too old, so that nothing has to be refreshed.
    purged
        Whether fixed states also release results too old for freshness, so that few arrivals do not
        fill them.
    chance
        By how many standard deviations of the arrivals fixed states are refreshed faster than the
        average requires.
    """

    shape: TreeShape
    rates: tuple[float, ...]
    productivity: tuple[float, ...]
    own: tuple[float, ...]
    freshness: tuple[float, ...] = ()
    fixed: bool = True
    purged: bool = False
    chance: float = 0.0

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

    @classmethod
    def of_selectivities(
        cls,
        shape: TreeShape,
        rates: Sequence[float],
        own: Sequence[float],
        selectivities: Sequence[float],
        freshness: Sequence[float] = (),
    ) -> PlanModel:
        """Return a model from the selectivity of each join, by ``shape.joins`` (equation 3).

        >>> shape = TreeShape.of((0, 1))
        >>> PlanModel.of_selectivities(shape, [500, 700], [5000, 500], [0.001]).productivity
        (0.5, 5.0)
        """
        found = [0.0] * shape.count
        for pair, selectivity in zip(shape.joins, selectivities, strict=True):
            for h in pair:
                found[h] = selectivity * own[shape.partner[h]]
        return cls(shape, tuple(rates), tuple(found), tuple(own), tuple(freshness))

    def with_freshness(self, *, factor: float) -> PlanModel:
        """Return the model with every freshness a multiple of the window of its stream."""
        return replace(self, freshness=tuple(factor * window for window in self.windows))

    @cached_property
    def windows(self) -> tuple[float, ...]:
        """The seconds that a row of each leaf stays in its state: rows over rate (appendix A)."""
        return tuple(_over(self.own[leaf], rate) for leaf, rate in enumerate(self.rates))

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

    def sent_up(self, rows: Sequence[float]) -> Flow:
        """Return the flow when these rows of each leaf probe, and all that they produce."""
        return self.flow((*rows, *[inf] * (self.shape.count - self.shape.leaves)))

    @cached_property
    def saturation(self) -> Flow:
        """The flow when all arrivals probe: saturation (equation 1, note 9)."""
        return self._flow((inf,) * self.shape.count, None)

    @cached_property
    def filling(self) -> tuple[float, ...] | None:
        """The arrivals that fill each state; None if states are always full.

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
        return tuple(_over(size, life) for size, life in zip(self.own, lives, strict=True))

    def _flow(self, budgets: Sequence[float], full: Sequence[float] | None) -> Flow:
        """Compute the flow bottom up; ``full`` has the arrivals that fill each state."""
        shape = self.shape
        arrivals = [*self.rates, *[0.0] * (shape.count - shape.leaves)]
        probes = [0.0] * shape.count
        productivity = list(self.productivity)
        throughput = 0.0
        for pair in shape.joins:
            for h in pair:
                probes[h] = min(max(budgets[h], 0.0), arrivals[h])
            for h in pair:
                other = shape.partner[h]
                if full is not None and other >= shape.leaves:
                    productivity[h] *= min(_over(arrivals[other], full[other], 1.0), 1.0)
                made = _times(probes[h], productivity[h])
                if shape.parent[h] == ROOT:
                    throughput += made
                else:
                    arrivals[shape.parent[h]] += made
        return Flow(tuple(arrivals), tuple(probes), tuple(productivity), throughput)

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
        """For each path, the probes per row of the leaf: 1 + phi_1 + ... + phi_(n-1)."""
        return tuple(1.0 + sum(found[:-1]) for found in self.cardinalities)

    @cached_property
    def path_productivity(self) -> tuple[float, ...]:
        """For each path, the results per probe anywhere on it (equation 8)."""
        return tuple(
            found[-1] / cost
            for found, cost in zip(self.cardinalities, self.path_costs, strict=True)
        )

    def division(self, path: int, resources: float) -> tuple[float, ...]:
        """Return the resources of a path by hop, so that all output is consumed.

        See equations 6 and 7.
        """
        first = resources / self.path_costs[path]
        return tuple(first * before for before in (1.0, *self.cardinalities[path][:-1]))

    def path_limit(self, path: int) -> float:
        """Return the resources with which all rows of the leaf reach the root."""
        return _times(self.rates[path], self.path_costs[path])

    def budgets(self, assigned: Sequence[Sequence[float]]) -> tuple[float, ...]:
        """Return the probe budget of each half join, from resources by path and hop."""
        found = [0.0] * self.shape.count
        for path, hops in zip(self.shape.paths, assigned, strict=True):
            for h, share in zip(path, hops, strict=True):
                found[h] += share
        return tuple(found)

    def selectivity(self, h: int) -> float:
        """Return the results per pair of a probing row and a row of the partner's state."""
        return _over(self.productivity[h], self.own[self.shape.partner[h]])

    # Cost -----------------------------------------------------------------------------------------

    def unit_time_cost(
        self, costs: Sequence[tuple[float, float, float]], budgets: Sequence[float] | None = None
    ) -> tuple[float, ...]:
        """Return the cost of each half join per second (equations 13 to 15).

        ``costs`` has the cost of a probe, an insert and a purge at each. All arrivals are inserted
        and purged; under probe budgets only some of them probe.
        """
        flow = self.saturation if budgets is None else self.flow(budgets)
        return tuple(
            probes * probe + arrivals * (insert + purge)
            for arrivals, probes, (probe, insert, purge) in zip(
                flow.arrivals, flow.probes, costs, strict=True
            )
        )


@dataclass(frozen=True)
class TableEntry:
    """A path in the path productivity table (Table 2): resources, output and number of units."""

    resources: float
    output: float
    most: float = inf

    @property
    def productivity(self) -> float:
        """Results per probe."""
        return _over(self.output, self.resources)


def path_table(model: PlanModel, units: Sequence[float]) -> tuple[TableEntry, ...]:
    """Return the table for units of these numbers of rows of each leaf."""
    return tuple(_entries(model, units))


def _entries(model: PlanModel, units: Sequence[float]) -> Iterator[TableEntry]:
    for path, unit in enumerate(units):
        most = (
            inf if model.rates[path] == inf else _over(model.rates[path] * (1 + 1e-12), unit) // 1
        )
        yield TableEntry(unit * model.path_costs[path], unit * model.cardinalities[path][-1], most)


def _over(number: float, divisor: float, nothing: float = 0.0) -> float:
    """Return a quotient; ``nothing`` where the divisor is 0."""
    return number / divisor if divisor > 0 else nothing


def _times(number: float, factor: float) -> float:
    """Return a product in which 0 times infinity is 0."""
    return number * factor if number > 0 and factor > 0 else 0.0
