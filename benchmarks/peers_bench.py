"""Muntin compared with other systems: the same data, the same results, one run.

Each system runs in a separate process, one after the other, and may use all cores. Timed is what
lies between the start of reading and the last result; starts of processes, Java and sessions,
imports and runs to warm up are not, for all alike. All reduce their results to a number and a
checksum that does not depend on order, which must be those of DuckDB. A system that cannot do a
workload, does not finish in time, fails or gives other results is in the table with that.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from benchmarks.peers_data import Workload, write_data
from benchmarks.peers_environments import (
    InstallError,
    default_folder,
    is_ready,
    make_environment,
    python_of,
)
from benchmarks.peers_remarks import remark
from benchmarks.peers_runs import Limits, Outcome, Peer, run_jobs
from benchmarks.peers_workloads import all_workloads, quick_workloads
from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure, Progress, Report, spread
from benchmarks.spark_queries import temporary_folder

OURS, OURS_ON_SPARK, FLOOR = "Muntin", "Muntin on Spark", "DuckDB, batch"
_BATCHES = (4, 1_000)
"""Four times as large, and everything in one batch."""
PEERS = (
    Peer(OURS, "muntin_process", batches=_BATCHES),
    Peer(OURS_ON_SPARK, "muntin_spark", batches=_BATCHES),
    Peer("Spark", "spark", options={"store": "default"}, batches=_BATCHES),
    Peer("Spark, RocksDB", "spark", options={"store": "rocksdb"}),
    Peer("Flink SQL", "flink", own=True),
    Peer("Pathway", "pathway", own=True),
    Peer("Bytewax", "bytewax", own=True),
    Peer(FLOOR, "duckdb"),
)
_NAN = float("nan")
_TIMES = ", batches times "
"""Between a workload and a multiple of its batches, in the name of a job."""
Jobs: TypeAlias = Mapping[str, Mapping[str, Mapping[str, object]]]


@dataclass(frozen=True)
class Place:
    """The folder of environments, and whether those that are not there are made."""

    folder: Path
    install: bool


@dataclass(frozen=True)
class Measured:
    """The outcomes of a workload by system, and those with the best batch size of each."""

    workload: Workload
    outcomes: Mapping[str, Outcome]
    best: Mapping[str, Outcome]

    def rate(self, system: str) -> float:
        """Return rows per second; not a number if there is no result."""
        outcome = self.outcomes.get(system)
        return self.workload.streams.rows / outcome.median if outcome and outcome.seconds else _NAN

    def rows(self) -> list[dict[str, Figure]]:
        """As lines of the report."""
        return [self._row(system, outcome) for system, outcome in self.outcomes.items()]

    def _row(self, system: str, outcome: Outcome) -> dict[str, Figure]:
        row: dict[str, Figure] = {"workload": self.workload.name, "system": system}
        if not outcome.seconds:
            empty = dict.fromkeys(("seconds", "least", "most", "rows per second", "results"), "")
            why = [
                outcome.reason.replace("|", "/"),
                *([remark(system, self.workload)] if outcome.over else []),
            ]
            return {
                **row,
                **empty,
                **self._ratios(outcome.over, "more than "),
                "remark": "; ".join(why),
            }
        return {
            **row,
            **spread(outcome.seconds),
            "rows per second": round(self.rate(system)),
            "results": outcome.total,
            **self._ratios(outcome.median),
            "remark": remark(system, self.workload),
        }

    def _ratios(self, seconds: float, more_than: str = "") -> dict[str, Figure]:
        """Seconds over ours."""
        found: dict[str, Figure] = {}
        for name, ours in (("time / Muntin", OURS), ("time / on Spark", OURS_ON_SPARK)):
            ratio = seconds * self.rate(ours) / self.workload.streams.rows
            found[name] = (
                f"{more_than}{ratio:.3g}"
                if more_than and ratio > 0
                else round(ratio, 2)
                if ratio > 0
                else ""
            )
        return found


def bench_peers(
    progress: Progress,
    *,
    quick: bool = False,
    environments: Path | None = None,
    peers: Sequence[Peer] = PEERS,
) -> Report:
    """Run all workloads in all systems, or in some including DuckDB.

    A quick run uses only the systems that are already installed.
    """
    workloads = quick_workloads() if quick else all_workloads()
    limits = Limits(120.0, 1, 0.0) if quick else Limits()
    place = Place(environments or default_folder(), install=not quick)
    with temporary_folder() as data:
        progress(f"writing the data of {len(workloads)} workloads")
        jobs = {
            workload.name: _write(workload, data / str(place))
            for place, workload in enumerate(workloads)
        }
        found: dict[str, dict[str, Outcome]] = {}
        for peer in peers:
            chosen = {
                name: job
                for work in workloads
                if not work.systems or peer.name in work.systems
                for name, job in _sized(peer, work.name, jobs[work.name], quick=quick).items()
            }
            found[peer.name] = run_peer(progress, peer, chosen, limits, place)
    return report(workloads, found)


def _sized(
    peer: Peer, name: str, job: Mapping[str, Mapping[str, object]], *, quick: bool
) -> dict[str, Mapping[str, Mapping[str, object]]]:
    """Return the job of a workload, and the same with other sizes of batches."""
    found = {name: job}
    for times in () if quick else peer.batches:
        larger = {key: {**each, "times": times} for key, each in job.items()}
        found[f"{name}{_TIMES}{times}"] = larger
    return found


def _write(workload: Workload, folder: Path) -> dict[str, dict[str, object]]:
    write_data(folder / "all", workload.streams)
    write_data(folder / "warm", workload.warm().streams)
    return {"job": workload.job(folder / "all"), "warm": workload.warm().job(folder / "warm")}


def run_peer(
    progress: Progress, peer: Peer, jobs: Jobs, limits: Limits, place: Place
) -> dict[str, Outcome]:
    """Return the outcomes of a system; its environment is made before, if it has one."""
    python, folder = Path(sys.executable), place.folder
    if peer.own:
        if not place.install and not is_ready(peer.script, folder):
            return dict.fromkeys(
                jobs,
                Outcome(reason="not run: its environment is not there, and a quick run makes none"),
            )
        progress(f"{peer.name}: environment {python_of(peer.script, folder).parents[1]}")
        try:
            python = make_environment(peer.script, folder)
        except InstallError as error:
            return dict.fromkeys(jobs, Outcome(reason=f"cannot: {error}"))
    return run_jobs(progress, python, peer, jobs, limits)


def report(workloads: Sequence[Workload], found: Mapping[str, Mapping[str, Outcome]]) -> Report:
    """Return the table, what it shows, and its pictures."""
    measured = [
        Measured(workload, _checked(workload, found), _checked(workload, _best(workload, found)))
        for workload in workloads
    ]
    rows = [row for one in measured for row in one.rows()]
    other = sum("gives other results" in str(row["remark"]) for row in rows)
    claims = [Claim("outcomes with other results than DuckDB's", other, 0)]
    for one in measured:
        streaming = [
            one.rate(system)
            for system in one.outcomes
            if system not in {OURS, OURS_ON_SPARK, FLOOR}
        ]
        best = max((rate for rate in streaming if rate > 0), default=_NAN)
        if not one.workload.places and best > 0 and one.rate(OURS) > 0:
            text = (
                "rows per second over those of the fastest other streaming system, "
                f"{one.workload.name}"
            )
            claims.append(Claim(text, round(one.rate(OURS) / best, 1), 1.0, "at least"))
    claims += _on_spark(measured)
    question = (
        "How fast is Muntin beside Spark, Flink, Pathway, Bytewax and DuckDB, on the same data "
        "with the same results?"
    )
    return Report(
        "peers",
        question,
        rows,
        claims,
        plots=_plots(measured),
        details=_details(measured),
        tables=_tables(measured),
    )


def _on_spark(measured: Sequence[Measured]) -> list[Claim]:
    """Return in how many workloads Muntin on Spark is faster than others that can run them."""
    claims = []
    for system, least in (("Spark", 1.0), ("Flink SQL", 2 / 3), ("Pathway", 2 / 3)):
        compared = [one for one in measured if one.rate(OURS_ON_SPARK) > 0 and one.rate(system) > 0]
        if compared:
            faster = sum(one.rate(OURS_ON_SPARK) > one.rate(system) for one in compared)
            text = (
                f"workloads (of {len(compared)}) in which Muntin on Spark is faster than {system}"
            )
            claims.append(Claim(text, faster, math.ceil(least * len(compared)), "at least"))
    return claims


def _checked(workload: Workload, found: Mapping[str, Mapping[str, Outcome]]) -> dict[str, Outcome]:
    """Return the outcomes of a workload; those that differ from DuckDB's become the difference."""
    outcomes = {
        system: each[workload.name] for system, each in found.items() if workload.name in each
    }
    floor = outcomes[FLOOR]
    assert floor.seconds, (
        f"{workload.name}: there is nothing to compare with, since DuckDB {floor.reason}"
    )
    return {
        system: outcome if not outcome.seconds else _compare(outcome, floor)
        for system, outcome in outcomes.items()
    }


