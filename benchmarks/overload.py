"""Overload handling: the experiments of [Mukherji11], on its models and executed by the engine.

Executed are joins of four Poisson streams, in a linear and a bushy tree, and of five groups of the
Intel lab's sensors. States of intermediate results hold a fixed number of them, as in the paper;
``overload-windows`` has plans where they are as full as they are fed.
Throughput is results per second of event time, resources are probes per second of event time: both
do not depend on the machine, so that parts run side by side, a process each.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from statistics import median

import numpy as np

from benchmarks.overload_executed import (
    QUICK,
    WHOLE,
    Found,
    Scale,
    run_levels,
    run_stale,
    run_switch,
)
from benchmarks.overload_lab import LAB_ATTRIBUTES, run_lab
from benchmarks.overload_model import FACTORS, TABLE_3, measure_leaders, run_models
from benchmarks.overload_plans import run_plans
from benchmarks.overload_workload import TREES
from benchmarks.report import Claim, Figure, Progress, Report
from muntin.adapt.model import PlanModel
from muntin.adapt.policies import allocate
from muntin.testing.plan_models import Nested, tree_shape, with_freshness


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
    """Return the parts to run, in the order of the report."""
    parts: dict[str, Callable[[], Found]] = {"models": partial(_models, scale)}
    for shape in TREES:
        parts[f"{shape} plan, selectivities switched"] = partial(run_switch, scale, shape)
        parts[f"{shape} plan, many matches, selectivities switched"] = partial(
            run_switch, scale, shape, many=True
        )
        parts[f"{shape} plan, levels of resources"] = partial(run_levels, scale, shape)
    for shape in TREES:
        parts[f"{scale.plans} random {shape} plans"] = partial(_plans, scale, shape)
    for by in LAB_ATTRIBUTES:
        parts[f"readings of a lab by {by}"] = partial(_lab, scale, by)
    return {**parts, "stale results": partial(run_stale, scale)}


def _side_by_side(parts: Mapping[str, Callable[[], Found]], progress: Progress) -> list[Found]:
    """Run the parts in parallel, longest (last) first; return their findings in order."""
    workers = min(os.cpu_count() or 1, len(parts))
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        started = {name: pool.submit(part) for name, part in reversed(list(parts.items()))}
        names = {future: name for name, future in started.items()}
        progress(f"{len(parts)} parts, {workers} at a time")
        for count, future in enumerate(as_completed(names), 1):
            progress(f"{count} of {len(parts)} done: {names[future]}")
        return [started[name].result() for name in parts]


def _models(scale: Scale) -> Found:
    found = Found(*run_models(scale.models))
    found.rows += measure_leaders(scale.models)
    return found


def _plans(scale: Scale, shape: str) -> Found:
    return Found(*run_plans(shape, scale.plans, scale.levels, FACTORS[0]))


def _lab(scale: Scale, by: str) -> Found:
    rows, plots = run_lab(scale.lab_rows, by, scale.policies)
    return Found(rows, [], plots)


def summary(rows: Sequence[Mapping[str, Figure]]) -> list[dict[str, Figure]]:
    """Return the figures about JAQPOT, one per row; the details have all policies and levels."""
    short: list[dict[str, Figure]] = []
    for row in rows:
        part, policy = str(row["part"]), row.get("policy")
        chosen = policy == "jaqpot" and part.startswith(("switched", "stale"))
        if (
            "ratio" not in row
            and not chosen
            and not part.startswith(
                ("resources for", "milliseconds", "freshness could", "leading heuristic")
            )
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


def _overhead(scale: Scale, progress: Progress) -> Found:
    """Measure the time of an analysis; the worst of the models of Table 3 counts."""
    progress("overhead of an analysis")
    random = np.random.default_rng(13)
    found = Found()
    slowest = 0.0
    for streams in (4, 5, 10):
        shape = tree_shape(_left_deep(streams))
        models = [
            with_freshness(TABLE_3.draw(shape, random), factor=3.0) for _ in range(scale.analyses)
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
