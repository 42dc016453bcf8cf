"""Plans for ``python -m benchmarks overload-windows``: states are as full as they are fed.

Random plans of three to six streams, without ``state_rows``: uneven rates, few to many keys, one
key for all streams or another one for each join, windows alike or not, 5 % to 60 % of what
saturation needs. Every plan is computed and executed under all nine policies, on the same streams.
Plans that are computed to produce few results run longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil, prod
from statistics import mean

import numpy as np
import pyarrow as pa

import muntin
from benchmarks.overload_workload import SECOND
from benchmarks.report import Figure
from muntin.adapt.model import PlanModel
from muntin.adapt.policies import POLICIES, allocate
from muntin.adapt.steady_state import best_budgets
from muntin.testing.plan_models import Nested, tree_shape

BEST = "best other, executed"
KINDS = ("linear", "semi-bushy", "bushy")
_NAMES = "ABCDEF"
_START = 1_700_000_000 * SECOND
_LEVELS = (0.05, 0.6)
_SATURATION = (100.0, 20_000.0)
"""Results per second of a plan without limits."""
_RESULTS = 20_000
"""Results that ``jaqpot`` is to produce in a run ..."""
_SECONDS = (40, 160)
"""... which is this long."""
_BLOCKS = 10
"""Parts of a run, from which the standard error of a ratio follows."""
_LONG_SEARCH = 200
"""Random starts of the long search."""


@dataclass(frozen=True)
class WindowedPlan:
    """A random plan over Poisson streams; ``keys`` has one number of keys, or one per join."""

    tree: Nested
    rates: tuple[float, ...]
    windows: tuple[float, ...]
    keys: tuple[int, ...]
    level: float
    seed: int

    @property
    def one_key(self) -> bool:
        """Whether all streams are joined by the same key."""
        return len(self.keys) == 1

    @cached_property
    def model(self) -> PlanModel:
        """The statistics that rates, windows and keys lead to."""
        shape = tree_shape(self.tree)
        inside = [rate * window for rate, window in zip(self.rates, self.windows, strict=True)]
        own = [
            prod(inside[leaf] for leaf in leaves) / prod(self._keys(leaf) for leaf in leaves[:-1])
            for leaves in shape.members
        ]
        found = [0.0] * shape.count
        for pair in shape.joins:
            # Leaves are in order: the last one of the left side is joined with the next.
            last = min(max(shape.members[h]) for h in pair)
            for h in pair:
                found[h] = own[shape.partner[h]] / self._keys(last)
        return PlanModel(shape, self.rates, tuple(found), tuple(own), self.windows, fixed=False)

    @property
    def resources(self) -> float:
        """Probes per second."""
        return self.level * self.model.saturation.resources

    def _keys(self, join: int) -> int:
        return self.keys[0 if self.one_key else join]

    def streams(self, seconds: int) -> Mapping[str, pa.Table]:
        """Return the rows: columns ``p`` and ``n`` join with the stream before and after."""
        random = np.random.default_rng(self.seed)
        found = {}
        for place, rate in enumerate(self.rates):
            count = random.poisson(rate * seconds)
            times = _START + np.sort(random.integers(0, seconds * SECOND, count))
            before = random.integers(0, self._keys(max(place - 1, 0)), count)
            after = random.integers(0, self._keys(min(place, len(self.rates) - 2)), count)
            found[_NAMES[place]] = pa.table(
                {
                    "p": before,
                    "n": before if self.one_key else after,
                    "ts": pa.array(times).cast(pa.timestamp("us")),
                }
            )
        return found

    def query(self) -> str:
        """Return the join; one key is the same column of all streams."""
        sources = ", ".join(
            f"{name} [RANGE {round(1000 * window)} MILLISECONDS]"
            for name, window in zip(_NAMES, self.windows, strict=False)
        )
        column = "p" if self.one_key else "n"
        equal = " AND ".join(
            f"{one}.{column} = {other}.p" for one, other in pairwise(_NAMES[: len(self.rates)])
        )
        return f"SELECT A.ts AS a FROM {sources} WHERE {equal}"


def draw_plan(kind: str, random: np.random.Generator) -> WindowedPlan:
    """Draw a plan that produces neither next to nothing without limits nor too much to run."""
    while True:
        streams = int(random.integers(3 if kind == "linear" else 4, 7))
        tree = _tree(kind, random, 0, streams)
        alike = random.random() < 2 / 3
        windows = random.uniform(1.5, 6.0, 1 if alike else streams).round(1).tolist()
        keys = 10 ** random.uniform(0.6, 2.5, 1 if random.random() < 0.5 else streams - 1)
        plan = WindowedPlan(
            tree,
            tuple((10 ** random.uniform(1, 2, streams)).round(2).tolist()),
            tuple(windows * streams if alike else windows),
            tuple(max(2, round(number)) for number in keys.tolist()),
            float(random.uniform(*_LEVELS)),
            int(random.integers(1 << 31)),
        )
        least, most = _SATURATION
        if least <= plan.model.saturation.throughput <= most:
            return plan


def _tree(kind: str, random: np.random.Generator, first: int, end: int) -> Nested:
    if end - first == 1:
        return first
    cut = {"linear": end - 1, "bushy": (first + end) // 2}.get(kind)
    middle = int(random.integers(first + 1, end)) if cut is None else cut
    return _tree(kind, random, first, middle), _tree(kind, random, middle, end)


def tree_text(tree: Nested) -> str:
    """Return the setting ``tree``."""
    return (
        _NAMES[tree] if isinstance(tree, int) else f"({tree_text(tree[0])}, {tree_text(tree[1])})"
    )


def run_plan(plan: WindowedPlan, policy: str, seconds: int, begin: int) -> list[int]:
    """Return the results of each second of a run, without the first seconds."""
    engine = muntin.Engine(
        overload="adapt",
        tree=tree_text(plan.tree),
        policy=policy,
        resources=f"{plan.resources:.6f}",
    )
    streams = plan.streams(seconds)
    for name in streams:
        engine.stream(name, {"p": "bigint", "n": "bigint", "ts": "timestamp"}, time="ts")
    query = engine.query(plan.query(), name="q")
    instants = _START + SECOND * np.arange(seconds + 1)
    cuts = {
        name: np.searchsorted(rows.column("ts").cast(pa.int64()).to_numpy(), instants).tolist()
        for name, rows in streams.items()
    }
    made = []
    for second, instant in enumerate(instants[1:].tolist()):
        for name, rows in streams.items():
            start, end = cuts[name][second : second + 2]
            engine.push(name, rows.slice(start, end - start))
        engine.advance(instant)
        made.append(query.poll().num_rows)
    return made[begin:]


def compare(plan: WindowedPlan) -> dict[str, Figure]:
    """Return JAQPOT over the best other policy, as computed and as executed."""
    computed = {name: allocate(name, plan.model, plan.resources).throughput for name in POLICIES}
    begin = ceil(2 * max(plan.windows))
    least, most = _SECONDS
    seconds = begin + min(max(ceil(_RESULTS / max(computed["jaqpot"], 1.0)), least), most)
    runs = {name: run_plan(plan, name, seconds, begin) for name in POLICIES}
    executed = {name: mean(run) for name, run in runs.items()}
    row: dict[str, Figure] = {
        "plan": tree_text(plan.tree),
        "parameters": "one key" if plan.one_key else "a key per join",
        "rates": ", ".join(f"{rate:g}" for rate in plan.rates),
        "windows": ", ".join(f"{window:g}" for window in plan.windows),
        "keys": ", ".join(map(str, plan.keys)),
        "resources": round(plan.resources),
        "of saturation": round(plan.level, 3),
        "seconds": seconds,
    }
    for kind, made in (("computed", computed), ("executed", executed)):
        best = max((name for name in POLICIES if name != "jaqpot"), key=made.__getitem__)
        row |= {
            f"best other, {kind}": best,
            f"jaqpot, {kind}": round(made["jaqpot"], 2),
            f"over best, {kind}": round(ratio_of(made["jaqpot"], made[best]), 4),
        }
    row["standard error"] = round(ratio_error(runs["jaqpot"], runs[str(row[BEST])]), 4)
    return row


def ratio_of(made: float, best: float) -> float:
    """Return a ratio of results; 1 if there are none at all."""
    return made / best if best > 0 else 1.0 + (made > 0)


def ratio_error(made: Sequence[int], best: Sequence[int]) -> float:
    """Return the standard error of the ratio of two runs on the same rows, by a jackknife."""
    blocks = np.array(
        [[part.sum() for part in np.array_split(np.array(run), _BLOCKS)] for run in (made, best)]
    )
    without = blocks.sum(axis=1, keepdims=True) - blocks
    ratios = np.array([ratio_of(*pair) for pair in without.T.tolist()])
    return float(np.sqrt((_BLOCKS - 1) * ratios.var()))


def long_search(plan: WindowedPlan, random: np.random.Generator) -> float:
    """Return what JAQPOT is predicted to produce over what a search from many starts finds."""
    model, count = plan.model, plan.model.shape.count
    arrivals = np.array(model.saturation.arrivals)
    starts = [
        (arrivals * random.random(count) ** random.uniform(0, 4)).tolist()
        for _ in range(_LONG_SEARCH)
    ]
    best = model.throughput(best_budgets(model, plan.resources, starts))
    return allocate("jaqpot", model, plan.resources).throughput / best


def run_windows(kind: str, plans: int, seed: Sequence[int]) -> list[dict[str, Figure]]:
    """Compute and execute random plans of one kind of tree; one row for each."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(plans):
        plan = draw_plan(kind, random)
        row: dict[str, Figure] = {"kind": kind, "seed": seed[0], **compare(plan)}
        row["over long search"] = round(long_search(plan, random), 4)
        rows.append(row)
    return rows
