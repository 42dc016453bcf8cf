"""[Hammad03]: its worked examples (Figures 2(a), 3(a), 4) and its equations.

The reference schedulers are checked against both.

Rows are named as in the figures: ``a11`` is the row of stream A with time 11. History has the odd
times in A, the even ones in B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from muntin.model.settings import Scheduler
from muntin.testing.paper_costs.response_times import Burst, isolated, lwo, swf
from muntin.testing.schedule_levels import max_throughput
from muntin.testing.schedule_trace import (
    FoundPair,
    ReleasedPair,
    ScanStep,
    ScheduleRow,
    Setup,
    Trace,
    Viewer,
)
from muntin.testing.schedules import simulate

CIRCLE, STAR = 1, 2
OTHER = 3


def pictured(windows: tuple[int, int, int], key: Callable[[str], int]) -> Setup:
    """Return the figures' streams up to a11 and b12, which arrives during a11's first scan."""
    rows = [ScheduleRow(time % 2 == 0, time, key(f"{'ba'[time % 2]}{time}")) for time in range(11)]
    rows += [ScheduleRow(0, 11, key("a11"), arrival=0), ScheduleRow(1, 12, key("b12"), arrival=1)]
    queries = tuple(
        Viewer(f"Q{number}", (length, length)) for number, length in enumerate(windows, 1)
    )
    return Setup(tuple(rows), queries)


def symbols(name: str) -> int:
    """Return which rows of Figures 2(a) and 3(a) join."""
    if name in {"a11", "b8", "b4", "b0"}:
        return STAR
    return CIRCLE if name in {"b12", "a9", "a5", "a1"} else OTHER + (name[0] == "b")


FIGURE_3 = pictured((4, 8, 12), symbols)
FIGURE_4 = pictured((4, 6, 12), lambda _: STAR)


def name(setup: Setup, number: int | None) -> str:
    """Return the row as the figures call it."""
    return "-" if number is None else f"{'ab'[setup.rows[number].stream]}{setup.rows[number].time}"


def pair(setup: Setup, outer: int, partner: int) -> str:
    """Return a pair as the figures write it, the row of A first."""
    return ",".join(
        name(setup, number)
        for number in sorted((outer, partner), key=lambda number: setup.rows[number].stream)
    )


def found_and_released(trace: Trace) -> list[str]:
    """Return the pairs that the join finds and those the router then releases to each query."""
    steps: list[str] = []
    for step in trace.steps:
        if isinstance(step, FoundPair):
            steps.append(pair(trace.setup, step.outer, step.partner))
        elif isinstance(step, ReleasedPair):
            to = f"{pair(trace.setup, step.outer, step.partner)} > {step.query}"
            steps = [*steps[:-1], f"{steps[-1]} | {to}"] if ">" in steps[-1] else [*steps, to]
    return steps


def outputs(trace: Trace) -> dict[str, list[str]]:
    return {
        query.name: [pair(trace.setup, *each) for each in trace.output(query.name)]
        for query in trace.setup.queries
    }


def scans(trace: Trace) -> list[str]:
    """Return the schedule: which row scanned which window."""
    levels = sorted(query.windows for query in trace.setup.queries)
    return [
        f"{name(trace.setup, outer)}:w{levels.index(windows) + 1}"
        for outer, windows in trace.schedule
    ]


ISOLATED = {
    "Q1": ["a11,b8", "a9,b12"],
    "Q2": ["a11,b8", "a11,b4", "a9,b12", "a5,b12"],
    "Q3": ["a11,b8", "a11,b4", "a11,b0", "a9,b12", "a5,b12", "a1,b12"],
}


@pytest.mark.parametrize("buckets", [None, 1, 2, 7])
def test_figure_2a_lwo_finishes_the_largest_window_and_routes_each_pair_to_the_windows_that_hold_it(
    buckets: int | None,
) -> None:
    trace = simulate(replace(FIGURE_3, buckets=buckets), Scheduler.LWO)
    assert scans(trace) == ["a11:w3", "b12:w3"]
    assert found_and_released(trace) == [
        "a11,b8",
        "a11,b8 > Q1 | a11,b8 > Q2 | a11,b8 > Q3",
        "a11,b4",
        "a11,b4 > Q2 | a11,b4 > Q3",
        "a11,b0",
        "a11,b0 > Q3",
        "a9,b12",
        "a9,b12 > Q1 | a9,b12 > Q2 | a9,b12 > Q3",
        "a5,b12",
        "a5,b12 > Q2 | a5,b12 > Q3",
        "a1,b12",
        "a1,b12 > Q3",
    ]
    assert outputs(trace) == ISOLATED
    assert trace.most_held == 0


@pytest.mark.parametrize("buckets", [None, 1, 2, 7])
def test_figure_3a_the_twelve_steps_of_swf(buckets: int | None) -> None:
    trace = simulate(replace(FIGURE_3, buckets=buckets), Scheduler.SWF)
    assert scans(trace) == ["a11:w1", "b12:w1", "a11:w2", "b12:w2", "a11:w3", "b12:w3"]
    assert found_and_released(trace) == [
        "a11,b8",
        "a11,b8 > Q1 | a11,b8 > Q2 | a11,b8 > Q3",
        "a9,b12",
        "a9,b12 > Q1",
        "a11,b4",
        "a11,b4 > Q2 | a11,b4 > Q3",
        "a5,b12",
        "a9,b12 > Q2 | a5,b12 > Q2",
        "a11,b0",
        "a11,b0 > Q3",
        "a1,b12",
        "a9,b12 > Q3 | a5,b12 > Q3 | a1,b12 > Q3",
    ]
    assert outputs(trace) == ISOLATED


def test_figure_3a_resume_pointers_and_what_the_router_holds() -> None:
    setup = FIGURE_3
    trace = simulate(setup, Scheduler.SWF)
    steps = [step for step in trace.steps if isinstance(step, ScanStep)]
    assert [name(setup, step.resume) for step in steps] == ["b6", "a7", "b2", "a3", "-", "-"]
    assert [step.candidates for step in steps] == [2, 2, 2, 2, 2, 2]
    held = [
        [f"{pair(setup, outer, partner)} > {query}" for query, outer, partner in step.held]
        for step in steps
    ]
    assert held == [
        [],
        ["a9,b12 > Q2", "a9,b12 > Q3"],
        ["a9,b12 > Q2", "a9,b12 > Q3"],
        ["a9,b12 > Q3", "a5,b12 > Q3"],
        ["a9,b12 > Q3", "a5,b12 > Q3"],
        [],
    ]


def test_figure_3a_what_is_kept() -> None:
    """Keep b0, which is outside w3 for b12, while a11 still has to scan it; not under LWO."""
    kept = {
        scheduler: simulate(FIGURE_3, scheduler) for scheduler in (Scheduler.LWO, Scheduler.SWF)
    }
    assert [trace.most_stored for trace in kept.values()] == [12, 13]
    assert [trace.most_waiting for trace in kept.values()] == [1, 2]
    assert [trace.most_held for trace in kept.values()] == [0, 2]


def test_figure_4_the_matrix() -> None:
    half, third = Fraction(1, 2), Fraction(1, 3)
    assert max_throughput([2, 3, 6], [1, 1, 1]) == [
        [half, 2 * third, 2 * third],
        [None, 1, 1],
        [None, None, third],
    ]


def test_figure_4_the_matrix_with_several_queries_per_window() -> None:
    assert max_throughput([2, 3, 6], [1, 4, 9]) == [
        [Fraction(1, 2), Fraction(5, 3), Fraction(7, 3)],
        [None, 4, 4],
        [None, None, 3],
    ]


def test_figure_4_the_schedule() -> None:
    assert scans(simulate(FIGURE_4, Scheduler.MQT)) == [
        "a11:w1",
        "a11:w2",
        "b12:w1",
        "b12:w2",
        "a11:w3",
        "b12:w3",
    ]


def test_figure_4_early_releases() -> None:
    """Release b12's pairs of w1 to Q2 while it scans w1, and to Q3 once a11 has finished w3."""
    setup = FIGURE_4
    trace = simulate(setup, Scheduler.MQT)
    ends = {
        (name(setup, step.outer), step.windows[0]): step.time
        for step in trace.steps
        if isinstance(step, ScanStep)
    }
    times = {
        (step.query, pair(setup, step.outer, step.partner)): step.time
        for step in trace.steps
        if isinstance(step, ReleasedPair) and name(setup, step.outer) == "b12"
    }
    found = {
        pair(setup, step.outer, step.partner): step.time
        for step in trace.steps
        if isinstance(step, FoundPair)
    }
    for early in ("a11,b12", "a9,b12"):
        assert (
            times["Q1", early]
            == times["Q2", early]
            == found[early]
            <= ends["b12", 4]
            < ends["b12", 6]
        )
        assert times["Q3", early] == ends["a11", 12] < ends["b12", 12]
    assert times["Q2", "a7,b12"] == found["a7,b12"]
    assert times["Q3", "a7,b12"] == ends["a11", 12]
    assert times["Q3", "a1,b12"] == found["a1,b12"]


