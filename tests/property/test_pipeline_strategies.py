"""Under every strategy, changes above joins are those of the oracle.

Input Triggered only delays them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import muntin
from muntin.plan.query import Emit
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.testing.case import Case
from muntin.testing.compare import accumulate, assert_same_changes, assert_same_rows
from muntin.testing.pipeline_oracle import PipelineOracle
from muntin.testing.pipeline_strategies import PipelineShape, pipeline_cases
from muntin.testing.strategies import Shape
from tests.property.case_runs import bind_pipeline, describe, start

SECOND = 1_000_000
STRATEGIES = ["input", "probing", "negative", "hybrid"]
IN_TIME = ["probing", "negative", "hybrid"]
Runs = dict[str, tuple[muntin.Engine, muntin.StandingQuery]]


def advance(to: int, engine: muntin.Engine) -> None:
    engine.advance(to)


def push(stream: str, rows: pa.Table, engine: muntin.Engine) -> None:
    engine.push(stream, rows)


def until(changes: pa.Table, instant: int) -> pa.Table:
    return changes.filter(pc.less_equal(changes.column("_ts").cast(pa.int64()), instant))


def released(engine: muntin.Engine) -> int:
    running = engine.dataflow.queries["q"]
    assert isinstance(running, RunningPipeline)
    assert running.released is not None
    return running.released


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(case=pipeline_cases(), beyond=st.integers(0, 25))
def test_changes_and_answers_equal_the_oracle(strategy: str, case: Case, beyond: int) -> None:
    query = bind_pipeline(case)
    note(describe(case))
    end = case.end + beyond * SECOND
    engine, q = start(case, pipeline=strategy)
    for stream, rows in case.batches():
        engine.push(stream, rows)
    engine.advance(end)
    oracle = case.oracle(query, end)
    assert isinstance(oracle, PipelineOracle)
    expected = oracle.inserts(end) if query.emit is Emit.INSERTS else oracle.changes(end)
    changes = q.poll()
    if strategy == "input":
        assert_same_changes(until(expected, released(engine)), until(changes, released(engine)))
        assert len(until(changes, released(engine))) == len(changes) or released(engine) < 0, (
            "nothing is out before its time"
        )
    else:
        assert_same_changes(expected, changes)
    assert_same_rows(oracle.answer(end), q.answer())


@given(pipeline_cases(Shape(events=12), PipelineShape()), st.data())
def test_strategies_release_the_same_changes_at_the_same_moments(
    case: Case, data: st.DataObject
) -> None:
    """Rows arrive in order of time, so time can advance between any two of them."""
    query = bind_pipeline(case)
    note(describe(case))
    events = tuple(sorted(case.events, key=lambda event: event.time))
    case = Case(case.streams, case.tables, case.query, events, tuple(range(len(events))))
    runs = {strategy: start(case, pipeline=strategy) for strategy in STRATEGIES}
    collected = {strategy: [q.poll()] for strategy, (_, q) in runs.items()}
    before, advanced = 0, case.end
    for (stream, rows), event in zip(case.batches(), events, strict=True):
        if event.time > before and data.draw(st.integers(0, 2)) == 0:
            at = data.draw(st.integers(before, event.time - 1))
            advanced = min(advanced, at)
            step(runs, collected, partial(advance, at))
        before = event.time
        step(runs, collected, partial(push, stream, rows))
    step(runs, collected, partial(advance, case.end))
    late, known = (pa.concat_tables(collected[strategy]) for strategy in ("input", "negative"))
    assert_same_changes(
        until(known, released(runs["input"][0])), until(late, released(runs["input"][0]))
    )
    oracle = case.oracle(query, advanced)
    assert isinstance(oracle, PipelineOracle)
    if query.emit is Emit.CHANGES and oracle.has_begun(case.end):
        for strategy in IN_TIME:
            changes = pa.concat_tables(collected[strategy])
            assert_same_rows(
                runs[strategy][1].answer(), accumulate(changes)
            )  # which fails where a removal cancels no earlier addition


def step(
    runs: Runs, collected: dict[str, list[pa.Table]], do: Callable[[muntin.Engine], None]
) -> None:
    """Apply one step to all engines and compare those whose results are never delayed."""
    for strategy, (engine, q) in runs.items():
        do(engine)
        collected[strategy].append(q.poll())
    first, *others = (collected[strategy][-1] for strategy in IN_TIME)
    for other in others:
        assert_same_changes(first, other)


@pytest.mark.parametrize(
    "sql",
    ["SELECT COUNT(*) AS n FROM A WINDOW 5 SECONDS", "SELECT DISTINCT v FROM A WINDOW 5 SECONDS"],
)
def test_time_alone_releases_nothing_when_triggered_by_input(sql: str) -> None:
    engine = muntin.Engine(pipeline="input")
    engine.stream("A", {"v": "bigint", "ts": "timestamp"})
    q = engine.query(sql)
    engine.push("A", [(1, 0), (2, SECOND)])
    engine.advance(2 * SECOND)
    assert len(q.poll()) > 1
    engine.advance(60 * SECOND)
    assert len(q.poll()) == 0
    engine.push("A", [(3, 70 * SECOND)])
    engine.advance(70 * SECOND)
    times = q.poll().column("_ts").cast(pa.int64()).to_pylist()
    assert sorted({time // SECOND for time in times}) == [5, 6, 70]
