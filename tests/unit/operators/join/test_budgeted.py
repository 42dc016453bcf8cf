"""The tree join under probe budgets against its naive twin, for any cut into batches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.model.catalog import Catalog, Stream
from muntin.model.settings import Settings
from muntin.operators import workspace
from muntin.operators.join import JoinOperator, NewRows, Tools, make_join
from muntin.operators.join.budgeted import BudgetedTactic
from muntin.operators.join.probe_limiter import Budgets, CycleSample, ProbeLimiter
from muntin.operators.workspace import Workspace
from muntin.plan.join import JoinPlan
from muntin.planner.join_planner import plan_join
from muntin.sql.script import read_query
from muntin.state import partial_matches
from muntin.state.batch import Batch
from tests.unit.operators.join.naive_budgeted_tree import Row, run_naive

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
TREES = {
    2: ("(A, B)",),
    3: ("((A, B), C)", "(B, (C, A))"),
    4: ("(((A, B), C), D)", "((A, B), (C, D))", "((D, (B, A)), C)"),
}
PERIOD = 4
"""Microseconds of a cycle."""

Rows = list[list[Row]]
Result = tuple[int, tuple[int, ...]]


@st.composite
def plans(draw: st.DrawFn) -> JoinPlan:
    """Draw trees over two to four streams with time and row windows, and all their limits."""
    names = "ABCD"[: draw(st.integers(2, 4))]
    windows = [
        draw(st.sampled_from(["RANGE {} MICROSECONDS", "ROWS {}"])).format(draw(st.integers(1, 9)))
        for _ in names
    ]
    fresh = [f"{name} {_longer(draw, window)}" for name, window in zip(names, windows, strict=True)]
    conditions = " AND ".join(f"{names[0]}.k = {name}.k" for name in names[1:])
    sources = ", ".join(f"{name} [{window}]" for name, window in zip(names, windows, strict=True))
    freshness = f" FRESHNESS {', '.join(fresh)}" if draw(st.booleans()) else ""
    settings = Settings.of(
        overload="adapt",
        monitoring=f"{PERIOD} microseconds",
        tree=draw(st.sampled_from(TREES[len(names)])),
        join=draw(st.sampled_from(["auto", "nested_loop"])),
        probe_choice=draw(st.sampled_from(["oldest", "newest", "random"])),
        probe_seed=draw(st.sampled_from(["0", "3"])),
        state_rows=draw(st.sampled_from(["", "", "1", "3", "50"])),
        freshness=draw(st.sampled_from(["enforce", "measure"])),
    )
    return planned(
        f"SELECT {names[0]}.k FROM {sources} WHERE {conditions}{freshness}", names, settings
    )


def _longer(draw: st.DrawFn, window: str) -> str:
    """Return a freshness for a window."""
    kind, size, *unit = window.split()
    return f"{draw(st.integers(int(size), 15))} {unit[0] if unit else kind}"


def planned(sql: str, names: str, settings: Settings) -> JoinPlan:
    catalog = Catalog()
    for name in names:
        catalog.add(Stream(name, SCHEMA, "ts"))
    return plan_join(read_query(sql, "q", catalog), settings)


rates = st.one_of(st.none(), st.sampled_from([0.0, 0.3, 1.0, 1.5, 4.0]))


@st.composite
def schedules(draw: st.DrawFn, sources: int) -> dict[int, Budgets]:
    """Draw probe budgets that take effect after some cycles."""
    seconds = PERIOD / 1_000_000
    chosen = {}
    for cycle in draw(st.lists(st.integers(0, 12), max_size=3, unique=True)):
        limits = draw(st.lists(rates, min_size=2 * sources - 2, max_size=2 * sources - 2))
        cap = draw(st.one_of(st.none(), st.sampled_from([0.0, 0.4, 2.0, 5.5])))
        work = draw(st.one_of(st.none(), st.sampled_from([0.0, 1.0, 4.0, 9.5])))
        chosen[cycle] = Budgets(
            tuple(None if rate is None else rate / seconds for rate in limits),
            None if cap is None else cap / seconds,
            work=None if work is None else work / seconds,
        )
    return chosen


def made(plan: JoinPlan) -> tuple[JoinOperator, ProbeLimiter]:
    names = [source.relation for source in plan.query.sources]
    join = make_join(plan, names, {}, Tools(Evaluator(Duck()), Workspace()))
    assert isinstance(join.tactic, BudgetedTactic)
    return join, join.tactic.limiter


def run_compiled(
    plan: JoinPlan, rows: Rows, edges: Sequence[int], schedule: dict[int, Budgets]
) -> tuple[ProbeLimiter, list[Result], list[CycleSample]]:
    """Feed the rows up to each edge (an instant), one edge after the other."""
    join, limiter = made(plan)
    seen: list[CycleSample] = []

    def on_sample(sample: CycleSample) -> None:
        seen.append(sample)
        if sample.cycle in schedule:
            limiter.set_budgets(schedule[sample.cycle])

    limiter.on_sample = on_sample
    results: list[Result] = []
    before = [0] * len(rows)
    for edge in edges:
        news = []
        for number, stream in enumerate(rows):
            new = [row for row in stream[before[number] :] if row[0] <= edge]
            times = np.array([time for time, _ in new], np.int64)
            table = pa.table(
                [
                    pa.array([key for _, key in new], pa.int64()),
                    pa.array(times).cast(pa.timestamp("us")),
                ],
                SCHEMA,
            )
            news.append(
                NewRows(
                    np.arange(before[number], before[number] + len(new)),
                    Batch(table, times, np.zeros(len(times))),
                    before[number],
                )
            )
            before[number] += len(new)
        for matches in join.join(news, edge):
            results += [
                (time, tuple(column))
                for time, column in zip(
                    matches.times.tolist(), matches.positions.T.tolist(), strict=True
                )
            ]
    return limiter, results, seen


@given(st.data(), plans(), st.sampled_from([1, 2, 256]), st.sampled_from([4, 1 << 10]))
def test_the_compiled_join_probes_with_the_same_rows_as_its_twin(
    data: st.DataObject, plan: JoinPlan, least: int, columns: int
) -> None:
    count = len(plan.sources)
    steps = data.draw(
        st.lists(
            st.tuples(
                st.integers(0, count - 1),
                st.sampled_from([0, 0, 0, 1, 1, 3, 50]),
                st.integers(0, 1),
            ),
            max_size=40,
        )
    )
    times = list(accumulate(gap for _, gap, _ in steps))
    rows: Rows = [
        [(time, key) for time, (source, _, key) in zip(times, steps, strict=True) if source == s]
        for s in range(count)
    ]
    end = (times[-1] if times else 0) + data.draw(st.integers(0, 80))
    schedule = data.draw(schedules(count))
    edges = sorted({*data.draw(st.lists(st.integers(0, end), max_size=5)), end})
    twin = run_naive(plan, rows, end, lambda sample: schedule.get(sample.cycle))
    with (
        patch.object(partial_matches, "_LEAST", least),
        patch.object(workspace, "_COLUMNS", columns),
        patch.object(workspace, "_MARGIN", min(columns // 2, 1 << 8)),
    ):
        limiter, results, samples = run_compiled(plan, rows, edges, schedule)
    assert results == twin.results
    assert [(s.cycle, s.arrivals, s.probes, s.matches) for s in samples] == [
        (s.cycle, s.arrivals, s.probes, s.matches) for s in twin.samples
    ]
    assert [s.states for s in samples] == [s.states for s in twin.samples]
    assert limiter.stale_results() == twin.stale
    assert list(limiter.oldest_rows()) == twin.ages
    if plan.limiting is not None and plan.limiting.enforce:
        assert not twin.stale


def many(plan: JoinPlan, budgets: Budgets) -> tuple[ProbeLimiter, list[CycleSample]]:
    """Run ten cycles of a hundred rows per stream, all of one key, under probe budgets."""
    rows: Rows = [
        [(cycle * PERIOD + place // 25, 0) for cycle in range(11) for place in range(100)]
        for _ in plan.sources
    ]
    limiter, _, samples = run_compiled(plan, rows, [12 * PERIOD], {0: budgets})
    return limiter, samples[1:11]


SQL = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 3 MICROSECONDS"
ADAPT = Settings.of(overload="adapt", monitoring=f"{PERIOD} microseconds")


@pytest.mark.parametrize("choice", ["oldest", "newest", "random"])
def test_half_joins_probe_as_often_as_they_may_and_fractions_are_not_lost(choice: str) -> None:
    plan = planned(SQL, "AB", ADAPT.having("probe_choice", choice))
    scale = 1_000_000 / PERIOD
    _, samples = many(plan, Budgets((2.5 * scale, None)))
    assert {sample.arrivals for sample in samples} == {(100, 100)}
    first = [sample.probes[0] for sample in samples]
    assert max(first) <= 3
    assert {sample.probes[1] for sample in samples} == {100}
    if choice != "random":
        assert sum(first) == 25


def test_fractions_are_not_lost_when_budgets_change_in_every_cycle() -> None:
    scale = 1_000_000 / PERIOD
    changing = {cycle: Budgets(((0.5 + cycle / 1e6) * scale, None)) for cycle in range(20)}
    rows: Rows = [[(at, 1) for at in range(20 * PERIOD)], [(0, 1)]]
    _, _, samples = run_compiled(planned(SQL, "AB", ADAPT), rows, [21 * PERIOD], changing)
    assert 9 <= sum(sample.probes[0] for sample in samples[1:20]) <= 10


def test_all_together_probe_no_more_than_the_cap_from_the_cycle_of_a_jump_on() -> None:
    scale = 1_000_000 / PERIOD
    _, samples = many(planned(SQL, "AB", ADAPT), Budgets((None, None), 7 * scale))
    used = [sum(sample.probes) for sample in samples]
    assert used[0] <= 14
    assert used[1:] == [7] * 9


def test_rows_that_may_not_probe_are_found_by_others() -> None:
    plan = planned(SQL, "AB", ADAPT)
    rows: Rows = [[(0, 5), (PERIOD, 1)], [(PERIOD + 1, 1)]]
    _, results, samples = run_compiled(plan, rows, [3 * PERIOD], {0: Budgets((0.0, None))})
    assert results == [(PERIOD + 1, (1, 0))]
    assert [(sample.arrivals, sample.probes, sample.matches) for sample in samples[1:2]] == [
        ((1, 1), (0, 1), (0, 1))
    ]


def test_replayed_rows_probe_as_before() -> None:
    plan = planned(
        "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 9 MICROSECONDS", "ABC", ADAPT
    )
    join, limiter = made(plan)
    limiter.set_budgets(Budgets((1_000_000 / PERIOD, 1_000_000 / PERIOD, None, None)))
    times = np.array([0, 0, 1], np.int64)
    table = pa.table(
        [pa.array([1, 1, 1], pa.int64()), pa.array(times).cast(pa.timestamp("us"))], SCHEMA
    )
    news = [NewRows(np.arange(3), Batch(table, times, np.zeros(3)), 0)] * 3
    join.repeat(news, 2)
    totals = limiter.totals()
    assert totals.arrivals[:2] == (3, 3)
    assert totals.probes[:2] == (1, 1)
