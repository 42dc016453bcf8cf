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

import numpy as np

from benchmarks import shared_engine
from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.shared_long import claims_of_lengths, compare_lengths
from benchmarks.shared_runs import (
    AT_ONCE,
    EXACT,
    FULL,
    PAPER_RATES,
    QUICK,
    SKEWED,
    Found,
    Scale,
    cases,
    compare_alone,
    measure,
)
from benchmarks.shared_workload import (
    SCHEDULERS,
    WINDOWS,
    Times,
)

_LEAST = (("lwo", 0.4), ("swf", 0.7))


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
    lengths = []
    for name in WINDOWS:
        progress(f"steady state: {name}")
        lengths.append(compare_lengths(name, scale))
    progress("through the engine")
    engine = shared_engine.compare(scale.engine)
    return Report(
        "shared",
        "What does the order of work do to the response times of queries that share a window join?",
        [_row(one) for one in found],
        [
            *_claims([one for one in found if one.case.experiment != EXACT]),
            *_claims_alone(alone),
            *claims_of_lengths(lengths, scale),
            *claims_of_engine(engine),
        ],
        plots=_plots(found, scale),
        details=[
            *(detail for one in found for detail in _details(one)),
            *alone,
            *lengths,
            engine,
        ],
    )


def _claims_alone(alone: Sequence[Mapping[str, Figure]]) -> list[Claim]:
    return [
        Claim(
            f"w1 under {scheduler.upper()} over its query alone, bursts of {AT_ONCE} at once, "
            f"largest of {len(alone)}",
            max(float(one[f"w1 over alone, {scheduler}"]) for one in alone),
            2.0,
        )
        for scheduler in ("swf", "mqt")
    ]


def claims_of_engine(engine: Mapping[str, Figure]) -> list[Claim]:
    """Return the claims about bursts end to end."""
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
                "longest by window, median of runs": np.median(
                    [times.most / 1_000 for times in mine], axis=0
                )
                .round(1)
                .tolist(),
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
