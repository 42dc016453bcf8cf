"""The four ways to drive expiry above joins [HammadTR, section 6]: output delay and CPU time.

The workload is :mod:`benchmarks.pipelines_workload`; :mod:`benchmarks.pipelines_replay` defines
delays and measures them. All strategies must give the same results, except that Input Triggered may
leave some for later at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from benchmarks.pipelines_replay import (
    LATE_TICKS,
    TICK,
    Delays,
    replay,
    seconds_to,
    wrong_by_wall_clock,
)
from benchmarks.pipelines_workload import QUERIES, Case
from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure, Progress, Report

STRATEGIES = {
    "input": "Input Triggered",
    "probing": "Time Probing",
    "negative": "Negative Tuple",
    "hybrid": "Hybrid",
}
_PROMPT = ("probing", "negative", "hybrid")
_USUAL_RATE = 10
_USUAL_SELECTIVITY = 0.25


@dataclass(frozen=True)
class Scale:
    """The scale of a run.

    Rows per stream of a replay, the values that vary, and full load: rows per second, results, rows
    per batch, repeats.
    """

    rows: int = 600
    rates: tuple[int, ...] = (5, 10, 20, 40)
    depths: tuple[int, ...] = (2, 3, 4, 5)
    stores: tuple[int, ...] = (50, 200, 1_000)
    selectivities: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 1.0)
    load: int = 2_056
    load_seconds: int = 100
    marks: tuple[int, ...] = (10_000, 20_000, 30_000, 40_000)
    batch: int = 500
    repeats: int = 5


_QUICK = Scale(
    rows=20,
    rates=(10,),
    depths=(2, 3),
    stores=(1_000,),
    selectivities=(0.25, 1.0),
    load=200,
    load_seconds=20,
    marks=(200, 400),
    batch=100,
    repeats=1,
)


def cases(scale: Scale) -> Iterator[tuple[str, str, Case]]:
    """Yield all replays: experiment, varied value, case; experiments may have cases in common."""

    def case(
        query: str,
        rate: float = _USUAL_RATE,
        selectivity: float = _USUAL_SELECTIVITY,
        depth: int = 2,
    ) -> Case:
        return Case(query, rate, scale.rows / rate, selectivity, depth)

    yield from (("queries", query, case(query)) for query in QUERIES)
    yield from (
        (f"rates, {query}", str(rate), case(query, rate))
        for query in ("Q3", "Q4")
        for rate in scale.rates
    )
    yield from (
        (stores_of(number), f"{rate:g}", replace(case("Q3", rate), stores=number))
        for number in scale.stores
        for rate in (scale.rates[0], scale.rates[-1])
    )
    yield from (("depth, Q2", str(depth), case("Q2", depth=depth)) for depth in scale.depths)
    yield from (
        ("selectivity, Q1", f"{part:g}", case("Q1", selectivity=part))
        for part in scale.selectivities
    )


def stores_of(number: int) -> str:
    """Return the name of the experiment that varies the rate of Q3 with a number of stores."""
    return f"rates, Q3, {number:,} stores"


def _replay_all(case: Case) -> dict[str, Delays]:
    """Return every strategy; those that release all results must have released the same."""
    found = {strategy: replay(case, strategy) for strategy in STRATEGIES}
    first = _sorted(found[_PROMPT[0]].changes)
    for strategy in _PROMPT[1:]:
        assert _sorted(found[strategy].changes).equals(first), (
            f"{case.query}: {strategy} and {_PROMPT[0]} must give the same results"
        )
    return found


def _sorted(changes: pa.Table) -> pa.Table:
    return changes.sort_by([(name, "ascending") for name in changes.column_names]).combine_chunks()


Loads = dict[str, dict[str, list[list[float]]]]
"""CPU seconds to each number of results, by query, strategy and run."""


def _loads(scale: Scale, progress: Progress) -> Loads:
    """Run all queries at full load, all strategies in turn, several times."""
    found: Loads = {}
    for query in QUERIES:
        case = Case(query, scale.load, scale.load_seconds, values=10 * scale.load)
        runs: dict[str, list[list[float]]] = {strategy: [] for strategy in STRATEGIES}
        for repeat in range(scale.repeats):
            progress(f"full load, {query}, run {repeat + 1} of {scale.repeats}")
            for strategy, seconds in runs.items():
                seconds.append(seconds_to(case, strategy, scale.marks, scale.batch))
        found[query] = runs
    return found


def _fastest(runs: Sequence[list[float]]) -> list[float]:
    return min(runs, key=lambda seconds: seconds[-1])


def _ratios(loads: Loads) -> list[dict[str, object]]:
    """Return Hybrid's CPU time over Negative Tuple's in each round of each query."""
    return [
        {
            "experiment": "full load",
            "case": query,
            "hybrid over negative, by run": [
                round(one[-1] / other[-1], 3)
                for one, other in zip(runs["hybrid"], runs["negative"], strict=True)
            ],
        }
        for query, runs in loads.items()
    ]


def bench_pipelines(progress: Progress, *, quick: bool = False) -> Report:
    """Replay all cases under every strategy, then run the queries under full load."""
    scale = _QUICK if quick else Scale()
    done: dict[Case, dict[str, Delays]] = {}
    rows: list[dict[str, Figure]] = []
    series: dict[str, dict[str, list[tuple[float | str, float]]]] = {}
    for experiment, varied, case in cases(scale):
        if case not in done:
            progress(f"{experiment}: {varied}")
            done[case] = _replay_all(case)
        assert case.stores or all(delays.results for delays in done[case].values()), case.query
        for strategy, delays in done[case].items():
            if not delays.results:  # few stores, always present: the number never changes
                continue
            rows.append(
                {
                    "experiment": experiment,
                    "case": varied,
                    "strategy": STRATEGIES[strategy],
                    "results": delays.results,
                    "average ms": round(delays.average, 2),
                    "longest ms": round(delays.longest, 1),
                    "CPU ms": round(delays.work, 2),
                }
            )
            place = varied if experiment == "queries" else float(varied)
            series.setdefault(experiment, {}).setdefault(STRATEGIES[strategy], []).append(
                (place, delays.average)
            )
    runs = _loads(scale, progress)
    loads = {
        query: {strategy: _fastest(some) for strategy, some in by_strategy.items()}
        for query, by_strategy in runs.items()
    }
    for query, by_strategy in loads.items():
        for strategy, seconds in by_strategy.items():
            rows.append(
                {
                    "experiment": "full load",
                    "case": query,
                    "strategy": STRATEGIES[strategy],
                    "results": scale.marks[-1],
                    "average ms": "",
                    "longest ms": "",
                    "CPU ms": round(1_000 * seconds[-1], 1),
                }
            )
    progress("by the wall clock")
    for query in QUERIES:
        wrong, results = wrong_by_wall_clock(Case(query, _USUAL_RATE, scale.rows / _USUAL_RATE))
        rows.append(
            {
                "experiment": f"wall clock, {LATE_TICKS * TICK // 1_000} ms",
                "case": query,
                "strategy": "Clock Triggered",
                "results": results,
                "average ms": "",
                "longest ms": "",
                "CPU ms": "",
                "wrong": wrong,
            }
        )
    return Report(
        "pipelines",
        "How late do results of queries above joins come, and what do they cost, under the four "
        "strategies of [HammadTR]?",
        [{**row, "wrong": row.get("wrong", "")} for row in rows],
        _claims(rows, loads, scale),
        plots=_plots(series, loads, scale),
        details=_ratios(runs),
    )


def _claims(
    rows: Sequence[Mapping[str, Figure]],
    loads: Mapping[str, Mapping[str, Sequence[float]]],
    scale: Scale,
) -> list[Claim]:
    delays = {
        (row["case"], row["strategy"]): float(row["average ms"])
        for row in rows
        if row["experiment"] == "queries"
    }
    claims = []
    for strategy in _PROMPT:
        least = min(
            delays[query, STRATEGIES["input"]] / delays[query, STRATEGIES[strategy]]
            for query in QUERIES
        )
        text = (
            f"average delay of Input Triggered over that of {STRATEGIES[strategy]} at "
            f"{_USUAL_RATE} rows/s, least of {', '.join(QUERIES)}"
        )
        claims.append(Claim(text, round(least, 1), 10.0, "at least"))
    hybrid, negative = (
        sum(loads[query][name][-1] for query in QUERIES) for name in ("hybrid", "negative")
    )
    text = (
        f"CPU time of Hybrid over that of Negative Tuple to {scale.marks[-1]:,} results at full "
        f"load, {', '.join(QUERIES)} together"
    )
    return [*claims, Claim(text, round(hybrid / negative, 3), 1.0)]


def _plots(
    series: Mapping[str, Mapping[str, Sequence[tuple[float | str, float]]]],
    loads: Mapping[str, Mapping[str, Sequence[float]]],
    scale: Scale,
) -> list[Plot]:
    delay = "average output delay, ms"
    plots = [
        Plot(
            "pipelines-queries",
            f"Output delay at {_USUAL_RATE} rows per second",
            "query",
            delay,
            series["queries"],
            "bar",
            "y",
        )
    ]
    for experiment, x in (
        ("rates, Q3", "rows per second"),
        ("rates, Q4", "rows per second"),
        ("depth, Q2", "joined streams"),
        ("selectivity, Q1", "selectivity of the predicate"),
    ):
        kind, _, query = experiment.partition(", ")
        plots.append(
            Plot(
                f"pipelines-{kind}-{query.lower()}",
                f"Output delay of {query}",
                x,
                delay,
                series[experiment],
                log="y",
            )
        )
    for query in ("Q1", "Q2", "Q4"):
        lines = {
            STRATEGIES[name]: list(zip(scale.marks, seconds, strict=True))
            for name, seconds in loads[query].items()
        }
        plots.append(
            Plot(
                f"pipelines-load-{query.lower()}",
                f"{query} at full load",
                "results",
                "CPU seconds",
                lines,
            )
        )
    return plots
