"""Overload handling: the experiments of [Mukherji11], on its models and executed by the engine.

Executed are joins of four Poisson streams, in a linear and a bushy tree, and of five groups of the
Intel lab's sensors. States of intermediate results hold a fixed number of them, as in the paper.
Throughput is results per second of event time, resources are probes per second of event time: both
do not depend on the machine, so that parts run side by side, a process each.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import mean, median

import numpy as np

from benchmarks.optimum import optimum
from benchmarks.overload_lab import LAB_ATTRIBUTES, cumulated, run_lab
from benchmarks.overload_model import FACTORS, HEURISTICS, TABLE_3, needed_refresh, run_models
from benchmarks.overload_plans import run_plans
from benchmarks.overload_run import Run, Setup, run
from benchmarks.overload_workload import LAB_TREE, TREES, Chain, Lab
from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure, Progress, Report
from muntin.adapt import POLICIES, PlanModel, TreeShape, allocate
from muntin.adapt.shape import Nested

_SELECTIVITIES = {
    "linear": ((0.01, 0.01, 0.05), (0.03, 0.03, 0.05), (0.03, 0.03, 0.1)),
    # The joins of a chain are AB, BC, CD; those of the bushy tree AB, CD and BC at the root.
    "bushy": ((0.01, 0.05, 0.01), (0.03, 0.05, 0.03), (0.03, 0.1, 0.03)),
}
"""SEL1, SEL2 and SEL3 of the paper, by column of the chain."""
_STATE_ROWS = 15
_ADAPTED = 0.9
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
    filled: int = 5
    """Seconds until windows are full and the first decisions made; they are not counted."""

    def switches(self) -> tuple[int, int]:
        """When selectivities change: at 3 and 7 of 10 minutes in the paper."""
        return 3 * self.seconds // 10, 7 * self.seconds // 10


QUICK = Scale(20, (0.3,), 2_000, ("jaqpot", "equal_hj"), plans=1, models=2, analyses=5, filled=2)
WHOLE = Scale(60, (0.1, 0.2, 0.4, 0.6, 0.8, 1.0), 20_000, tuple(POLICIES))


@dataclass
class Found:
    """What a part of the benchmark reports, as it grows."""

    rows: list[dict[str, Figure]] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)


def bench_overload(progress: Progress, *, quick: bool = False) -> Report:
    """Compute and run all parts.

    The time of an analysis is measured last, when nothing else runs.
    """
    scale = QUICK if quick else WHOLE
    found = Found()
    for part in [*_side_by_side(_parts(scale), progress), _overhead(scale, progress)]:
        found.rows, found.claims, found.plots = (
            found.rows + part.rows,
            found.claims + part.claims,
            found.plots + part.plots,
        )
    question = "What do joins produce under overload, by policy, and is it fresh?"
    return Report(
        "overload",
        question,
        summary(found.rows),
        found.claims,
        plots=found.plots,
        details=found.rows,
    )


def _parts(scale: Scale) -> dict[str, Callable[[], Found]]:
    """Return what is run, in the order of the report."""
    parts: dict[str, Callable[[], Found]] = {"models": partial(_models, scale)}
    for shape in TREES:
        parts[f"{shape} plan, selectivities switched"] = partial(_switch, scale, shape)
        parts[f"{shape} plan, levels of resources"] = partial(_levels, scale, shape)
    for shape in TREES:
        parts[f"{scale.plans} random {shape} plans"] = partial(_plans, scale, shape)
    for by in LAB_ATTRIBUTES:
        parts[f"readings of a lab by {by}"] = partial(_lab, scale, by)
    return {**parts, "stale results": partial(_stale, scale)}


def _side_by_side(parts: Mapping[str, Callable[[], Found]], progress: Progress) -> list[Found]:
    """Return what the parts report, in their order; the last are the longest, and begin first."""
    workers = min(os.cpu_count() or 1, len(parts))
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        started = {name: pool.submit(part) for name, part in reversed(list(parts.items()))}
        names = {future: name for name, future in started.items()}
        progress(f"{len(parts)} parts, {workers} at a time")
        for count, future in enumerate(as_completed(names), 1):
            progress(f"{count} of {len(parts)} done: {names[future]}")
        return [started[name].result() for name in parts]


def _models(scale: Scale) -> Found:
    return Found(*run_models(scale.models))


def _plans(scale: Scale, shape: str) -> Found:
    return Found(*run_plans(shape, scale.plans, scale.levels, FACTORS[0]))


def _lab(scale: Scale, by: str) -> Found:
    rows, plots = run_lab(scale.lab_rows, by, scale.policies)
    return Found(rows, [], plots)


def summary(rows: Sequence[Mapping[str, Figure]]) -> list[dict[str, Figure]]:
    """Return the figures about JAQPOT, one a row; all policies and levels are in the details."""
    short: list[dict[str, Figure]] = []
    for row in rows:
        part, policy = str(row["part"]), row.get("policy")
        chosen = policy == "jaqpot" and part.startswith(("switched", "stale"))
        if (
            "ratio" not in row
            and not chosen
            and not part.startswith(("resources for", "milliseconds", "freshness could"))
        ):
            continue
        told = {
            name: row.get(name, "")
            for name in ("part", "plan", "parameters", "freshness", "resources")
        }
        named = {*told, "policy"}
        short += [
            told | {"figure": name, "value": value}
            for name, value in row.items()
            if name not in named
        ]
    return short


def _switch(scale: Scale, shape: str) -> Found:
    """Change selectivities at run time (Figure 6).

    Resources are 30 % of those that saturation needs at first.
    """
    first, second = scale.switches()
    phases = tuple(zip((0, first, second), _SELECTIVITIES[shape], strict=True))
    load = Chain(scale.seconds, phases, seed=22)
    base = Setup(TREES[shape], state_rows=_STATE_ROWS)
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
            "policy": policy,
            "results": ran.results(),
        }
        for name, (begin, end) in settled.items():
            row[f"{name} results/s"] = round(ran.results(begin, end) / max(end - begin, 1), 1)
            row |= dict(
                zip(
                    (f"{name} of optimum", f"{name} of fresh"),
                    _rounded(_of_optimum(ran, full, begin, end)),
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
        f"{shape} plan, executed, selectivities switched",
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
            f"overload-switched-{shape}",
            f"Selectivities switched, {shape} plan",
            "seconds",
            "results so far",
            series,
        )
    )
    return found


def _levels(scale: Scale, shape: str) -> Found:
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
                    optima.append(_of_optimum(ran, full, begin, end))
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


def _stale(scale: Scale) -> Found:
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
    found.claims.append(
        Claim(
            "stale results of jaqpot with freshness enforced, at any freshness and plan, by the "
            "engine's count",
            of_jaqpot,
            0.0,
        )
    )
    return found


def _overhead(scale: Scale, progress: Progress) -> Found:
    """Return what an analysis costs; the worst of the models of Table 3 counts."""
    progress("overhead of an analysis")
    random = np.random.default_rng(13)
    found = Found()
    slowest = 0.0
    for streams in (4, 5, 10):
        shape = TreeShape.of(_left_deep(streams))
        models = [
            TABLE_3.draw(shape, random).with_freshness(factor=3.0) for _ in range(scale.analyses)
        ]
        row: dict[str, Figure] = {
            "part": "milliseconds of an analysis",
            "plan": f"linear, {streams} streams",
        }
        for policy in scale.policies:
            row[policy] = round(1000 * median(_timed(policy, model) for model in models), 3)
        slowest = max(slowest, *(float(row[policy]) for policy in scale.policies))
        found.rows.append(row)
    found.claims.append(
        Claim("milliseconds of an analysis, slowest policy, up to ten streams", slowest, 50.0)
    )
    return found


def _timed(policy: str, model: PlanModel) -> float:
    begin = time.process_time()
    allocate(policy, model, 0.3 * model.saturation.resources)
    return time.process_time() - begin


def _left_deep(streams: int) -> Nested:
    tree: Nested = 0
    for leaf in range(1, streams):
        tree = (tree, leaf)
    return tree


def _of_optimum(ran: Run, full: Run, begin: int, end: int) -> tuple[float, float]:
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
