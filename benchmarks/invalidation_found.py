"""Claims and plots of the experiments of [Kostowski06], from the measured figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from statistics import mean, median

from benchmarks.invalidation_runs import WINDOW, Case, Measured, UnitCosts
from benchmarks.plots import Plot
from benchmarks.report import Claim
from muntin.model.settings import Expiry

STRATEGIES = {
    Expiry.PROBE: "probe time",
    Expiry.PROBE_INSERT: "probe and insert time",
    Expiry.PROBE_ALL: "probe all buckets",
    Expiry.ALL: "optimal",
}
_LAZY = (Expiry.PROBE, Expiry.PROBE_INSERT)
_GREEDY = (Expiry.PROBE_ALL, Expiry.ALL)
_TIME = f"ms for {WINDOW} s of rows"

Sweep = Sequence[Measured]
Samples = Sequence[tuple[int, int, int]]
"""Seconds, rows of the faster stream that are held then, those of them inside the window."""
Key = Callable[[Measured], float]
Line = list[tuple[float | str, float]]


@dataclass(frozen=True)
class Found:
    """The measurements: Figures 4, 7 and 8, Figures 5 and 6 per number of values, and unit costs.

    Sweeps over rates begin with equal ones and end with the largest ratio; those over buckets begin
    with one.
    """

    rates: Sweep
    buckets: Mapping[int, Sweep]
    strategies: Sweep
    held: Mapping[Expiry, Samples]
    costs: UnitCosts

    def predicted(self, one: Measured, *, bare: bool) -> float:
        """Return the time that the model predicts, in seconds."""
        return self.costs.seconds(one.case.predicted, bare=bare)


def whole(one: Measured) -> float:
    """Its time."""
    return one.median(bare=False)


def bare(one: Measured) -> float:
    """Its time without results."""
    return one.median(bare=True)


def comparisons(one: Measured) -> float:
    """Its comparisons."""
    return one.counters["comparisons"]


def _over(one: Measured, other: Measured, key: Key) -> float:
    return key(one) / key(other)


def _of_join(sweep: Sweep, join: str) -> Sweep:
    return [one for one in sweep if one.case.join == join]


def _with_buckets(sweep: Sweep, number: int) -> Measured:
    return next(one for one in sweep if one.case.buckets == number)


def steady_rows(samples: Samples) -> float:
    """Return rows held on average once the windows are full."""
    return mean(rows for second, rows, _ in samples if second > WINDOW)


# -- claims ----------------------------------------------------------------------------------------


def claims_of(found: Found) -> list[Claim]:
    """Return the findings of the paper as claims about our figures."""
    return [
        *_of_rates(found),
        *_of_buckets(found),
        *_of_strategies(found),
        *_of_memory(found),
        *_of_model(found),
    ]


def _of_rates(found: Found) -> list[Claim]:
    loops, hashed = (_of_join(found.rates, join) for join in ("WNL", "WHJ"))
    slow, fast = loops[-1].case.rates
    tenth = next(one for one in loops if one.case.rates[1] * 10 == fast)
    power = log10(_over(loops[-1], tenth, whole))
    last = loops[-1], hashed[-1]
    return [
        Claim(
            f"Figure 4: comparisons of WNL over those of WHJ with 100 buckets, {slow:,} and "
            f"{fast:,} rows/s",
            round(_over(*last, comparisons), 1),
            90,
            "at least",
        ),
        Claim(
            "Figure 4: the same of the time without results",
            round(_over(*last, bare), 1),
            20,
            "at least",
        ),
        Claim("Figure 4: the same of the time", round(_over(*last, whole), 1), 5, "at least"),
        Claim(
            "Figure 4: WNL's time grows with this power of the faster rate, the last factor of ten",
            round(power, 2),
            1.2,
        ),
    ]


def _of_buckets(found: Found) -> list[Claim]:
    first = next(iter(found.buckets.values()))
    ten = _over(_with_buckets(first, 10), first[0], bare)
    pairs = [(sweep[-1], _with_buckets(sweep, values)) for values, sweep in found.buckets.items()]
    counted, timed = (min(_over(*pair, key) for pair in pairs) for key in (comparisons, bare))
    beyond = "comparisons with the most buckets over those with as many as values, least"
    return [
        Claim(
            "Figure 5: time with 10 buckets over that with 1, without results", round(ten, 3), 0.15
        ),
        Claim(f"Figures 5 and 6: {beyond}", round(counted, 3), 0.99, "at least"),
        Claim(
            "Figures 5 and 6: the same of the time without results",
            round(timed, 2),
            0.8,
            "at least",
        ),
    ]


def _of_strategies(found: Found) -> list[Claim]:
    by_rates: dict[tuple[int, int], dict[Expiry, Measured]] = {}
    for one in found.strategies:
        by_rates.setdefault(one.case.rates, {})[one.case.strategy] = one

    def insert_over_probe(key: Key) -> list[float]:
        return [
            _over(mine[Expiry.PROBE_INSERT], mine[Expiry.PROBE], key) for mine in by_rates.values()
        ]

    def greedy_over_lazy(key: Key) -> list[float]:
        return [
            min(key(mine[strategy]) for strategy in _GREEDY)
            / max(key(mine[strategy]) for strategy in _LAZY)
            for mine in by_rates.values()
        ]

    some = f"median of {len(by_rates)} ratios of rates"
    greedy = round(median(greedy_over_lazy(whole)), 2)
    return [
        Claim(
            f"Figure 7: probe and insert time over probe time, {some}",
            round(median(insert_over_probe(whole)), 2),
            1.1,
        ),
        Claim("Figure 7: the same without results", round(median(insert_over_probe(bare)), 2), 1.1),
        Claim(
            f"Figure 7: the faster greedy strategy over the slower lazy one, {some}",
            greedy,
            1,
            "at least",
        ),
        Claim(
            "Figure 7: the same without results, least",
            round(min(greedy_over_lazy(bare)), 2),
            1,
            "at least",
        ),
    ]


def _of_memory(found: Found) -> list[Claim]:
    average = {
        strategy: steady_rows(samples) / steady_rows(found.held[Expiry.ALL])
        for strategy, samples in found.held.items()
    }
    others = max(average[Expiry.PROBE_INSERT], average[Expiry.PROBE_ALL])
    return [
        Claim(
            "Figure 8: rows held at probe time over those of optimal",
            round(average[Expiry.PROBE], 3),
            1.2,
            "at least",
        ),
        Claim("Figure 8: the larger of the two others over optimal", round(others, 3), 1.05),
    ]


def _of_model(found: Found) -> list[Claim]:
    every = [
        *found.rates,
        *(one for sweep in found.buckets.values() for one in sweep),
        *found.strategies,
    ]

    def farthest(measured: Key, predicted: Key) -> float:
        ratios = [measured(one) / predicted(one) for one in every]
        return round(max(*ratios, *(1 / ratio for ratio in ratios)), 2)

    compared = farthest(comparisons, lambda one: one.case.predicted.comparisons)
    checked = farthest(
        lambda one: one.counters["expiry_checks"], lambda one: one.case.predicted.checks
    )
    timed = farthest(whole, lambda one: found.predicted(one, bare=False))
    return [
        Claim("comparisons over predicted, or the reverse, farthest of all", compared, 1.1),
        Claim("checks over predicted, or the reverse, farthest of all", checked, 1.1),
        Claim("time over predicted, or the reverse, farthest of all", timed, 2),
    ]


# -- plots -----------------------------------------------------------------------------------------


def plots_of(found: Found) -> list[Plot]:
    """Return the paper's Figures 4 to 8."""

    def line(sweep: Sweep, x: Callable[[Case], int], key: Key) -> Line:
        return [(x(one.case), key(one) * 1e3) for one in sweep]

    def ratio(case: Case) -> int:
        return case.rates[1] // case.rates[0]

    def buckets(case: Case) -> int:
        return case.buckets

    def predicted(one: Measured) -> float:
        return found.predicted(one, bare=False)

    four: dict[str, Line] = {}
    for join, name in (("WNL", "nested loops"), ("WHJ", "100 buckets")):
        sweep = _of_join(found.rates, join)
        four |= {
            name: line(sweep, ratio, whole),
            f"{name}, predicted": line(sweep, ratio, predicted),
        }
        four[f"{name}, no results"] = line(sweep, ratio, bare)
    values, first = next(iter(found.buckets.items()))
    five = {
        "measured": line(first, buckets, whole),
        "predicted": line(first, buckets, predicted),
        "no results": line(first, buckets, bare),
    }
    six = {
        f"selectivity {1 / number:g}": line(sweep, buckets, bare)
        for number, sweep in sorted(found.buckets.items())
    }

    def seven(key: Key) -> dict[str, Line]:
        by_strategy = {
            name: [one for one in found.strategies if one.case.strategy is strategy]
            for strategy, name in STRATEGIES.items()
        }
        return {name: line(sweep, ratio, key) for name, sweep in by_strategy.items()}

    eight = {
        STRATEGIES[strategy]: [(second, rows) for second, rows, _ in samples]
        for strategy, samples in found.held.items()
    }
    relative = (
        f"rate of the faster stream over {found.rates[0].case.rates[0]} rows/s, that of the other"
    )
    equal = f"{first[0].case.rates[0]} rows/s each"
    return [
        Plot("invalidation-rates", "Figure 4: relative rates", relative, _TIME, four, log="xy"),
        Plot(
            "invalidation-buckets",
            f"Figure 5: buckets, selectivity {1 / values:g}, {equal}",
            "buckets",
            _TIME,
            five,
            log="xy",
        ),
        Plot(
            "invalidation-selectivity",
            f"Figure 6: buckets and selectivity, no results, {equal}",
            "buckets",
            _TIME,
            six,
            log="xy",
        ),
        Plot(
            "invalidation-strategies",
            "Figure 7: four strategies, 100 buckets",
            relative,
            _TIME,
            seven(whole),
            log="xy",
        ),
        Plot(
            "invalidation-strategies-bare",
            "Figure 7: four strategies, no results",
            relative,
            _TIME,
            seven(bare),
            log="xy",
        ),
        Plot(
            "invalidation-memory",
            "Figure 8: rows of the faster stream in the hash table",
            "seconds",
            "rows held",
            eight,
        ),
    ]
