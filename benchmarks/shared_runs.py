"""The cases of :mod:`benchmarks.shared`, and their runs at all loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from benchmarks import shared_engine
from benchmarks.report import Figure
from benchmarks.shared_workload import (
    SCHEDULERS,
    WINDOWS,
    Metronome,
    Sharing,
    Streams,
    Times,
    run_together,
    service_time,
)

PAPER_RATES = {"hash": 100, "nested_loop": 15}
"""Rows per second of each stream in the paper."""
RATES = {"hash": 100, "nested_loop": 30}
"""Our rates, at which nested loops scan about as many rows per row as the four buckets."""
BUCKETS = {"hash": 4, "nested_loop": None}
"""Few enough that 125 rows are scanned per result, and adjacent so that prefetching works.

The cost of a row is then the scan, under any scheduler, as in the analysis of [Hammad03].
"""
EXACT = "windows, exact index"
"""Not in [Hammad03]: the product's index, where every scanned row is a result; makes no claim."""
QUERIES = 30
MANY = 24
"""Of them on one window: 80 %."""
SKEWED = "Small-Large"
SEVEN = (1,) * 7
AT_ONCE = 50
_QUIET = 0.2
_ALONE_RATE, _ALONE_ROWS = 600, 2_000
"""Rate at which nested loops over 600 s load this machine as much as the rate of [Hammad03] did.

At the paper's rate the smallest window would have 15 rows, and the fixed cost of a step would
dominate.
"""
_CLEARLY = 3.0


@dataclass(frozen=True)
class Scale:
    """The scale of a run.

    Rows per second by join, new rows of a run and of a calibration, least and most runs, loads,
    bursts.
    """

    rates: Mapping[str, int] = field(default_factory=lambda: RATES)
    rows: Mapping[str, int] = field(default_factory=lambda: {"hash": 6_000, "nested_loop": 6_000})
    trial: int = 3_000
    repeats: int = 3
    most_runs: int = 15
    loads: tuple[float, ...] = (0.5, 0.8, 0.95)
    bursts: tuple[float, ...] = (1, 2, 3, 4, 5)
    places: tuple[int, ...] = tuple(range(7))
    engine: shared_engine.Bursts = field(default_factory=shared_engine.Bursts)
    alone_rate: int = _ALONE_RATE
    steady: int = 100_000
    """New rows of a run as long as those of [Hammad03]."""


FULL = Scale()
QUICK = Scale(
    {"hash": 5, "nested_loop": 2},
    {"hash": 2_000, "nested_loop": 2_000},
    1_000,
    1,
    1,
    (0.5, 0.8),
    (1, 3),
    (0, 6),
    shared_engine.Bursts(20, 500, 200, 2, 1),
    2,
    4_000,
)


@dataclass(frozen=True)
class Case:
    """Queries over streams, in one of the paper's experiments."""

    experiment: str
    name: str
    sharing: Sharing
    streams: Streams


@dataclass
class Found:
    """What came out of a case at one load: the runs, and the simulation."""

    case: Case
    load: float
    second: float = 0.0
    runs: list[dict[str, Times]] = field(default_factory=list)
    simulated: dict[str, Times] = field(default_factory=dict)

    def by_query(self, scheduler: str) -> float:
        """Return the paper's measure in microseconds, of the middle run."""
        return self.middle(scheduler).by_query / 1_000

    def middle(self, scheduler: str) -> Times:
        """Return the middle one of the runs."""
        return sorted((run[scheduler] for run in self.runs), key=lambda times: times.by_query)[
            len(self.runs) // 2
        ]

    def ratio(self, one: str, other: str) -> float:
        """Return the median ratio of two schedulers' measures, taken side by side in each run."""
        return median(run[one].by_query / run[other].by_query for run in self.runs)

    def by_result(self, one: str, other: str) -> float:
        """Return the same, averaged over results."""
        return median(run[one].by_result / run[other].by_result for run in self.runs)

    def spread(self, one: str, other: str) -> str:
        """Return the least and the largest of the ratios."""
        ratios = [run[one].by_query / run[other].by_query for run in self.runs]
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    def is_clear(self, scale: Scale) -> bool:
        """Return whether MQT differs from each other scheduler by three standard errors.

        Enough runs also suffice.
        """
        if len(self.runs) < scale.repeats:
            return False
        if len(self.runs) >= scale.most_runs:
            return True
        ratios = np.log(
            [
                [run["mqt"].by_query / run[other].by_query for other in ("lwo", "swf")]
                for run in self.runs
            ]
        )
        errors = ratios.std(axis=0, ddof=1) / len(self.runs) ** 0.5
        return bool((np.abs(ratios.mean(axis=0)) > _CLEARLY * errors).all())

    def simulated_ratio(self, one: str, other: str) -> float:
        """Return the ratio without overheads."""
        return self.simulated[one].by_query / self.simulated[other].by_query


