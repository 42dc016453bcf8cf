"""Verdicts follow the figures, and are absent where figures are missing."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.pages import names, page_of, read_documents
from benchmarks.papers import EXPERIMENTS, PAPERS, page_table, paper_tables, tally
from benchmarks.verdicts import Experiment, Outcome, Verdict, claimed, graded, in_cases, rows_with

DOCUMENTS = read_documents(Path(__file__).parents[2] / "docs" / "results")
MEASURED = [experiment for experiment in EXPERIMENTS if experiment.benchmark in DOCUMENTS]
CLAIM = {"claim": "time of A over B", "measured": 2, "side": "at most", "bound": 3, "holds": True}


def identify(experiment: Experiment) -> str:
    return f"{experiment.paper}, {experiment.where}, {experiment.claim[:40]}"


def find(beginning: str) -> Experiment:
    return next(experiment for experiment in EXPERIMENTS if experiment.claim.startswith(beginning))


@pytest.mark.parametrize(
    ("kept", "verdict"),
    [
        ([True] * 4, Verdict.HOLDS),
        ([True] * 3 + [False], Verdict.DIRECTION),
        ([True, False], Verdict.FAILS),
    ],
)
def test_three_of_four_cases_are_a_direction(kept: list[bool], verdict: Verdict) -> None:
    assert in_cases(kept, "so it is") == Outcome(verdict, "so it is")


def test_missing_figures_give_no_verdict() -> None:
    experiment = Experiment(
        1,
        "5",
        "A is slow",
        "join",
        lambda document: graded("yes", holds=claimed(document, "time of A") > 1),
    )
    assert experiment.outcome({"join": {"claims": [CLAIM]}}) == Outcome(Verdict.HOLDS, "yes")
    assert (
        experiment.outcome({"join": {"claims": [CLAIM | {"measured": 1}]}}).verdict is Verdict.FAILS
    )
    assert experiment.outcome({"join": {"claims": []}}).verdict is Verdict.UNKNOWN
    assert (
        experiment.outcome({"join": {"claims": [CLAIM], "error": "it crashed"}}).verdict
        is Verdict.UNKNOWN
    )
    assert experiment.outcome({}).verdict is Verdict.UNKNOWN
    with pytest.raises(LookupError):
        in_cases([], "nothing")
    with pytest.raises(LookupError):
        rows_with([{"load": 1}], load=2)


@pytest.mark.parametrize("experiment", MEASURED, ids=identify)
def test_the_figures_of_the_repository_are_enough_for_a_verdict(experiment: Experiment) -> None:
    outcome = experiment.judge(DOCUMENTS[experiment.benchmark])
    assert outcome.verdict is not Verdict.UNKNOWN
    assert outcome.result
    if outcome.verdict is not Verdict.HOLDS:
        assert experiment.why, "a sentence says why"


def _rows(experiment: str, **figures: float) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for row in document["rows"]:
            if row.get("experiment", "").startswith(experiment):
                row |= {name: value for name, value in figures.items() if name in row}
                row |= {
                    name.replace("_over_", "/"): value
                    for name, value in figures.items()
                    if "_over_" in name
                }

    return change


def _alike(document: dict[str, Any]) -> None:
    for row in document["rows"]:
        row |= {name: 5.0 for name in ("average ms", "longest ms", "CPU ms") if row.get(name)}


def _one_order(document: dict[str, Any]) -> None:
    for row in document["rows"]:
        row["ratio"] = 1.0


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        ("MQT has the least mean response time", _rows("windows, hash", MQT_over_LWO=1.2)),
        ("MQT is best for all sizes of bursts", _rows("bursts", MQT_over_SWF=1.2)),
        ("MQT is best wherever", _rows("80 %", MQT_over_LWO=1.2)),
        ("Driven by input alone", _alike),
        ("Higher rates bring", _alike),
        ("The deeper the pipeline", _alike),
        ("The best join order", _one_order),
    ],
)
def test_other_figures_give_another_verdict(
    claim: str, change: Callable[[dict[str, Any]], None]
) -> None:
    experiment = find(claim)
    document = copy.deepcopy(dict(DOCUMENTS[experiment.benchmark]))
    assert experiment.judge(document).verdict in {Verdict.HOLDS, Verdict.DIRECTION}
    change(document)
    assert experiment.judge(document).verdict is Verdict.FAILS


def test_every_experiment_is_in_the_table_of_its_paper_and_on_its_page() -> None:
    tables = paper_tables(DOCUMENTS, names())
    for experiment in EXPERIMENTS:
        assert experiment.paper in PAPERS
        assert experiment.claim in tables
        assert (f"[{experiment.benchmark}]({experiment.benchmark}.md)" in tables) is (
            experiment.benchmark in names()
        )
        if experiment.benchmark in DOCUMENTS:
            assert experiment.claim in page_of(
                experiment.benchmark, DOCUMENTS[experiment.benchmark]
            )
    assert page_table("join", DOCUMENTS) == ""
    assert tally({}) == f"Of {len(EXPERIMENTS)} findings {len(EXPERIMENTS)} are not measured yet."


def invalidation(
    *, loops: float = 100.0, flat: float = 1.0, all_buckets: float = 2.0, stale: float = 1.3
) -> dict[str, Any]:
    """Return figures as in [Kostowski06], with some changed."""
    rows: list[dict[str, Any]] = [
        {
            "figure": "4: rates",
            "join": join,
            "ms": ms,
            "ms without results": ms,
            "comparisons": 10 * ms,
        }
        for join, ms in (("WNL", loops), ("WHJ", 1.0))
    ]
    rows += [
        {
            "figure": "5: buckets",
            "values": 100,
            "buckets": buckets,
            "ms without results": ms,
            "comparisons": ms,
        }
        for buckets, ms in ((1, 100.0), (10, 10.0), (100, 1.0), (1000, flat))
    ]
    times = {
        "probe time": 1.0,
        "probe and insert time": 1.0,
        "probe all buckets": all_buckets,
        "optimal": all_buckets,
    }
    rows += [
        {
            "figure": "7: strategies",
            "rows/s": "1, 1",
            "invalidation": name,
            "ms": ms,
            "ms without results": ms,
        }
        for name, ms in times.items()
    ]
    held = {
        "probe time": stale,
        "probe and insert time": 1.0,
        "probe all buckets": 1.0,
        "optimal": 1.0,
    }
    rows += [
        {"figure": "8: memory", "invalidation": name, "rows held": 1000 * rows_held}
        for name, rows_held in held.items()
    ]
    return {"rows": rows, "claims": []}


@pytest.mark.parametrize(
    ("figure", "change"),
    [
        ("4", {"loops": 0.5}),
        ("5", {"flat": 0.1}),
        ("6", {"flat": 0.1}),
        ("7", {"all_buckets": 0.9}),
        ("8", {"stale": 1.0}),
    ],
)
def test_figures_of_kostowski06_are_judged(figure: str, change: dict[str, float]) -> None:
    experiment = next(
        one for one in EXPERIMENTS if one.paper == 4 and one.where.endswith(f"Figure {figure}")
    )
    assert experiment.judge(invalidation()).verdict is Verdict.HOLDS
    assert experiment.judge(invalidation(**change)).verdict is Verdict.FAILS


def intervals(*, hash2: float = 4.0, best: float = 2, five: float = 1.5) -> dict[str, Any]:
    """Return figures as in [Golab03, Figure 4]; ``best`` scales the best interval of HASH30."""
    heights = {"NLJ": (1.0, 1), "HASH2": (hash2, 1), "HASH10": (6.0, 1), "HASH30": (7.0, best)}
    rows = [
        {
            "sweep": f"intervals, rates {times}",
            "join": join,
            "interval or buckets": interval,
            "rows/s": top / (1 + abs(interval / 5 - place)),
        }
        for times in (1, 10)
        for join, (top, place) in heights.items()
        for interval in (1, 5, 10, 50)
    ]
    rows += [
        {
            "sweep": "allocation, general lazy",
            "join": join,
            "interval or buckets": 12,
            "rows/s": rate,
            "comparisons per row": 1 / rate,
        }
        for join, rate in (("Equal", 1.0), ("5 to slow", five))
    ]
    return {"rows": rows, "claims": []}


@pytest.mark.parametrize(("where", "change"), [("6.3", {"hash2": 0.5}), ("6.5", {"five": 0.9})])
def test_intervals_of_golab03_are_judged(where: str, change: dict[str, float]) -> None:
    experiment = next(one for one in EXPERIMENTS if one.paper == 3 and one.where.startswith(where))
    assert experiment.judge(intervals()).verdict is Verdict.HOLDS
    assert experiment.judge(intervals(**change)).verdict is Verdict.FAILS


def test_a_best_interval_has_to_grow_with_buckets_at_both_rates() -> None:
    experiment = next(one for one in EXPERIMENTS if one.where == "6.4, Figure 4a")
    assert experiment.judge(intervals()).verdict is Verdict.HOLDS
    assert experiment.judge(intervals(best=1)).verdict is Verdict.FAILS
    mixed = intervals()
    others = [row for row in intervals(best=1)["rows"] if row["sweep"] == "intervals, rates 1"]
    mixed["rows"] = [row for row in mixed["rows"] if row["sweep"] != others[0]["sweep"]] + others
    assert experiment.judge(mixed).verdict is Verdict.FAILS


def test_of_two_lazy_intervals_the_longer_has_to_take_less() -> None:
    rates = {"eager": 9.0, "lazy 5": 6.0, "lazy 10": 5.0}

    def judge(**changed: float) -> Verdict:
        rows = [
            {"join": f"{interval}, {join}", "rows/s": rate}
            for interval, rate in {
                **rates,
                **{name.replace("_", " "): rate for name, rate in changed.items()},
            }.items()
            for join in ("nested loop", "hash")
        ]
        return find("The longer the interval").judge({"rows": rows}).verdict

    assert judge() is Verdict.HOLDS
    assert judge(lazy_10=7.0) is Verdict.FAILS


def test_longest_times_are_medians_of_runs_where_there_are_some() -> None:
    medians = "longest by window, median of runs"

    def judge(**figures: float) -> Outcome:
        rows = [
            {
                "experiment": "windows, hash",
                "scheduler": scheduler,
                "clock": clock,
                "longest by window": [1.0, longest],
                **({medians: [1.0, figures[scheduler]]} if figures else {}),
            }
            for scheduler, longest in (("mqt", 3.0), ("swf", 2.0))
            for clock in ("measured", "simulated")
        ]
        return find("The longest response time").judge({"rows": [], "details": rows})

    assert judge().verdict is Verdict.FAILS
    assert "next run" in judge().result
    assert judge(mqt=1.0, swf=2.0).verdict is Verdict.HOLDS


def test_hybrid_is_cheaper_only_if_it_is_in_every_run() -> None:
    experiment = find("Hybrid costs less")
    document = copy.deepcopy(dict(DOCUMENTS["pipelines"]))

    def judge(most: float) -> Outcome:
        ratios = {"hybrid over negative, by run": [0.7, most]}
        document["details"] = [{"case": query, **ratios} for query in ("Q2", "Q3", "Q4")]
        return experiment.judge(document)

    assert judge(0.9).verdict is Verdict.HOLDS
    assert judge(1.1).verdict is Verdict.DIRECTION
    assert "0.7 to 1.1" in judge(1.1).result


def test_plans_with_many_matches_decide_once_they_are_measured() -> None:
    experiment = find("When selectivities change")
    document = copy.deepcopy(dict(DOCUMENTS["overload"]))
    for shape in ("linear", "bushy"):
        text = f"{shape} plan, 5 to 50 matches per probe, selectivities switched: results of jaqpot"
        document["claims"] = [CLAIM | {"claim": text, "measured": 2.5}, *document["claims"]]
    assert experiment.judge(document).verdict is Verdict.HOLDS


def test_readings_of_the_lab_are_judged_by_both_attributes_where_resources_are_short() -> None:
    document = copy.deepcopy(dict(DOCUMENTS["overload"]))
    for row in document["details"]:
        if "ratio" in row and str(row["part"]).endswith("by epoch"):
            row["ratio"] = 0.5
    assert find("On the lab's sensors").judge(document).verdict is Verdict.FAILS


def test_stale_results_of_the_lab_stand_beside_what_lemma_1_allows() -> None:
    result = find("JAQPOT's refresh rates").judge(DOCUMENTS["overload"]).result
    assert re.search(r"satisfy Lemma 1 in [\d.]+ % of the seconds", result)
