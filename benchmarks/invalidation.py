"""Nested loops against hashing, bucket counts, and invalidation strategies: [Kostowski06].

The figures are Figures 4 to 8 of the paper; :mod:`benchmarks.invalidation_runs` times the cases.
Beside every time is the prediction of the cost model: the comparisons and checks of section 3,
multiplied by their unit costs on this machine. Unit costs are fitted to the runs of Figures 4 and 7
at two rates; all other times are predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.invalidation_found import (
    STRATEGIES,
    Found,
    Samples,
    Sweep,
    bare,
    claims_of,
    plots_of,
    steady_rows,
    whole,
)
from benchmarks.invalidation_runs import WINDOW, Case, Measured, fit_costs, measure, sample_held
from benchmarks.report import Figure, Progress, Report


@dataclass(frozen=True)
class Scale:
    """What is varied.

    ``slow`` is the rate of the slower stream, ``ratios`` what the other's is over it, ``fitted``
    those of them at which unit costs are fitted; ``equal`` the rate of both where buckets are
    varied, for each number of ``values``; ``sampled`` the rates where rows held are. All is run
    ``repeats`` times, strategies ``often``.
    """

    slow: int
    ratios: Sequence[int]
    fitted: Sequence[int]
    equal: int
    buckets: Sequence[int]
    values: Sequence[int]
    sampled: tuple[int, int]
    repeats: int
    often: int


FULL = Scale(
    slow=50,
    ratios=(1, 2, 5, 10, 20, 50, 100),
    fitted=(1, 10),
    equal=200,
    buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000),
    values=(100, 10, 1000),
    sampled=(10, 1000),
    repeats=3,
    often=9,
)
QUICK = replace(
    FULL, ratios=(1, 10), buckets=(1, 10, 100, 1000), values=(100, 10), equal=40, repeats=1, often=1
)


def measure_all(scale: Scale, progress: Progress) -> Found:
    """Return all figures. What takes milliseconds, the four strategies, is run more often."""
    rates: list[Measured] = []
    strategies: list[Measured] = []
    for ratio in scale.ratios:
        progress(f"{scale.slow} and {ratio * scale.slow:,} rows per second")
        case = Case((scale.slow, ratio * scale.slow))
        hashed = measure([replace(case, strategy=strategy) for strategy in STRATEGIES], scale.often)
        strategies += hashed
        rates += [
            *measure([replace(case, buckets=1)], scale.repeats),
            *(one for one in hashed if one.case == case),
        ]
    buckets = {}
    for values in scale.values:
        progress(f"1 to {scale.buckets[-1]:,} buckets for {values:,} values")
        buckets[values] = measure(
            [Case((scale.equal, scale.equal), values, number) for number in scale.buckets],
            scale.repeats,
        )
    progress("rows held")
    held = {
        strategy: sample_held(Case(scale.sampled, strategy=strategy)) for strategy in STRATEGIES
    }
    known = {scale.slow * ratio for ratio in scale.fitted}
    return Found(
        rates,
        buckets,
        strategies,
        held,
        fit_costs([one for one in [*rates, *strategies] if one.case.rates[1] in known]),
    )


def bench_invalidation(progress: Progress, *, quick: bool = False) -> Report:
    """Measure all figures."""
    scale = QUICK if quick else FULL
    found = measure_all(scale, progress)
    first, *others = found.buckets.values()
    sweeps: list[tuple[str, Sweep]] = [
        ("4: rates", found.rates),
        ("5: buckets", first),
        *(("6: selectivity", sweep) for sweep in others),
        ("7: strategies", found.strategies),
    ]
    held = [
        (Case(scale.sampled, strategy=strategy), samples)
        for strategy, samples in found.held.items()
    ]
    return Report(
        "invalidation",
        "What do buckets, and ways to let old rows go, cost and save in a join of two windows "
        "[Kostowski06]?",
        [
            *(_row(figure, one, found) for figure, sweep in sweeps for one in sweep),
            *(_held_row(*one) for one in held),
        ],
        claims_of(found),
        plots=plots_of(found),
        details=[
            {"unit costs, ns": {name: round(cost, 2) for name, cost in vars(found.costs).items()}},
            *(
                {"strategy": STRATEGIES[case.strategy], "second, rows held, rows inside": samples}
                for case, samples in held
            ),
        ],
    )


def _row(figure: str, one: Measured, found: Found) -> dict[str, Figure]:
    predicted = one.case.predicted
    return {
        "figure": figure,
        **_what(one.case),
        "ms": _ms(whole(one)),
        "least": _ms(min(one.seconds)),
        "most": _ms(max(one.seconds)),
        "predicted ms": _ms(found.predicted(one, bare=False)),
        "ms without results": _ms(bare(one)),
        "least without": _ms(min(one.bare)),
        "most without": _ms(max(one.bare)),
        "predicted without": _ms(found.predicted(one, bare=True)),
        "comparisons": one.counters["comparisons"],
        "predicted comparisons": round(predicted.comparisons),
        "checks": one.counters["expiry_checks"],
        "predicted checks": round(predicted.checks),
        "results": one.counters["matches"],
        "rows held": "",
        "predicted rows held": "",
    }


def _held_row(case: Case, samples: Samples) -> dict[str, Figure]:
    timed = (
        "ms",
        "least",
        "most",
        "predicted ms",
        "ms without results",
        "least without",
        "most without",
        "predicted without",
    )
    counted = ("comparisons", "predicted comparisons", "checks", "predicted checks", "results")
    return {
        "figure": "8: memory",
        **_what(case),
        **dict.fromkeys((*timed, *counted), ""),
        "rows held": round(steady_rows(samples)),
        "predicted rows held": round(case.rates[1] * WINDOW + case.predicted_stale),
    }


def _what(case: Case) -> dict[str, Figure]:
    return {
        "rows/s": f"{case.rates[0]:,}, {case.rates[1]:,}",
        "values": case.values,
        "join": case.join,
        "buckets": case.buckets,
        "invalidation": STRATEGIES[case.strategy],
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1e3, 1)
