"""The joins of :mod:`benchmarks.intervals`: settings, predicted work, and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from benchmarks.workload import SECOND, Join, Run, Workload, check_digest, run_in_turn
from muntin.planner.lazy_orders import WindowStatistics, Work
from muntin.testing.generators import multi_join_streams
from muntin.testing.paper_costs.lazy_join import general_lazy_work, origin_first

NAMES = ("S1", "S2", "S3", "S4")
LENGTH = 100
DISTINCT = 50
BUCKETS = {"NLJ": 1, "HASH2": 2, "HASH10": 10, "HASH30": 30}
EAGER = "eager"
FAST = (1, 1, 1, 50)
_FAST_INTERVAL = 5
_IN_ORDER = tuple(range(len(NAMES)))
ORDERS = {
    "lazy": origin_first(_IN_ORDER, 4),
    "general lazy": [*origin_first(_IN_ORDER, 4)[:3], _IN_ORDER],
}
"""For each origin the order of all windows, slow ones first.

Under GENERAL LAZY the new rows of the fast stream come last.
"""
Settings = dict[str, str]


@dataclass(frozen=True)
class Scale:
    """What is varied, and for how long.

    ``times`` are multiples of the paper's rates, with the units of time of a batch; ``averages``
    average buckets of a window.
    """

    intervals: Sequence[int]
    times: Mapping[int, int]
    averages: Sequence[int]
    batches: int
    fast_batches: int
    repeats: int


FULL = Scale(
    (1, 2, 5, 10, 15, 30, 50),
    {1: 1500, 10: 300},
    (4, 6, 8, 10, 12, 16, 20),
    batches=2,
    fast_batches=8,
    repeats=5,
)
QUICK = Scale((5, 50), {1: 150}, (12,), batches=1, fast_batches=1, repeats=1)


@dataclass(frozen=True)
class Setup:
    """One way to run a join: its name, its settings, and the predicted work per row."""

    sweep: str
    join: str
    place: int | str
    settings: Settings
    predicted: Work


@dataclass(frozen=True)
class Measured:
    """A setup and its runs."""

    setup: Setup
    runs: Sequence[Run]

    @property
    def rate(self) -> float:
        """The median of the highest input rates."""
        return median(run.rate for run in self.runs)

    def a_row(self, counter: str) -> float:
        """Return a counter per row."""
        return self.runs[0].counters[counter] / self.runs[0].rows


def make_workload(rates: Sequence[int], distinct: int, batch: int, timed: int) -> Workload:
    """Streams of section 6.1 in batches of a number of time units; one batch fills the windows."""
    assert batch >= LENGTH, "the first batch fills the windows"
    each = sum(rates)
    streams = multi_join_streams(
        (1 + timed) * batch * each,
        rates=rates,
        distinct=[distinct] * 4,
        seed=3,
        unit=SECOND // each,
    )
    join = Join(
        dict.fromkeys(NAMES, LENGTH * SECOND),
        ["S1.attr"],
        [(f"{one}.attr", f"{other}.attr") for one, other in pairwise(NAMES)],
    )
    ends = [end * batch * SECOND - 1 for end in range(1, timed + 2)]
    return Workload(join, dict(zip(NAMES, streams, strict=True)), ends, 1)


def _statistics(
    rates: Sequence[int], distinct: int, buckets: Sequence[int]
) -> list[WindowStatistics]:
    return [
        WindowStatistics(rate, rate * LENGTH, distinct, number)
        for rate, number in zip(rates, buckets, strict=True)
    ]


def _a_row(rates: Sequence[int], work: Work) -> Work:
    return Work(work.comparisons / sum(rates), work.scanned / sum(rates))


def _every(interval: int, algorithm: str, orders: Sequence[Sequence[int]]) -> Settings:
    text = "; ".join(
        f"{NAMES[origin]}: {', '.join(NAMES[place] for place in order)}"
        for origin, order in enumerate(orders)
    )
    seconds = f"{interval} seconds"
    return {
        "algorithm": algorithm,
        "order": text,
        "expiry": "lazy",
        "expiry_interval": seconds,
        "reevaluation": seconds,
    }


def interval_setups(times: int, intervals: Sequence[int]) -> list[Setup]:
    """Return four joins, each evaluated eagerly and at several intervals.

    Rows, values and buckets are those of [Golab03] times ``scale``.
    """
    rates = [times] * 4
    setups = []
    for name, number in BUCKETS.items():
        buckets = number * times if number > 1 else 1
        join = {"join": "hash", "buckets": str(buckets)} if number > 1 else {"join": "nested_loop"}
        windows = _statistics(rates, DISTINCT * times, [buckets] * 4)
        for interval in (0, *intervals):
            chosen = (
                _every(interval, "lazy", ORDERS["lazy"])
                if interval
                else {"algorithm": "eager", "expiry": "eager"}
            )
            work = _a_row(rates, general_lazy_work(ORDERS["lazy"], windows, interval))
            setups.append(
                Setup(
                    f"intervals, rates {times}", name, interval or EAGER, {**join, **chosen}, work
                )
            )
    return setups


def allocations(average: int) -> dict[str, tuple[int, ...]]:
    """Buckets of the slow windows and of the fast one, with a given average."""
    slow = {"Equal": average, "1 to slow": 1, "5 to slow": 5, "10 to slow": 10}
    found = {
        name: (number, number, number, 4 * average - 3 * number) for name, number in slow.items()
    }
    return {name: buckets for name, buckets in found.items() if buckets[-1] >= 1}


def allocation_setups(algorithm: str, averages: Sequence[int]) -> list[Setup]:
    """Return all allocations of all averages under one algorithm."""
    setups = []
    orders = ORDERS[algorithm]
    for average in averages:
        for name, buckets in allocations(average).items():
            text = ", ".join(
                f"{stream} = {number}" for stream, number in zip(NAMES, buckets, strict=True)
            )
            work = _a_row(
                FAST,
                general_lazy_work(orders, _statistics(FAST, DISTINCT, buckets), _FAST_INTERVAL),
            )
            settings = {
                "join": "hash",
                "buckets": text,
                **_every(_FAST_INTERVAL, algorithm.replace(" ", "_"), orders),
            }
            setups.append(Setup(f"allocation, {algorithm}", name, average, settings, work))
    return setups


def measure(workload: Workload, setups: Sequence[Setup], repeats: int) -> list[Measured]:
    """Time all setups in turn; all must give the same results, and DuckDB's digest."""
    runs = run_in_turn(
        workload, {str(number): setup.settings for number, setup in enumerate(setups)}, repeats
    )
    check_digest(workload, runs["0"][0].results)
    return [Measured(setup, mine) for setup, mine in zip(setups, runs.values(), strict=True)]