def test_ties_of_mqt_go_to_the_smaller_window() -> None:
    setup = replace(FIGURE_4, queries=(Viewer("Q1", (4, 4)), Viewer("Q2", (8, 8))))
    assert max_throughput([4, 8], [1, 1]) == [
        [Fraction(1, 4), Fraction(1, 4)],
        [None, Fraction(1, 4)],
    ]
    assert scans(simulate(setup, Scheduler.MQT)) == ["a11:w1", "b12:w1", "a11:w2", "b12:w2"]


def test_many_queries_on_a_large_window_draw_mqt_to_it_and_swf_not() -> None:
    setup = FIGURE_4
    crowd = tuple(Viewer(f"more{number}", (12, 12)) for number in range(8))
    setup = replace(setup, queries=(*setup.queries, *crowd))
    levels = {(4, 4): "w1", (6, 6): "w2", (12, 12): "w3"}
    named = {
        scheduler: [
            f"{name(setup, outer)}:{levels[windows]}"
            for outer, windows in simulate(setup, scheduler).schedule
        ]
        for scheduler in Scheduler
    }
    assert named[Scheduler.MQT] == ["a11:w1", "a11:w2", "a11:w3", "b12:w1", "b12:w2", "b12:w3"]
    assert named[Scheduler.SWF] == ["a11:w1", "b12:w1", "a11:w2", "b12:w2", "a11:w3", "b12:w3"]