def cases(scale: Scale) -> Iterator[Case]:
    """Yield all experiments: section 5.1 by hash and by nested loops, 5.2, 5.3."""
    plain = {join: Streams(rate, scale.rows[join]) for join, rate in scale.rates.items()}
    for join, streams in plain.items():
        for name, windows in WINDOWS.items():
            yield Case(
                f"windows, {join.replace('_', ' ')}",
                name,
                Sharing(windows, SEVEN, join, BUCKETS[join]),
                streams,
            )
    for name, windows in WINDOWS.items():
        yield Case(EXACT, name, Sharing(windows, SEVEN, "hash"), plain["hash"])
    skewed = Sharing(WINDOWS[SKEWED], SEVEN, "hash", BUCKETS["hash"])
    for burst in scale.bursts:
        yield Case("bursts", f"{burst:g} rows", skewed, replace(plain["hash"], burst=burst))
    for place in scale.places:
        queries = [1] * 7
        queries[place] = MANY
        assert sum(queries) == QUERIES, "30 queries"
        yield Case(
            "80 % of 30 queries",
            f"on w{place + 1}",
            replace(skewed, queries=tuple(queries)),
            plain["hash"],
        )


def measure(case: Case, scale: Scale) -> list[Found]:
    """Run a case at all loads, measured and simulated."""
    found = [Found(case, load) for load in scale.loads]
    rows_a_second = 2 * case.streams.rate
    trial = replace(case.streams, rows=min(scale.trial, case.streams.rows), burst=1.0)
    metronome = Metronome(case.sharing, case.streams)
    cost = median(service_time(case.sharing, trial, metronome) for _ in range(scale.repeats))
    for one in found:
        one.second = cost * rows_a_second / one.load
    for one in found:
        while not one.is_clear(scale):
            one.runs.append(
                run_together(case.sharing, case.streams, one.second, SCHEDULERS, metronome)
            )
    cost = service_time(case.sharing, trial)
    for one in found:
        one.simulated = run_together(
            case.sharing, case.streams, cost * rows_a_second / one.load, SCHEDULERS
        )
    return found


def compare_alone(name: str, scale: Scale) -> dict[str, Figure]:
    """Return the smallest window's response time in the shared join over that of its query alone.

    Rows come in bursts.

    As in the paper's analysis (section 3): a burst comes when nothing else is to be done.
    """
    join = "nested_loop"
    windows = WINDOWS[name]
    streams = Streams(scale.alone_rate, min(_ALONE_ROWS, scale.rows[join]), at_once=AT_ONCE)
    sharing, single = Sharing(windows, SEVEN, join), Sharing(windows[:1], (1,), join)
    ratios: dict[str, list[float]] = {scheduler: [] for scheduler in SCHEDULERS}
    metronome = Metronome(sharing, streams)
    second = service_time(sharing, streams, metronome) * 2 * streams.rate / _QUIET
    for _ in range(scale.repeats):
        isolated = run_together(single, streams, second, ["lwo"], metronome)["lwo"].means[0]
        for scheduler, times in run_together(
            sharing, streams, second, SCHEDULERS, metronome
        ).items():
            ratios[scheduler].append(float(times.means[0] / isolated))
    measured = {
        f"w1 over alone, {scheduler}": round(median(values), 2)
        for scheduler, values in ratios.items()
    }
    return {
        "experiment": "alone",
        "case": name,
        "join": join,
        "rows/s": scale.alone_rate,
        "burst": AT_ONCE,
        **measured,
    }
