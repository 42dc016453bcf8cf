"""The highest input rate under the best and under the worst join order [Golab03, section 6.2].

Streams, windows and numbers of values are those of the paper's Table 5, rows are made as in its
section 6.1, and the rate is measured as there: the windows are filled first, then x more rows are
pushed as fast as they are taken, and x over the seconds is the highest rate of all streams together
that could be kept up. The windows hold as many rows as in Table 5 whatever the rate is; that is the
paper's definition, and makes rates of different orders comparable. (The unit of time has fifteen
rows, because that is what comes in it by Table 5.)

Which order is best and which is worst is found by counting the comparisons of all 24, which depends
on no clock. The two are then timed in turn. An order that is faster than the one with the fewest
comparisons, or slower than the one with the most, would only make the ratio larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, permutations

from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.workload import SECOND, Join, Workload, check_digest, fastest, run_all, run_in_turn
from muntin.testing.generators import multi_join_streams

NAMES = ("S1", "S2", "S3", "S4")
RATES = (10, 1, 1, 3)
LENGTHS = (100, 100, 200, 100)
DISTINCT = (500, 50, 40, 5)
PREDICTED_BEST = "1234"
_BATCH = 100
"""Units of time in a batch."""


@dataclass(frozen=True)
class Configuration:
    """A way to run the join, its settings, and the rates that the paper's Table 8 has for it."""

    name: str
    settings: Mapping[str, str]
    paper_best: int
    paper_worst: int


def _eager(join: str) -> dict[str, str]:
    return {
        "algorithm": "eager",
        "expiry": "eager",
        "join": join,
        **({"buckets": "5"} if join == "hash" else {}),
    }


def _lazy(join: str, seconds: int) -> dict[str, str]:
    interval = f"{seconds} seconds"
    return {
        **_eager(join),
        "algorithm": "lazy",
        "expiry": "lazy",
        "expiry_interval": interval,
        "reevaluation": interval,
    }


CONFIGURATIONS = (
    Configuration("eager, nested loop", _eager("nested_loop"), 1614, 333),
    Configuration("lazy 5, nested loop", _lazy("nested_loop", 5), 1446, 296),
    Configuration("lazy 10, nested loop", _lazy("nested_loop", 10), 1332, 274),
    Configuration("eager, hash", _eager("hash"), 11540, 2524),
    Configuration("lazy 5, hash", _lazy("hash", 5), 8420, 2041),
    Configuration("lazy 10, hash", _lazy("hash", 10), 7947, 1848),
)


def table_5(units: int) -> Workload:
    """Return the join of Table 5, timed for a number of time units."""
    filling = max(LENGTHS)
    each = sum(RATES)
    streams = multi_join_streams(
        (filling + units) * each, rates=RATES, distinct=DISTINCT, seed=5, unit=SECOND // each
    )
    join = Join(
        {name: length * SECOND for name, length in zip(NAMES, LENGTHS, strict=True)},
        ["S1.attr"],
        [(f"{one}.attr", f"{other}.attr") for one, other in pairwise(NAMES)],
    )
    ends = [end * SECOND - 1 for end in range(_BATCH, filling + units + 1, _BATCH)]
    return Workload(join, dict(zip(NAMES, streams, strict=True)), ends, filling // _BATCH)


def extreme_orders(workload: Workload, settings: Mapping[str, str]) -> tuple[str, str, float]:
    """Return the orders with the fewest and the most comparisons, and the ratio of the counts."""
    done = run_all(
        workload,
        {order: _with_order(settings, order) for order in map("".join, permutations("1234"))},
    )
    counted = {order: one.counters["comparisons"] for order, one in done.items()}
    best, worst = min(counted, key=counted.__getitem__), max(counted, key=counted.__getitem__)
    return best, worst, counted[worst] / counted[best]


def _with_order(settings: Mapping[str, str], order: str) -> dict[str, str]:
    return {**settings, "order": ", ".join(f"S{digit}" for digit in order)}


def measure(
    configuration: Configuration, counting: Workload, timing: Workload, repeats: int
) -> dict[str, Figure]:
    """One line of the report."""
    best, worst, comparisons = extreme_orders(counting, configuration.settings)
    runs = run_in_turn(
        timing,
        {order: _with_order(configuration.settings, order) for order in (best, worst)},
        repeats,
    )
    check_digest(timing, runs[best][0].results)
    high, low = fastest(runs[best]).rate, fastest(runs[worst]).rate
    return {
        "join": configuration.name,
        "best": best,
        "rows/s": round(high),
        "worst": worst,
        "rows/s, worst": round(low),
        "ratio": round(high / low, 2),
        "ratio of comparisons": round(comparisons, 2),
        "paper: best": configuration.paper_best,
        "paper: worst": configuration.paper_worst,
        "paper: ratio": round(configuration.paper_best / configuration.paper_worst, 2),
    }


def bench_orders(progress: Progress, *, quick: bool = False) -> Report:
    """Measure every configuration."""
    counting, timing, repeats = (
        (table_5(100), table_5(100), 2) if quick else (table_5(1_000), table_5(2_000), 5)
    )
    rows = []
    for configuration in CONFIGURATIONS:
        progress(configuration.name)
        rows.append(measure(configuration, counting, timing, repeats))
    surprises = sum(row["best"] != PREDICTED_BEST for row in rows)
    return Report(
        "orders",
        "What is the join order worth, on the streams of [Golab03]?",
        rows,
        [
            Claim(
                "input rate of the best over that of the worst order, least",
                min(float(row["ratio"]) for row in rows),
                2,
                "at least",
            ),
            Claim(
                "configurations in which another order has fewer comparisons than the predicted "
                "best",
                surprises,
                0,
            ),
        ],
    )