def test_a_row_that_arrives_between_slices_comes_first_and_the_scan_then_resumes() -> None:
    setup = replace(
        FIGURE_4, rows=(*FIGURE_4.rows[:-1], replace(FIGURE_4.rows[-1], arrival=4))
    )  # a11 looks at the last row but one of w3
    for scheduler in (Scheduler.SWF, Scheduler.MQT):
        assert scans(simulate(setup, scheduler)) == [
            "a11:w1",
            "a11:w2",
            "a11:w3",
            "b12:w1",
            "b12:w2",
            "b12:w3",
        ]
    sliced = simulate(replace(setup, slice=1), Scheduler.SWF)
    steps = [
        (name(setup, step.outer), name(setup, step.resume))
        for step in sliced.steps
        if isinstance(step, ScanStep)
    ]
    assert steps[:5] == [("a11", "b8"), ("a11", "b6"), ("a11", "b4"), ("a11", "b2"), ("b12", "a9")]
    assert steps[steps.index(("a11", "b0")) - 1] == ("b12", "a5")
    assert outputs(sliced) == outputs(simulate(setup, Scheduler.LWO))


def burst(rows: int, sizes: list[int]) -> Setup:
    """Return rows that arrive at once in A, and a largest window of matching rows in B."""
    history = [ScheduleRow(1, 0, STAR)] * sizes[-1]
    new = [ScheduleRow(0, 0, STAR, arrival=0)] * rows
    queries = [Viewer(f"Q{number}", (1, size)) for number, size in enumerate(sizes)]
    return Setup((*history, *new), tuple(queries), counted=(True, True))


@pytest.mark.parametrize(("rows", "sizes"), [(1, [3]), (4, [1, 2, 6]), (5, [2, 9, 10])])
def test_simulated_bursts_give_equations_1_and_2(rows: int, sizes: list[int]) -> None:
    setup, expected = burst(rows, sizes), Burst(rows, 1)
    under_lwo, under_swf = simulate(setup, Scheduler.LWO), simulate(setup, Scheduler.SWF)
    for place, query in enumerate(setup.queries):
        by_itself = simulate(replace(setup, queries=(query,)), Scheduler.LWO)
        for trace, formula in ((under_lwo, lwo), (by_itself, isolated)):
            times = trace.response_times(query.name)
            assert Fraction(sum(times), len(times)) == Fraction(formula(sizes, expected)[place])
        before = sizes[place - 1] if place else 0
        released = under_swf.released(query.name)
        ends = [rows * before + (number + 1) * (sizes[place] - before) for number in range(rows)]
        assert sum(ends) / rows == swf(sizes, expected)[place]
        # The first row's earlier pairs are out sooner (Figure 3(a), step 2), which equation 2
        # leaves out.
        later = [step.time for step in released if step.outer > sizes[-1]]
        assert later == [end for end in ends[1:] for _ in range(sizes[place])]
        assert (
            max((step.time for step in released if step.outer == sizes[-1]), default=0) == ends[0]
        )
