"""The parts of :mod:`benchmarks.overload` that the engine executes: four streams in two trees.

Selectivities are switched, resources are varied, and stale results are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import mean

from benchmarks.optimum import optimum
from benchmarks.overload_lab import cumulated, feasible_rows
from benchmarks.overload_model import FACTORS, HEURISTICS, needed_refresh
from benchmarks.overload_run import Run, Setup, run
from benchmarks.overload_workload import LAB_TREE, TREES, Chain, Lab
from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure
from muntin.adapt.policies import POLICIES, allocate

_SELECTIVITIES = {
    "linear": ((0.01, 0.01, 0.05), (0.03, 0.03, 0.05), (0.03, 0.03, 0.1)),
    # The joins of a chain are AB, BC, CD; those of the bushy tree AB, CD and BC at the root.
    "bushy": ((0.01, 0.05, 0.01), (0.03, 0.05, 0.03), (0.03, 0.1, 0.03)),
}
"""SEL1, SEL2 and SEL3 of the paper, by column of the chain."""
_STATE_ROWS = 15
_ADAPTED = 0.9
MANY = "5 to 50 matches per probe"
STALE_LAB = "the readings of the stale results"
_SHOWN = ("jaqpot", "grepp", *HEURISTICS)


@dataclass(frozen=True)
class Scale:
    """The scale of a run.

    Seconds of streams, levels of resources, rows of the lab, comparisons, random plans per shape.
    """

    seconds: int
    levels: tuple[float, ...]
    lab_rows: int
    policies: tuple[str, ...]
    plans: int = 8
    models: int = 100
    """Plans that are computed."""
    analyses: int = 30
    """Plans whose analysis is timed."""
    many: int = 500
    """Rows of a window, and of a state, where a probe has as many matches as in the paper."""
    filled: int = 5
    """Seconds until windows are full and the first decisions made; they are not counted."""

    def switches(self) -> tuple[int, int]:
        """When selectivities change: at 3 and 7 of 10 minutes in the paper."""
        return 3 * self.seconds // 10, 7 * self.seconds // 10


QUICK = Scale(
    20, (0.3,), 2_000, ("jaqpot", "equal_hj"), plans=1, models=2, analyses=5, many=200, filled=2
)
WHOLE = Scale(60, (0.1, 0.2, 0.4, 0.6, 0.8, 1.0), 20_000, tuple(POLICIES))


@dataclass
class Found:
    """What a part of the benchmark reports, as it grows."""

    rows: list[dict[str, Figure]] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)


def run_switch(scale: Scale, shape: str, *, many: bool = False) -> Found:
    """Change selectivities at run time (Figure 6).

    Resources are 30 % of those that saturation needs at first. With ``many`` windows and states are
    so large that a probe has 5 to 50 matches, within the range of the paper's Table 3.
    """
    first, second = scale.switches()
    phases = tuple(zip((0, first, second), _SELECTIVITIES[shape], strict=True))
    load = Chain(scale.seconds, phases, seed=22)
    base = Setup(TREES[shape], state_rows=_STATE_ROWS)
    if many:
        load = replace(load, windows=(scale.many,) * 4)
        base = replace(base, state_rows=scale.many)
    full = run(load, base)
    setup = replace(base, resources=0.3 * full.probes(scale.filled, first))
    runs = {policy: run(load, replace(setup, policy=policy)) for policy in scale.policies}
    settled = {
        "SEL1": (scale.filled, first),
        "SEL2": (first + scale.filled, second),
        "SEL3": (second + scale.filled, scale.seconds),
    }
    found = Found()
    for policy, ran in runs.items():
        row: dict[str, Figure] = {
            "part": "switched selectivities",
            "plan": shape,
            **({"parameters": MANY} if many else {}),
            "policy": policy,
            "results": ran.results(),
        }
        for name, (begin, end) in settled.items():
            row[f"{name} results/s"] = round(ran.results(begin, end) / max(end - begin, 1), 1)
            row |= dict(
                zip(
                    (f"{name} of optimum", f"{name} of fresh"),
                    _rounded(over_optimum(ran, full, begin, end)),
                    strict=True,
                )
            )
        found.rows.append(row)
    jaqpot = runs["jaqpot"]
    best = max(runs[policy].results() for policy in HEURISTICS if policy in runs)
    waits = [
        _periods_until_adapted(jaqpot, full, at, settled[name])
        for at, name in ((first, "SEL2"), (second, "SEL3"))
    ]
    plan, ratio = (
        f"{shape} plan, {MANY}, selectivities switched"
        if many
        else f"{shape} plan, executed, selectivities switched",
        round(jaqpot.results() / max(best, 1), 3),
    )
    found.claims += [
        Claim(
            f"{plan}: monitoring periods from a switch until probe budgets fit, most",
            max(waits),
            2.0,
        ),
        Claim(f"{plan}: results of jaqpot over the best heuristic's", ratio, 1.0, "at least"),
        Claim(
            f"{plan}: stale results of jaqpot", sum(second.stale for second in jaqpot.seconds), 0.0
        ),
    ]
    series = {policy: cumulated(ran) for policy, ran in runs.items() if policy in _SHOWN}
    found.plots.append(
        Plot(
            f"overload-switched-{shape}{'-many' if many else ''}",
            f"Selectivities switched, {shape} plan{f', {MANY}' if many else ''}",
            "seconds",
            "results so far",
            series,
        )
    )
    return found


def run_levels(scale: Scale, shape: str) -> Found:
    """Run at several levels of resources (Figure 7), with the first and last selectivities."""
    found = Found()
    of_optimum: list[float] = []
    for number in (1, 3):
        load = Chain(
            max(scale.seconds // 2, 12), ((0, _SELECTIVITIES[shape][number - 1]),), seed=21
        )
        base = Setup(TREES[shape], state_rows=_STATE_ROWS)
        full = run(load, base)
        begin, end = scale.filled, load.seconds
        shares: dict[str, list[tuple[float | str, float]]] = {
            policy: [] for policy in scale.policies
        }
        optima: list[tuple[float, float]] = []
        for level in scale.levels:
            for policy in scale.policies:
                ran = run(
                    load, replace(base, policy=policy, resources=level * full.probes(begin, end))
                )
                shares[policy].append((level, ran.results(begin, end) / full.results(begin, end)))
                if policy == "jaqpot":
                    optima.append(over_optimum(ran, full, begin, end))
        of_optimum += [fresh for _, fresh in optima]
        found.rows += _level_rows(scale, shape, f"SEL{number}", shares, optima)
        series = {
            policy: [(100 * float(level), 100 * share) for level, share in points]
            for policy, points in shares.items()
        }
        title, name = (
            f"Throughput of a {shape} plan, SEL{number}, executed",
            f"overload-executed-{shape}-sel{number}",
        )
        found.plots.append(
            Plot(name, title, "resources, % of saturation", "throughput, % of saturation", series)
        )
    text = (
        f"{shape} plan, executed: throughput of jaqpot over the optimum that keeps freshness, for "
        "what was measured, mean of all levels"
    )
    found.claims.append(Claim(text, round(mean(of_optimum), 4), 0.95, "at least"))
    return found


def _level_rows(
    scale: Scale,
    shape: str,
    name: str,
    shares: Mapping[str, list[tuple[float | str, float]]],
    optima: list[tuple[float, float]],
) -> list[dict[str, Figure]]:
    base: dict[str, Figure] = {"part": "executed", "plan": shape, "parameters": name}
    rows = [
        base | {"policy": policy} | {f"{level:.0%}": round(share, 4) for level, share in points}
        for policy, points in shares.items()
    ]
    for place, kind in enumerate(("optimum for what was measured", "optimum that keeps freshness")):
        figures: dict[str, Figure] = {
            f"{level:.0%}": round(both[place], 4)
            for level, both in zip(scale.levels, optima, strict=True)
        }
        rows.append(base | {"policy": f"jaqpot over the {kind}"} | figures)
    limited = [place for place, level in enumerate(scale.levels) if level < 1]
    best = [
        max(*(shares[policy][place][1] for policy in HEURISTICS if policy in shares), 1e-9)
        for place in limited
    ]
    ratio = mean(
        shares["jaqpot"][place][1] / most for place, most in zip(limited, best, strict=True)
    )
    return [*rows, base | {"policy": "jaqpot over best heuristic, mean", "ratio": round(ratio, 3)}]


def run_stale(scale: Scale) -> Found:
    """Count stale results where they are not suppressed (Figure 9).

    The runs are longer than any freshness.
    """
    loads: Mapping[str, tuple[Chain | Lab, str, int]] = {
        "linear": (
            Chain(max(scale.seconds // 2, 12), ((0, _SELECTIVITIES["linear"][0]),), seed=3),
            TREES["linear"],
            _STATE_ROWS,
        ),
        "bushy": (
            Chain(max(scale.seconds // 2, 12), ((0, _SELECTIVITIES["bushy"][0]),), seed=3),
            TREES["bushy"],
            _STATE_ROWS,
        ),
        "five groups": (Lab(3 * scale.lab_rows), LAB_TREE, 1_000),
    }
    found = Found()
    of_jaqpot = 0
    for plan, (load, tree, state_rows) in loads.items():
        for policy in (policy for policy in scale.policies if policy in _SHOWN):
            row: dict[str, Figure] = {
                "part": "stale results, counted",
                "plan": plan,
                "policy": policy,
            }
            for factor in FACTORS:
                setup = Setup(tree, policy, 300.0, factor, state_rows, measure=True)
                ran = run(load, setup)
                row |= {
                    f"{factor:g} windows": round(ran.stale_share(), 4),
                    f"results, {factor:g} windows": ran.results(),
                }
                enforced = run(load, replace(setup, measure=False)) if policy == "jaqpot" else None
                of_jaqpot += sum(second.stale for second in enforced.seconds) if enforced else 0
            found.rows.append(row)
    lab = loads["five groups"][0]
    full = run(lab, Setup(LAB_TREE, state_rows=1_000, freshness=3.0))
    found.rows += feasible_rows(STALE_LAB, full, 0)
    found.claims.append(
        Claim(
            "stale results of jaqpot with freshness enforced, at any freshness and plan, by the "
            "engine's count",
            of_jaqpot,
            0.0,
        )
    )
    return found


def over_optimum(ran: Run, full: Run, begin: int, end: int) -> tuple[float, float]:
    """Return the results over the optimum for the same statistics, without and with freshness.

    What a cycle leaves of its resources may be used in the next. So some seconds can spend more
    than their own, saved before them; the optimum gets that too.
    """
    model = ran.model(begin, end, full.model(begin, end))
    resources = max(ran.setup.resources or float("inf"), ran.probes(begin, end))
    made = ran.results(begin, end) / max(end - begin, 1)
    best = optimum(model, resources)
    feasible = allocate("jaqpot", model, resources).infeasible is None
    fresh = optimum(model, resources, needed_refresh(model)) if feasible else best
    return (made / best, made / fresh) if fresh > 0 else (1.0, 1.0)


def _periods_until_adapted(ran: Run, full: Run, switch: int, settled: tuple[int, int]) -> float:
    """Return the cycles from a switch until probe budgets have adapted.

    They have when, on the statistics measured later, they give at least 90 % of the throughput of
    the final budgets.
    """
    model = ran.model(*settled, full.model(*settled))
    wanted = _ADAPTED * model.throughput(ran.seconds[settled[1] - 1].budgets)
    for cycles, second in enumerate(ran.seconds[switch : settled[1]], 1):
        if second.budgets and model.throughput(second.budgets) >= wanted:
            return float(cycles)
    return float("inf")


def _rounded(numbers: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(round(number, 3) for number in numbers)
