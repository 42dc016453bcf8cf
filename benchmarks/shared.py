"""The experiments of [Hammad03] on compiled schedulers: one window join for many queries.

The schedulers are LWO, SWF and MQT.

The streams are the paper's: integers that agree with probability 0.002, exponential gaps, seven
windows of up to 600 s, one largest window of history. The machine is not, so a second of the
streams is made as long as it takes for the server to be busy for a share of the time under LWO.
Rows come at their moments on the machine's clock, which is put forward when nothing is to be done.
All schedulers work on the same rows and arrivals, five milliseconds each in turn, and the clock
goes as fast as the machine is at the moment, which a fourth, always busy join measures. Beside
each figure stands that of a simulation: the same kernel on a clock that moves only when a row is
looked at, so without overheads and without noise. At last an engine in the background is measured
end to end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from benchmarks import shared_engine
from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure, Progress, Report
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
_SEVEN = (1,) * 7
_AT_ONCE = 50
_QUIET = 0.2
_ALONE_RATE, _ALONE_ROWS = 600, 2_000
"""Rate at which nested loops over 600 s load this machine as much as the rate of [Hammad03] did.

At the paper's rate the smallest window would have 15 rows, and the fixed cost of a step would
dominate.
"""


_CLEARLY = 3.0
_LEAST = (("lwo", 0.4), ("swf", 0.7))


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
                Sharing(windows, _SEVEN, join, BUCKETS[join]),
                streams,
            )
    for name, windows in WINDOWS.items():
        yield Case(EXACT, name, Sharing(windows, _SEVEN, "hash"), plain["hash"])
    skewed = Sharing(WINDOWS[SKEWED], _SEVEN, "hash", BUCKETS["hash"])
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


def bench_shared(progress: Progress, *, quick: bool = False) -> Report:
    """Run all experiments."""
    scale = QUICK if quick else FULL
    found: list[Found] = []
    for case in cases(scale):
        progress(f"{case.experiment}: {case.name}")
        found += measure(case, scale)
    alone = []
    for name in WINDOWS:
        progress(f"windows alone: {name}")
        alone.append(compare_alone(name, scale))
    progress("through the engine")
    engine = shared_engine.compare(scale.engine)
    return Report(
        "shared",
        "What does the order of work do to the response times of queries that share a window join?",
        [_row(one) for one in found],
        [
            *_claims([one for one in found if one.case.experiment != EXACT]),
            *_claims_alone(alone),
            *claims_of_engine(engine),
        ],
        plots=_plots(found, scale),
        details=[*(detail for one in found for detail in _details(one)), *alone, engine],
    )


# -- windows alone ---------------------------------------------------------------------------------


def compare_alone(name: str, scale: Scale) -> dict[str, Figure]:
    """Return the smallest window's response time in the shared join over that of its query alone.

    Rows come in bursts.

    As in the paper's analysis (section 3): a burst comes when nothing else is to be done.
    """
    join = "nested_loop"
    windows = WINDOWS[name]
    streams = Streams(scale.alone_rate, min(_ALONE_ROWS, scale.rows[join]), at_once=_AT_ONCE)
    sharing, single = Sharing(windows, _SEVEN, join), Sharing(windows[:1], (1,), join)
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
        "burst": _AT_ONCE,
        **measured,
    }


def _claims_alone(alone: Sequence[Mapping[str, Figure]]) -> list[Claim]:
    return [
        Claim(
            f"w1 under {scheduler.upper()} over its query alone, bursts of {_AT_ONCE} at once, "
            f"largest of {len(alone)}",
            max(float(one[f"w1 over alone, {scheduler}"]) for one in alone),
            2.0,
        )
        for scheduler in ("swf", "mqt")
    ]


def claims_of_engine(engine: Mapping[str, Figure]) -> list[Claim]:
    """Return what bursts are to show end to end."""
    return [
        Claim(
            "from push to subscriber in bursts, MQT over LWO, smallest window",
            float(engine["smallest window, MQT/LWO"]),
            0.5,
        ),
        Claim("the same, averaged over the queries", float(engine["by query, MQT/LWO"]), 1.0),
        Claim(
            "wait for a turn while the engine works, ms, 99 of 100",
            float(engine["99 of 100 wait for a turn less than, ms"]),
            1.0,
        ),
    ]


# -- report ---------------------------------------------------------------------------------------


def _row(found: Found) -> dict[str, Figure]:
    case = found.case
    # The paper's rate stands for its own seconds; ours is what that is in seconds of this machine.
    rate = case.streams.rate * 1e9 / found.second
    return {
        "experiment": case.experiment,
        "case": case.name,
        "load": found.load,
        "paper rows/s": PAPER_RATES[case.sharing.join],
        "rows/s": round(rate),
        **{
            f"{scheduler.upper()} µs": round(found.by_query(scheduler), 1)
            for scheduler in SCHEDULERS
        },
        "MQT/LWO": round(found.ratio("mqt", "lwo"), 3),
        "MQT/SWF": round(found.ratio("mqt", "swf"), 3),
        "simulated MQT/LWO": round(found.simulated_ratio("mqt", "lwo"), 3),
        "simulated MQT/SWF": round(found.simulated_ratio("mqt", "swf"), 3),
        "by result MQT/LWO": round(found.by_result("mqt", "lwo"), 3),
        "all runs MQT/LWO": found.spread("mqt", "lwo"),
        "all runs MQT/SWF": found.spread("mqt", "swf"),
        "busy LWO, SWF, MQT": ", ".join(
            f"{_busy(found.middle(scheduler)):.3f}" for scheduler in SCHEDULERS
        ),
    }


def _busy(times: Times) -> float:
    return times.busy / max(times.span, 1)


def _details(found: Found) -> Iterator[dict[str, object]]:
    for clock, runs in (("measured", found.runs), ("simulated", [found.simulated])):
        for scheduler in SCHEDULERS:
            mine = [run[scheduler] for run in runs]
            middle = sorted(mine, key=lambda times: times.by_query)[len(mine) // 2]
            yield {
                "experiment": found.case.experiment,
                "case": found.case.name,
                "load": found.load,
                "scheduler": scheduler,
                "clock": clock,
                "windows": list(found.case.sharing.windows),
                "queries": list(found.case.sharing.queries),
                "mean by query": round(middle.by_query / 1_000, 2),
                "mean by result": round(middle.by_result / 1_000, 2),
                "mean by window": (middle.means / 1_000).round(2).tolist(),
                "longest by window": (middle.most / 1_000).round(1).tolist(),
                "mean by query in all runs": [round(times.by_query / 1_000, 2) for times in mine],
                "join buffer": max(times.rows_stored for times in mine),
                "input buffer": max(times.rows_waiting for times in mine),
                "output buffer": max(times.results_held for times in mine),
            }


def _claims(found: Sequence[Found]) -> list[Claim]:
    def over_better(one: Found) -> float:
        return max(one.ratio("mqt", "lwo"), one.ratio("mqt", "swf"))

    simulated = [
        max(one.simulated_ratio("mqt", "lwo"), one.simulated_ratio("mqt", "swf")) for one in found
    ]
    measured = (
        f"largest of {len(found)} measured (MQT is best in "
        f"{sum(over_better(one) <= 1 for one in found)})"
    )
    least = [
        (other, round(min(one.ratio("mqt", other) for one in found), 3), bound)
        for other, bound in _LEAST
    ]
    simply = [
        (other, round(min(one.simulated_ratio("mqt", other) for one in found), 3), bound)
        for other, bound in _LEAST
    ]
    return [
        Claim(
            f"MQT over the better of LWO and SWF, {measured}",
            round(max(map(over_better, found)), 3),
            1.0,
        ),
        Claim(
            f"the same without overheads, simulated, all {len(found)}",
            round(max(simulated), 3),
            1.0,
        ),
        *(
            Claim(
                f"MQT over {other.upper()}, least of {len(found)} measured, with noise",
                value,
                bound,
            )
            for other, value, bound in least
        ),
        *(
            Claim(
                f"MQT over {other.upper()}, least of those simulated, without noise", value, bound
            )
            for other, value, bound in simply
        ),
    ]


# -- plots -----------------------------------------------------------------------------------------


def _plots(found: Sequence[Found], scale: Scale) -> list[Plot]:
    load = scale.loads[-1] if len(scale.loads) < 3 else scale.loads[1]
    chosen = [one for one in found if one.load == load]

    def pick(experiment: str) -> list[Found]:
        return [one for one in chosen if one.case.experiment == experiment]

    def bars(file: str, title: str, x: str, some: Sequence[Found]) -> Plot:
        series = {
            name.upper(): [(one.case.name, one.by_query(name)) for one in some]
            for name in SCHEDULERS
        }
        return Plot(
            file,
            f"{title}, load {load}",
            x,
            "mean response time of a query, µs",
            series,
            kind="bar",
            log="y",
        )

    plots = [
        bars("shared-windows", "Windows (hash)", "windows", pick("windows, hash")),
        bars(
            "shared-windows-loop", "Windows (nested loop)", "windows", pick("windows, nested loop")
        ),
        bars(
            "shared-queries",
            "30 queries, 80 % on one window",
            "window with 24 queries",
            pick("80 % of 30 queries"),
        ),
        bars("shared-bursts", "Bursts", "expected size of a burst", pick("bursts")),
    ]
    for one in pick("windows, hash"):
        plots += [_by_window(one, "means", "mean"), _by_window(one, "most", "longest")]
    return plots + [_by_window(one, "means", "mean") for one in pick("bursts")[-1:]]


def _by_window(found: Found, what: str, word: str) -> Plot:
    """Response times of each window in one case: the paper's Figures 6 and 8."""
    case = found.case
    series = {
        name.upper(): [
            (str(window), float(getattr(found.middle(name), what)[number]) / 1_000)
            for number, window in enumerate(case.sharing.windows)
        ]
        for name in SCHEDULERS
    }
    burst = f"-burst-{case.streams.burst:g}" if case.streams.burst > 1 else ""
    file = f"shared-{word}-{SKEWED.lower() if burst else case.name.lower()}{burst}"
    title = f"{SKEWED}, bursts of {case.name}" if burst else case.name
    return Plot(
        file,
        f"{title}, load {found.load}",
        "window, seconds",
        f"{word} response time, µs",
        series,
        kind="bar",
        log="y",
    )