def _best(
    workload: Workload, found: Mapping[str, Mapping[str, Outcome]]
) -> dict[str, dict[str, Outcome]]:
    """Return for each system the fastest of its outcomes with any size of batches."""
    best: dict[str, dict[str, Outcome]] = {}
    for system, outcomes in found.items():
        of_workload = [
            outcome for name, outcome in outcomes.items() if name.split(_TIMES)[0] == workload.name
        ]
        finished = [outcome for outcome in of_workload if outcome.seconds]
        if of_workload:
            chosen = min(finished, key=lambda one: one.median) if finished else of_workload[0]
            best[system] = {workload.name: chosen}
    return best


def _compare(outcome: Outcome, floor: Outcome) -> Outcome:
    wrong = [
        name
        for name, results in floor.results.items()
        if list(outcome.results.get(name, ())) != list(results)
    ]
    if not wrong:
        return outcome
    first = wrong[0]
    counts = f"{outcome.results.get(first, [0])[0]:,} instead of {floor.results[first][0]:,}"
    return Outcome(
        reason=f"gives other results: {counts} for the window of {int(first) / 1_000:g} s"
    )


def _tables(measured: Sequence[Measured]) -> dict[str, list[dict[str, Figure]]]:
    """Ratios at a glance: a line for each workload, a column for each system."""
    at_best = [Measured(one.workload, one.best, one.best) for one in measured]
    tables = {
        "Seconds over those of Muntin in one process": (measured, "time / Muntin"),
        "Seconds over those of Muntin on Spark": (measured, "time / on Spark"),
        "The same, each system with its best size of batches": (at_best, "time / on Spark"),
    }
    return {
        title: [
            {
                "workload": one.workload.name,
                **{str(row["system"]): _cell(row, column) for row in one.rows()},
            }
            for one in shown
        ]
        for title, (shown, column) in tables.items()
    }


