"""The part of ``python -m benchmarks overload`` with sensor data [Mukherji11, Figure 8].

The streams are five groups of sensors of the Intel lab.

Beside the throughput of all policies: how often freshness could be kept at all, with the statistics
of a run without limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from benchmarks.overload_model import FACTORS, HEURISTICS
from benchmarks.overload_run import Run, Setup, run
from benchmarks.overload_workload import LAB_TREE, Lab
from benchmarks.plots import Plot
from benchmarks.report import Figure
from muntin.adapt.freshness import RefreshProblem

LAB_ATTRIBUTES = ("humidity", "epoch")
_RESOURCES = (300, 600, 900)
_SHOWN = ("jaqpot", "grepp", *HEURISTICS)
_PERIOD = 4
"""Seconds over which statistics are averaged, as the monitor does."""


def run_lab(
    rows: int, by: str, policies: Sequence[str]
) -> tuple[list[dict[str, Figure]], list[Plot]]:
    """Return all policies under the paper's three limits, joined by an attribute."""
    found: list[dict[str, Figure]] = []
    plots: list[Plot] = []
    load = Lab(rows, by)
    data = f"readings of the Intel lab by {by}" if load.real else f"made-up readings by {by}"
    base = Setup(LAB_TREE, state_rows=load.window, freshness=3.0)
    full = run(load, base)
    begin = len(full.seconds) // 5
    for resources in _RESOURCES:
        runs = {
            policy: run(load, replace(base, policy=policy, resources=float(resources)))
            for policy in policies
        }
        found += _rows(data, resources, runs, full, begin)
        series = {policy: cumulated(ran) for policy, ran in runs.items() if policy in _SHOWN}
        title = f"{data.capitalize()}, {resources} probes per second"
        plots.append(
            Plot(f"overload-lab-{by}-{resources}", title, "seconds", "results so far", series)
        )
    found.append(
        {
            "part": data,
            "plan": "five groups",
            "policy": "saturation",
            "resources": round(full.probes(begin)),
            "results": full.results(begin),
        }
    )
    return found + feasible_rows(data, full, begin), plots


def _rows(
    data: str, resources: int, runs: Mapping[str, Run], full: Run, begin: int
) -> list[dict[str, Figure]]:
    base: dict[str, Figure] = {"part": data, "plan": "five groups", "resources": resources}
    rows = []
    for policy, ran in runs.items():
        made = ran.results(begin)
        share = round(made / max(full.results(begin), 1), 4)
        rows.append(
            base
            | {
                "policy": policy,
                "results": made,
                "share of saturation": share,
                "stale": round(ran.stale_share(), 4),
            }
        )
    best = max(runs[policy].results(begin) for policy in HEURISTICS if policy in runs)
    return [
        *rows,
        base
        | {
            "policy": "jaqpot over best heuristic",
            "ratio": round(runs["jaqpot"].results(begin) / max(best, 1), 3),
        },
    ]


def feasible_rows(data: str, full: Run, begin: int) -> list[dict[str, Figure]]:
    """Return the share of seconds in which Lemma 1 can hold.

    Once with resources for all arrivals, once with the paper's.
    """
    rows: list[dict[str, Figure]] = []
    for factor in FACTORS:
        ran = replace(full, setup=replace(full.setup, freshness=factor))
        costs = [_least(ran, second) for second in range(begin, len(ran.seconds) - _PERIOD)]
        within = {
            limit: sum(cost <= limit for cost in costs) / max(len(costs), 1)
            for limit in (*_RESOURCES, 1e15)
        }
        names = [*(f"with {limit} probes/s" for limit in _RESOURCES), "with any"]
        row: dict[str, Figure] = {
            "part": "freshness could be kept",
            "plan": f"five groups, {data}",
            "freshness": f"{factor:g} windows",
        }
        row |= {name: round(share, 3) for name, share in zip(names, within.values(), strict=True)}
        possible = [cost for cost in costs if cost < float("inf")]
        rows.append(
            row | {"probes/s it takes, median": round(median(possible)) if possible else "never"}
        )
    return rows


def _least(ran: Run, second: int) -> float:
    """Return the least resources that keep freshness under measured statistics, or infinity."""
    task = RefreshProblem.of(ran.model(second, second + _PERIOD))
    shares = None if task is None else task.least_cost()
    if task is None:
        return 0.0
    return float("inf") if shares is None else float(task.costs @ shares)


def cumulated(ran: Run) -> list[tuple[float | str, float]]:
    """Return the results up to about twenty moments of a run."""
    total, points = 0.0, []
    for second, found in enumerate(ran.seconds):
        total += found.results
        points.append((float(second + 1), total))
    return list(points[:: max(len(points) // 20, 1)])
