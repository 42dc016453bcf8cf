"""Queries above joins equal the oracle at every instant, on random queries, rows and batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import assume, given, note
from hypothesis import strategies as st

from muntin.plan.query import Emit, Query
from muntin.testing.case import Case
from muntin.testing.compare import accumulate, assert_same_changes, assert_same_rows
from muntin.testing.connection import run_sql
from muntin.testing.pipeline_oracle import PipelineOracle
from muntin.testing.pipeline_strategies import PipelineShape, pipeline_cases
from muntin.testing.strategies import Shape
from tests.property.case_runs import bind_pipeline, describe, start

SECOND = 1_000_000


def oracle_of(case: Case, query: Query, advanced: int | None = None) -> PipelineOracle:
    oracle = case.oracle(query, advanced)
    assert isinstance(oracle, PipelineOracle)
    return oracle


def expected(oracle: PipelineOracle, query: Query, until: int) -> pa.Table:
    return oracle.inserts(until) if query.emit is Emit.INSERTS else oracle.changes(until)


@contextmanager
def reported(case: Case) -> Iterator[None]:
    """Print the case when it fails."""
    try:
        yield
    except BaseException:
        note(describe(case))
        raise


@given(pipeline_cases(), st.integers(0, 25))
def test_changes_and_answers_equal_the_oracle(case: Case, beyond: int) -> None:
    query = bind_pipeline(case)
    until = case.end + beyond * SECOND
    with reported(case):
        engine, q = start(case)
        for stream, rows in case.batches():
            engine.push(stream, rows)
        engine.advance(until)
        oracle = oracle_of(case, query, until)
        assert_same_changes(expected(oracle, query, until), q.poll())
        assert_same_rows(oracle.answer(until), q.answer())


@given(pipeline_cases(Shape(events=12)), st.data())
def test_answers_are_right_at_every_instant(case: Case, data: st.DataObject) -> None:
    """Rows arrive in order of time, so time can advance between any two of them."""
    query = bind_pipeline(case)
    events = tuple(sorted(case.events, key=lambda event: event.time))
    case = Case(case.streams, case.tables, case.query, events, tuple(range(len(events))))
    with reported(case):
        engine, q = start(case)
        oracle = oracle_of(case, query)
        collected = [q.poll()]
        before, first = 0, None
        for (stream, rows), event in zip(case.batches(), events, strict=True):
            if event.time > before and data.draw(st.integers(0, 3)) == 0:
                at = data.draw(st.integers(before, event.time - 1))
                engine.advance(at)
                first = at if first is None else first
                assert_same_rows(oracle.answer(at), q.answer())
            before = event.time
            engine.push(stream, rows)
            collected.append(q.poll())
        engine.advance(case.end)
        collected.append(q.poll())
        changes = pa.concat_tables(collected)
        assert_same_changes(expected(oracle_of(case, query, first), query, case.end), changes)
        if query.emit is Emit.CHANGES:
            assert_same_rows(
                q.answer(), accumulate(changes)
            )  # which fails where a removal cancels no earlier addition


@given(pipeline_cases(Shape(events=14, every=False), PipelineShape(depth=1, spreads=True)))
def test_spreads_are_near_the_oracle_at_every_instant(case: Case) -> None:
    """Compare to nine digits: DuckDB rounds variances at every row, Muntin once.

    The comparison covers every instant at which rows come or expire.
    """
    query = bind_pipeline(case)
    assume(query.emit is Emit.CHANGES)
    with reported(case):
        engine, q = start(case)
        for stream, rows in case.batches():
            engine.push(stream, rows)
        engine.advance(case.end + 20 * SECOND)
        changes = q.poll()
        oracle = oracle_of(case, query)
        times = changes.column("_ts").cast(pa.int64())
        for instant in oracle.instants(case.end + 20 * SECOND):
            there = accumulate(changes.filter(pc.less_equal(times, instant)))
            assert_same_rows(_to_nine_digits(oracle.answer(instant)), _to_nine_digits(there))


@given(
    pipeline_cases(
        Shape(events=14, every=False), PipelineShape(windows=False, minus=False, by_time=False)
    ),
    st.integers(0, 15),
)
def test_the_answer_is_that_of_the_users_text(case: Case, second: int) -> None:
    """Give DuckDB the query's text and the rows of the last 5 seconds.

    The expectation does not depend on Muntin's reading of the query.
    """
    bind_pipeline(case)
    text = case.query.partition(" WINDOW ")[0]
    at = second * SECOND
    with reported(case):
        engine, q = start(case)
        inside = {}
        for stream, rows in case.rows().items():
            times = rows.column("ts").cast(pa.int64())
            engine.push(stream, rows.filter(pc.less_equal(times, at)).sort_by("ts"))
            inside[stream] = rows.filter(
                pc.and_(pc.less_equal(times, at), pc.greater(times, at - 5 * SECOND))
            )
        engine.advance(at)
        expected_rows = run_sql(text, {**inside, **case.stored()})
        answer = q.answer()
        types = [
            column.cast(field.type)
            for column, field in zip(expected_rows.columns, answer.schema, strict=True)
        ]
        assert_same_rows(pa.table(types, schema=answer.schema), answer)


def _to_nine_digits(table: pa.Table) -> pa.Table:
    columns = []
    for column in table.columns:
        if not pa.types.is_floating(column.type):
            columns.append(column)
            continue
        # Around zero a variance is what rounding leaves of it.
        values = [
            None if value is None else f"{value if abs(value) > 1e-12 else 0.0:.9g}"
            for value in column.to_pylist()
        ]
        columns.append(pa.chunked_array([pa.array(values, pa.string())]))
    return pa.table(columns, names=[str(place) for place in range(table.num_columns)])