def _cell(row: Mapping[str, Figure], column: str) -> Figure:
    """Return the ratio of a line, or in a word why there is none."""
    return (
        row[column]
        if row[column] or row["seconds"]
        else str(row["remark"]).partition(":")[0].partition(";")[0]
    )


def _details(measured: Sequence[Measured]) -> list[dict[str, object]]:
    """Return all seconds, and the checksums that were compared."""
    return [
        {
            "workload": one.workload.name,
            "system": system,
            "seconds": list(outcome.seconds),
            "results": dict(outcome.results),
        }
        for one in measured
        for system, outcome in one.outcomes.items()
    ]


def _plots(measured: Sequence[Measured]) -> list[Plot]:
    """Plot rows per second: bars for the workloads, and a line per system where the join grows."""
    plain = [one for one in measured if not one.workload.places]
    bars: dict[str, list[tuple[float | str, float]]] = {
        peer.name: [(one.workload.name, one.rate(peer.name)) for one in plain] for peer in PEERS
    }
    plots = [
        Plot("peers", "Rows per second, all workloads", "", "rows per second", bars, "bar", log="y")
    ]
    sweeps = dict.fromkeys(sweep for one in measured for sweep in one.workload.places)
    for sweep in sweeps:
        points = sorted(
            (one for one in measured if sweep in one.workload.places),
            key=lambda one: one.workload.places[sweep],
        )
        lines = {
            system: [
                (one.workload.places[sweep], one.rate(system))
                for one in points
                if one.rate(system) > 0
            ]
            for system in points[0].outcomes
        }
        drawn: dict[str, list[tuple[float | str, float]]] = {
            system: list(line) for system, line in lines.items() if line
        }
        name = f"peers-{sweep.replace(' ', '-')}"
        plots.append(
            Plot(name, f"One join, growing: {sweep}", sweep, "rows per second", drawn, log="xy")
        )
    return plots
