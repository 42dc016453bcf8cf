"""All experiments of the papers with their verdicts, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from benchmarks import (
    verdicts_paper1,
    verdicts_paper2,
    verdicts_paper3,
    verdicts_paper4,
    verdicts_paper5,
)
from benchmarks.markdown import table
from benchmarks.verdicts import Document, Experiment, Verdict

PAPERS = {
    1: "[Hammad03]: scheduling for shared window joins (Hammad and others)",
    2: "[HammadTR]: efficient execution of sliding-window queries (Hammad and others)",
    3: "[Golab03]: sliding-window multi-joins (Golab and Özsu)",
    4: "[Kostowski06]: stream-based join, its invalidation (Kostowski and Claypool)",
    5: "[Mukherji11]: JAQPOT, throughput and freshness under overload (Mukherji and Rundensteiner)",
}

_PLURAL = {
    Verdict.HOLDS: "hold",
    Verdict.DIRECTION: "hold in direction",
    Verdict.FAILS: "do not hold",
    Verdict.UNKNOWN: "are not measured yet",
}

EXPERIMENTS: tuple[Experiment, ...] = (
    *verdicts_paper1.EXPERIMENTS,
    *verdicts_paper2.EXPERIMENTS,
    *verdicts_paper3.EXPERIMENTS,
    *verdicts_paper4.EXPERIMENTS,
    *verdicts_paper5.EXPERIMENTS,
)


def tally(documents: Mapping[str, Document]) -> str:
    """Return the number of experiments per verdict."""
    counts = Counter(experiment.outcome(documents).verdict for experiment in EXPERIMENTS)
    told = [f"{counts[verdict]} {words}" for verdict, words in _PLURAL.items() if counts[verdict]]
    return f"Of {len(EXPERIMENTS)} findings {', '.join(told)}."


def paper_tables(documents: Mapping[str, Document], pages: Collection[str]) -> str:
    """Return a table for each paper, with links to the pages of benchmarks that there are."""
    parts = []
    for number, title in PAPERS.items():
        some = [experiment for experiment in EXPERIMENTS if experiment.paper == number]
        rows = [
            [experiment.where, *_cells(experiment, documents), _link(experiment.benchmark, pages)]
            for experiment in some
        ]
        parts.append(
            f"### {title}\n\n"
            + table(["where", "what the paper found", "what we find", "verdict", "page"], rows)
        )
    return "\n\n".join(parts)


def page_table(benchmark: str, documents: Mapping[str, Document]) -> str:
    """Return the experiments that a benchmark repeats; nothing if there are none."""
    some = [experiment for experiment in EXPERIMENTS if experiment.benchmark == benchmark]
    rows = [
        [f"{_key(experiment)}, {experiment.where}", *_cells(experiment, documents)]
        for experiment in some
    ]
    return table(["paper", "what it found", "what we find", "verdict"], rows) if rows else ""


def _key(experiment: Experiment) -> str:
    """Return the bibliography key of the experiment's paper."""
    return PAPERS[experiment.paper].partition(":")[0]


def _cells(experiment: Experiment, documents: Mapping[str, Document]) -> list[str]:
    outcome = experiment.outcome(documents)
    verdict = f"**{outcome.verdict}**"
    if experiment.why and outcome.verdict in {Verdict.DIRECTION, Verdict.FAILS}:
        verdict += f". {experiment.why}"
    return [experiment.claim, outcome.result, verdict]


def _link(benchmark: str, pages: Collection[str]) -> str:
    return f"[{benchmark}]({benchmark}.md)" if benchmark in pages else benchmark
