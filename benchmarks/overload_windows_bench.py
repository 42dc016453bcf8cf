"""``python -m benchmarks overload-windows``: JAQPOT on random plans without ``state_rows``.

Results are counted per probe, so figures do not depend on the machine, and parts run side by side.
The seed is drawn at run time and reported; ``MUNTIN_OVERLOAD_SEED`` repeats a run, and
``MUNTIN_OVERLOAD_PLANS`` sets the number of plans.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from math import ceil
from statistics import mean

import numpy as np

from benchmarks.overload_windows import KINDS, run_windows
from benchmarks.report import Claim, Figure, Progress, Report

_PLANS = 201
_QUICK_PLANS = 3
_PART = 2
"""Plans of one task."""
_LEAST = 0.95


def bench_overload_windows(progress: Progress, *, quick: bool = False) -> Report:
    """Compute and run all plans."""
    plans = int(os.environ.get("MUNTIN_OVERLOAD_PLANS", "") or (_QUICK_PLANS if quick else _PLANS))
    seed = int(os.environ.get("MUNTIN_OVERLOAD_SEED", "") or secrets.randbits(32))
    rows: list[dict[str, Figure]] = []
    tasks = [
        (kind, min(_PART, each - first), (seed, number, first))
        for number, kind in enumerate(KINDS)
        for each in [ceil(plans / len(KINDS))]
        for first in range(0, each, _PART)
    ]
    workers = min(os.cpu_count() or 1, len(tasks))
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        started = [pool.submit(run_windows, *task) for task in tasks]
        for count, _ in enumerate(as_completed(started), 1):
            progress(f"{count} of {len(tasks)} parts")
        for future in started:
            rows += future.result()
    summary, claims = judge_windows(rows)
    question = "Does JAQPOT produce more than other policies where probes fill the states?"
    return Report("overload-windows", question, summary, claims, details=rows)


def judge_windows(
    plans: Sequence[Mapping[str, Figure]],
) -> tuple[list[dict[str, Figure]], list[Claim]]:
    """Return the ratios of all plans in short, by kind and by key, and what they are to show."""
    groups = {kind: [row for row in plans if row["kind"] == kind] for kind in KINDS}
    for key in ("one key", "a key per join"):
        groups[key] = [row for row in plans if row["parameters"] == key]
    groups = {name: group for name, group in {"all": list(plans), **groups}.items() if group}
    summary: list[dict[str, Figure]] = []
    for name, group in groups.items():
        for of in ("over best, computed", "over best, executed", "over long search"):
            row: dict[str, Figure] = {"plans": name, "number": len(group)}
            row |= {"seed": group[0]["seed"], "jaqpot": of}
            summary.append(row | _spread(group, of))
    computed, executed, searched = (
        [float(row[of]) for row in plans]
        for of in ("over best, computed", "over best, executed", "over long search")
    )
    text = f"{len(plans)} random plans: jaqpot over the best other policy,"
    return summary, [
        Claim(f"{text} computed, least", round(min(computed), 4), 1.0, "at least"),
        Claim(f"{text} executed, least", round(min(executed), 4), _LEAST, "at least"),
        Claim(f"{text} executed, mean", round(mean(executed), 4), 1.1, "at least"),
        Claim(
            "jaqpot over a long search, computed, least", round(min(searched), 4), 0.9, "at least"
        ),
    ]


def _spread(group: Sequence[Mapping[str, Figure]], of: str) -> dict[str, Figure]:
    """Return mean, least and quantiles; how many are below the bound, and clearly below it.

    Clearly is by two standard errors, of executed ratios.
    """
    ratios = [float(row[of]) for row in group]
    quantiles = {f"{share:.0%}": share for share in (0.05, 0.25, 0.5, 0.75, 0.95)}
    errors = [float(row["standard error"]) if "executed" in of else 0.0 for row in group]
    below = [
        ratio + 2 * error < _LEAST
        for ratio, error in zip(ratios, errors, strict=True)
    ]  # fmt: skip
    return {
        "mean": round(mean(ratios), 4),
        "least": round(min(ratios), 4),
        **{name: round(float(np.quantile(ratios, share)), 4) for name, share in quantiles.items()},
        f"below {_LEAST}": sum(ratio < _LEAST for ratio in ratios),
        "clearly below": sum(below),
        "median error": round(float(np.median(errors)), 4),
    }
