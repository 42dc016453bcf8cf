"""A tree of joins as plain arithmetic: the samples a controller gets under its probe budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from muntin.adapt.adapter import Adapter
from muntin.adapt.analysis import Recommendation, analyze
from muntin.adapt.config import AdapterConfig
from muntin.adapt.monitor import Sample
from muntin.adapt.shape import ROOT, TreeShape
from muntin.model.window import TimeWindow


@dataclass
class Plant:
    """A tree of joins over streams of ``rates`` with windows of ``window`` seconds.

    The fraction ``selectivities`` of all pairs of a join match.
    """

    shape: TreeShape
    rates: list[float]
    selectivities: list[float]
    window: int = 10
    resources: float | None = None
    state_rows: int | None = None
    cycle: int = 0
    fed: dict[int, list[float]] = field(default_factory=dict)

    def states(self) -> list[float]:
        """Return the rows in the state of each half join, with full windows.

        An intermediate result of age ``a`` is alive with probability ``1 - a / window``.
        """
        found = [rate * self.window for rate in self.rates]
        for h in self.shape.susceptible:
            made = self.fed.get(h, [])[: -self.window - 1 : -1]
            alive = sum(rows * (1 - age / self.window) for age, rows in enumerate(made))
            found.append(
                min(sum(self.fed.get(h, [])), self.state_rows) if self.state_rows else alive
            )
        return found

    def run(self, budgets: Sequence[float] | None) -> Sample:
        """Run one cycle of a second.

        The resources limit the total; later half joins are cut first.
        """
        shape = self.shape
        states = self.states()
        arrivals = [*self.rates, *[0.0] * (shape.count - shape.leaves)]
        probes, matches = [0.0] * shape.count, [0.0] * shape.count
        left = float("inf") if self.resources is None else self.resources
        for pair, selectivity in zip(shape.joins, self.selectivities, strict=True):
            for h in pair:
                allowed = float("inf") if budgets is None or budgets[h] < 0 else budgets[h]
                probes[h] = min(allowed, arrivals[h], left)
                left -= probes[h]
                matches[h] = probes[h] * selectivity * states[shape.partner[h]]
                if shape.parent[h] != ROOT:
                    arrivals[shape.parent[h]] += matches[h]
        for h in shape.susceptible:
            self.fed.setdefault(h, []).append(arrivals[h])
        self.cycle += 1
        return Sample(self.cycle, 1.0, arrivals, probes, matches, states, self.resources)

    def adapter(self, policy: str = "jaqpot", freshness: float = 1.0) -> Adapter:
        windows = (TimeWindow(self.window * 1_000_000),) * self.shape.leaves
        fresh = (TimeWindow(int(self.window * freshness * 1_000_000)),) * self.shape.leaves
        return Adapter(
            self.shape, AdapterConfig(windows, fresh, policy=policy, state_rows=self.state_rows)
        )


def settle(plant: Plant, adapter: Adapter, cycles: int) -> list[Sample]:
    """Run some cycles, each followed by the analysis, and return the samples."""
    samples = []
    for _ in range(cycles):
        sample = plant.run(adapter.budgets)
        samples.append(sample)
        request = adapter.observe(sample)
        if request is not None:
            adapter.decide(analyze(request))
    return samples


def results(sample: Sample, shape: TreeShape) -> float:
    return sum(sample.matches[h] for h in shape.top)


__all__ = ["Plant", "Recommendation", "results", "settle"]
