"""How often to evaluate a join, and how to allocate buckets to windows: [Golab03, Figure 4].

Rows are made as in the paper's section 6.1, the windows are filled first, and rows over seconds is
the highest input rate of all streams together. *Intervals*: four equal streams, joined and expired
once every interval, by nested loops and with 2, 10 and 30 buckets; at the paper's rates, and with
ten times the rows, values and buckets, since four rows per unit of time are next to nothing here.
*Allocation*: one stream is fifty times as fast as the three others; buckets are given to all alike,
or one, five or ten to each slow window and the rest to the fast one.

Where orders differ from origin to origin they are those of the paper's GENERAL LAZY, which may put
the new rows last: an interval brings 250 rows of the fast stream, and to start with each of them is
more work than to start with the slow windows and find them at the end. LAZY, which begins with the
new rows, is measured beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from benchmarks.intervals_runs import (
    BUCKETS,
    DISTINCT,
    EAGER,
    FAST,
    FULL,
    ORDERS,
    QUICK,
    Measured,
    Scale,
    allocation_setups,
    interval_setups,
    make_workload,
    measure,
)
from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure, Progress, Report

_FAST_BATCH = 100
_AVERAGE = 12
"""Average buckets per window at which allocations are compared.

In [Golab03] five buckets for slow windows are best here.
"""


def bench_intervals(progress: Progress, *, quick: bool = False) -> Report:
    """Measure both halves of Figure 4."""
    scale = QUICK if quick else FULL
    found: list[Measured] = []
    for times, batch in scale.times.items():
        progress(f"intervals, {times} times the paper's rates")
        workload = make_workload([times] * 4, DISTINCT * times, batch, scale.batches)
        found += measure(workload, interval_setups(times, scale.intervals), scale.repeats)
    fast = make_workload(FAST, DISTINCT, _FAST_BATCH, scale.fast_batches)
    for algorithm in ORDERS:
        progress(f"buckets of fast and slow windows, {algorithm}")
        found += measure(
            fast, allocation_setups(algorithm, scale.averages), (scale.repeats + 1) // 2
        )
    return Report(
        "intervals",
        "How often should a join be evaluated, and which windows should have buckets [Golab03]?",
        [_row(one) for one in found],
        _claims(found, scale),
        plots=_plots(found),
    )


def _row(one: Measured) -> dict[str, Figure]:
    rates = [run.rate for run in one.runs]
    return {
        "sweep": one.setup.sweep,
        "join": one.setup.join,
        "interval or buckets": one.setup.place,
        "rows/s": round(one.rate),
        "least": round(min(rates)),
        "most": round(max(rates)),
        "comparisons per row": round(one.a_row("comparisons"), 1),
        "predicted": round(one.setup.predicted.comparisons, 1),
        "looked at per row": round(one.a_row("rows_scanned"), 1),
        "predicted to be": round(one.setup.predicted.scanned, 1),
    }


class _Table:
    """Measured setups by sweep, join and place."""

    def __init__(self, found: Sequence[Measured]) -> None:
        self._found = {(one.setup.sweep, one.setup.join, one.setup.place): one for one in found}

    def rate(self, sweep: str, join: str, place: int | str) -> float:
        return self._found[sweep, join, place].rate

    def compared(self, sweep: str, join: str, place: int | str) -> float:
        return self._found[sweep, join, place].a_row("comparisons")


def _claims(found: Sequence[Measured], scale: Scale) -> list[Claim]:
    return [
        *_claims_of_intervals(_Table(found), scale),
        *_claims_of_allocation(_Table(found), scale),
        *_claims_of_model(found),
    ]


def _claims_of_intervals(table: _Table, scale: Scale) -> list[Claim]:
    times, shortest, longest = max(scale.times), scale.intervals[0], scale.intervals[-1]
    sweep = f"intervals, rates {times}"
    best = {
        name: max(table.rate(sweep, name, interval) for interval in scale.intervals)
        for name in BUCKETS
    }
    names = list(BUCKETS)
    steps = [best[after] / best[before] for before, after in pairwise(names)]
    often = min(best[name] / table.rate(sweep, name, shortest) for name in names)
    eager = min(table.rate(sweep, name, EAGER) / best[name] for name in names)
    which = f"{times} times the paper's rates" if times > 1 else "the paper's rates"
    return [
        Claim(
            f"Figure 4(a), {which}: rate of each join over the one with fewer buckets, least",
            round(min(steps), 2),
            1,
            "at least",
        ),
        Claim(
            f"Figure 4(a): rate at the best interval over that at {shortest}, least of four joins",
            round(often, 2),
            1.1,
            "at least",
        ),
        Claim(
            f"Figure 4(a): rate at an interval of {longest} over the best of nested loops",
            round(table.rate(sweep, "NLJ", longest) / best["NLJ"], 3),
            1,
        ),
        Claim(
            "eager over lazy at its best interval, least of four joins",
            round(eager, 2),
            1,
            "at least",
        ),
    ]


def _claims_of_allocation(table: _Table, scale: Scale) -> list[Claim]:
    general, least, average, most = (
        "allocation, general lazy",
        scale.averages[0],
        _AVERAGE,
        scale.averages[-1],
    )

    def over(what: Callable[[str, str, int], float], one: str, other: str, buckets: int) -> float:
        return round(what(general, one, buckets) / what(general, other, buckets), 2)

    more = round(table.rate(general, "Equal", average) / table.rate(general, "Equal", least), 2)
    saved = over(table.compared, "Equal", "5 to slow", average)
    faster = over(table.rate, "5 to slow", "Equal", average)
    ten = {
        buckets: over(table.compared, "10 to slow", "5 to slow", buckets)
        for buckets in (average, most)
    }
    each = f"{average} buckets per window"
    claims = [
        Claim(
            f"Figure 4(b): rate of Equal with {each} over that with {least}", more, 1, "at least"
        ),
        Claim(
            f"Figure 4(b): comparisons of Equal over those of 5 to slow, {each}",
            saved,
            1.3,
            "at least",
        ),
        Claim(f"Figure 4(b): rate of 5 to slow over Equal, {each}", faster, 1, "at least"),
        Claim(
            f"Figure 4(b): comparisons of 10 to slow over those of 5 to slow, {each}",
            ten[average],
            1,
            "at least",
        ),
    ]
    return (
        claims
        if most == average
        else [*claims, Claim(f"Figure 4(b): the same with {most}", ten[most], 1)]
    )


def _claims_of_model(found: Sequence[Measured]) -> list[Claim]:
    def farthest(one: Measured, counter: str, predicted: float) -> float:
        counted = one.a_row(counter)
        return max(counted / predicted, predicted / counted)

    lazy = [one for one in found if one.setup.place != EAGER]
    compared = max(farthest(one, "comparisons", one.setup.predicted.comparisons) for one in lazy)
    return [
        Claim(
            "comparisons over predicted or predicted over comparisons, farthest of all",
            round(compared, 2),
            1.25,
        )
    ]


def _plots(found: Sequence[Measured]) -> list[Plot]:
    sweeps: dict[str, dict[str, list[tuple[float | str, float]]]] = {}
    for one in found:
        if one.setup.place != EAGER:
            sweeps.setdefault(one.setup.sweep, {}).setdefault(one.setup.join, []).append(
                (one.setup.place, one.rate)
            )
    titles = {
        "intervals, rates 1": ("intervals", "Figure 4(a): intervals, the paper's rates"),
        "intervals, rates 10": (
            "intervals-scaled",
            "Figure 4(a): intervals, ten times the rows, values and buckets",
        ),
        "allocation, general lazy": (
            "intervals-allocation",
            "Figure 4(b): buckets of fast and slow windows, general lazy",
        ),
        "allocation, lazy": (
            "intervals-allocation-lazy",
            "Figure 4(b) under lazy, which begins with the new rows",
        ),
    }
    plots = []
    for sweep, series in sweeps.items():
        file, title = titles[sweep]
        x = (
            "interval of evaluation and expiry, units of time"
            if sweep.startswith("intervals")
            else "average buckets of a window"
        )
        plots.append(Plot(file, title, x, "rows per second", series))
    return plots
