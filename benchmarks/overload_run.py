"""One run of ``python -m benchmarks overload``, with results and counters for each second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import muntin
from benchmarks.overload_workload import SECOND, Chain, Lab
from muntin.adapt.model import PlanModel
from muntin.testing.plan_models import Nested, tree_shape

SHAPES: Mapping[str, Nested] = {
    "(((A, B), C), D)": (((0, 1), 2), 3),
    "((A, B), (C, D))": ((0, 1), (2, 3)),
    "(((A, B), (C, D)), E)": (((0, 1), (2, 3)), 4),
}


@dataclass(frozen=True)
class Setup:
    """How a query is run; no resources: without a limit."""

    tree: str
    policy: str = "jaqpot"
    resources: float | None = None
    freshness: float = 1.5
    state_rows: int | None = None
    measure: bool = False

    def settings(self) -> dict[str, str]:
        """Return the settings of the engine."""
        return {
            "overload": "adapt",
            "tree": self.tree,
            "policy": self.policy,
            "resources": "" if self.resources is None else f"{self.resources:.6f}",
            "state_rows": "" if self.state_rows is None else str(self.state_rows),
            "freshness": "measure" if self.measure else "enforce",
        }


@dataclass(frozen=True)
class Second:
    """What a second of event time brought, counted by half join."""

    results: int
    stale: int
    arrivals: tuple[int, ...]
    probes: tuple[int, ...]
    matches: tuple[int, ...]
    budgets: tuple[float, ...] = ()
    """In force at its end; none without limits."""


@dataclass(frozen=True)
class Run:
    """All seconds of a run, and what the engine said at its end."""

    setup: Setup
    windows: tuple[int, ...]
    seconds: Sequence[Second]
    stats: Mapping[str, Any]

    def results(self, begin: int = 0, end: int | None = None) -> int:
        """Results of some seconds."""
        return sum(second.results for second in self.seconds[begin:end])

    def stale_share(self) -> float:
        """Return the share of results that were too old."""
        return sum(second.stale for second in self.seconds) / max(self.results(), 1)

    def probes(self, begin: int = 0, end: int | None = None) -> float:
        """Probes per second."""
        part = self.seconds[begin:end]
        return sum(sum(second.probes) for second in part) / len(part)

    def model(self, begin: int, end: int, fallback: PlanModel | None = None) -> PlanModel:
        """Return the model measured in some seconds.

        Half joins that did not probe take their figures from ``fallback``.
        """
        shape = tree_shape(SHAPES[self.setup.tree])
        part = self.seconds[begin:end]
        arrivals = np.sum([second.arrivals for second in part], axis=0) / len(part)
        probes = np.sum([second.probes for second in part], axis=0)
        matches = np.sum([second.matches for second in part], axis=0)
        known = fallback.productivity if fallback else (0.0,) * shape.count
        found = tuple(
            float(m / p) if p else k for m, p, k in zip(matches, probes, known, strict=True)
        )
        rates = [float(rate) for rate in arrivals[: shape.leaves]]
        own = [*self.windows, *[self.setup.state_rows or 0] * (shape.leaves - 2)]
        times = [
            window / rate if rate > 0 else float("inf")
            for window, rate in zip(self.windows, rates, strict=True)
        ]
        fresh = tuple(self.setup.freshness * seconds for seconds in times)
        return PlanModel(shape, tuple(rates), found, tuple(own), fresh)


def run(load: Chain | Lab, setup: Setup) -> Run:
    """Push all rows, a second at a time."""
    engine = muntin.Engine(**setup.settings())
    types = (
        {"p": "bigint", "n": "bigint", "ts": "timestamp"}
        if isinstance(load, Chain)
        else {load.by: "bigint", "ts": "timestamp"}
    )
    for name in load.streams:
        engine.stream(name, types, time="ts")
    q = engine.query(load.query(setup.freshness), name="q")
    cuts = {name: _cuts(rows) for name, rows in load.streams.items()}
    last = max(len(places) for places in cuts.values()) - 1
    nothing = (0,) * (2 * len(cuts) - 2)
    before = Second(0, 0, nothing, nothing, nothing)
    seconds = []
    for second in range(last):
        for name, rows in load.streams.items():
            places = cuts[name]
            if second + 1 < len(places):
                engine.push(name, rows.slice(places[second], places[second + 1] - places[second]))
        engine.advance((second + 1) * SECOND)
        found = q.poll().num_rows
        now = _counted(q.stats())
        seconds.append(_difference(now, before, found))
        before = now
    return Run(setup, load.windows, seconds, q.stats())


def _cuts(rows: pa.Table) -> list[int]:
    """Return the index at which each second of a stream begins, and the end of the last."""
    times = rows.column("ts").cast(pa.int64()).to_numpy()
    return [
        int(place) for place in np.searchsorted(times, SECOND * np.arange(times[-1] // SECOND + 2))
    ]


def _counted(stats: Mapping[str, Any]) -> Second:
    overload = stats["overload"]
    arrivals, probes, matches = (
        tuple(overload[name].values()) for name in ("arrivals", "probes", "matches")
    )
    budgets = tuple(float("inf") if rate is None else rate for rate in overload["budgets"].values())
    return Second(0, overload["stale_results"], arrivals, probes, matches, budgets)


def _difference(now: Second, before: Second, results: int) -> Second:
    arrivals, probes, matches = (
        tuple(new - old for new, old in zip(mine, theirs, strict=True))
        for mine, theirs in (
            (now.arrivals, before.arrivals),
            (now.probes, before.probes),
            (now.matches, before.matches),
        )
    )
    return Second(results, now.stale - before.stale, arrivals, probes, matches, now.budgets)
