"""Buffers that are always too small: growth, overflow and cutting into slices change nothing."""

from __future__ import annotations

from contextlib import ExitStack
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.operators import workspace
from muntin.operators.join import registry
from muntin.plan.query import Emit
from muntin.runtime import running_join
from muntin.sql.script import read_query
from muntin.state import join_state, stream_log
from muntin.testing.case import Case
from muntin.testing.compare import assert_same_changes, assert_same_rows, assert_same_sequence
from muntin.testing.strategies import Shape, cases
from tests.property.case_runs import start

SIZES = st.fixed_dictionaries(
    {
        "columns": st.sampled_from([4, 8, 64]),
        "margin": st.sampled_from([1, 2, 3]),
        "least": st.sampled_from([1, 2, 16]),
        "slice": st.sampled_from([1, 3, 10]),
        "small": st.sampled_from([1, 4, 16]),
    }
)
SETTINGS = st.fixed_dictionaries(
    {
        "algorithm": st.sampled_from(["eager", "naive"]),
        "expiry": st.sampled_from(
            ["own", "eager", "lazy", "probe", "probe_insert", "probe_all", "all"]
        ),
        "join": st.sampled_from(["auto", "nested_loop"]),
    }
)


def run(
    case: Case, settings: dict[str, str], sizes: dict[str, int]
) -> tuple[pa.Table, pa.Table, dict[str, int]]:
    """Return results, answer and counted work with small internal sizes."""
    with ExitStack() as stack:
        for module, name, size in (
            (workspace, "_COLUMNS", "columns"),
            (workspace, "_MARGIN", "margin"),
            (join_state, "_LEAST", "least"),
            (running_join, "_SLICE", "slice"),
            (stream_log, "_SMALL", "small"),
        ):
            stack.enter_context(patch.object(module, name, sizes[size]))
        engine, q = start(case, **settings)
        for stream, rows in case.batches():
            engine.push(stream, rows)
        engine.advance(case.end)
        work = q.stats()["work"]
        assert isinstance(work, dict)
        return q.poll(), q.answer(), work


@given(cases(Shape(events=60)), SETTINGS, SIZES)
def test_results_equal_the_oracle_with_the_smallest_buffers(
    case: Case, settings: dict[str, str], sizes: dict[str, int]
) -> None:
    query = read_query(case.query, "q", case.catalog())
    results, answer, _ = run(case, settings, sizes)
    oracle = case.oracle(query)
    if query.emit is Emit.INSERTS:
        assert_same_sequence(oracle.inserts(case.end), results)
    else:
        assert_same_changes(oracle.changes(case.end), results)
    assert_same_rows(oracle.answer(case.end), answer)


PAIR = "SELECT a.ts AS t0, b.ts AS t1 FROM A a {left}, {name} b {right} WHERE a.k = b.k"
WINDOWS = st.sampled_from(
    ["[RANGE 1 SECOND]", "[RANGE 5 SECONDS]", "[ROWS 1]", "[ROWS 3]", "[RANGE 1 HOUR]"]
)


@given(cases(Shape(events=60, emits=("",), every=False, tables=False)), WINDOWS, WINDOWS, SIZES)
def test_the_kernel_for_pairs_equals_the_general_one(
    case: Case, left: str, right: str, sizes: dict[str, int]
) -> None:
    """Results, order and rows examined are the same; the kernel for pairs is only faster."""
    sql = PAIR.format(left=left, right=right, name=case.streams[-1].name)
    case = Case(case.streams, case.tables, sql, case.events, case.cuts)
    fast, _, fast_work = run(case, {}, sizes)
    with patch.object(registry, "is_equi_join", lambda _: False):
        general, _, general_work = run(case, {}, sizes)
    assert_same_sequence(general, fast)
    counted = (
        "probes",
        "rows_scanned",
        "comparisons",
        "stale_rows_met",
        "rows_inserted",
        "rows_expired",
        "expiry_checks",
        "matches",
    )
    assert {name: fast_work[name] for name in counted} == {
        name: general_work[name] for name in counted
    }
