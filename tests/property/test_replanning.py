"""Join orders that change while a query runs change nothing but the work."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin
from muntin.runtime import plan_monitor
from muntin.sql.script import read_query
from muntin.testing.case import Case
from muntin.testing.compare import assert_same_sequence
from muntin.testing.generators import multi_join_streams
from muntin.testing.strategies import Shape, cases
from tests.property.case_runs import poll_every_batch

SECOND = 1_000_000
THREE = (
    "SELECT a.k AS k0, a.ts AS t0, b.ts AS t1, c.ts AS t2 FROM A a, {b} b, {c} c WHERE a.k = b.k "
    "AND b.k = c.k WINDOW {window} SECONDS"
)


@given(cases(Shape(emits=("",), every=False, tables=False)), st.integers(1, 9))
def test_switching_at_every_chance_gives_the_oracles_results(case: Case, window: int) -> None:
    names = [stream.name for stream in case.streams]
    sql = THREE.format(b=names[1 % len(names)], c=names[-1], window=window)
    case = Case(case.streams, case.tables, sql, case.events, tuple(range(len(case.events))))
    query = read_query(sql, "q", case.catalog())
    with patch.object(plan_monitor, "_LEAST_MEASURED", 1):
        results, _ = poll_every_batch(case, muntin.Engine(replan_change="1", replan_gain="1"))
    assert_same_sequence(case.oracle(query).inserts(case.end), results)


def run_reversing_streams(**settings: str) -> tuple[pa.Table, dict[str, object]]:
    """Run four streams whose rates and numbers of keys are reversed halfway."""
    engine = muntin.Engine(join="nested_loop", **settings)
    for number in range(4):
        engine.stream(f"S{number}", {"attr": "bigint", "ts": "timestamp"}, time="ts")
    equal = "S0.attr = S1.attr AND S1.attr = S2.attr AND S2.attr = S3.attr"
    q = engine.query(
        f"SELECT S0.ts AS t0, S3.ts AS t3 FROM S0, S1, S2, S3 WHERE {equal} WINDOW 60 SECONDS"
    )
    half, unit = 6_000, SECOND // 10
    for turn in range(2):
        rates, distinct = (
            ([10, 1, 1, 3], [500, 50, 40, 5]) if turn == 0 else ([3, 1, 1, 10], [5, 40, 50, 500])
        )
        streams = multi_join_streams(half, rates=rates, distinct=distinct, seed=turn, unit=unit)
        for step in range(10):
            low, high = step * half // 10 * unit, (step + 1) * half // 10 * unit
            for number, rows in enumerate(streams):
                times = rows.column("ts").cast("int64").to_numpy()
                chosen = rows.filter((times >= low) & (times < high))
                shifted = pa.array(
                    chosen.column("ts").cast("int64").to_numpy() + turn * half * unit
                ).cast(pa.timestamp("us"))
                engine.push(
                    f"S{number}",
                    chosen.set_column(chosen.schema.get_field_index("ts"), "ts", shifted),
                )
    engine.advance(2 * half * unit)
    return q.poll(), q.stats()


def test_a_query_whose_streams_are_reversed_is_reordered_and_compares_less(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO", "muntin"):
        results, stats = run_reversing_streams()
    assert "continues with another plan" in caplog.text
    fixed, still = run_reversing_streams(replan="off")
    assert results.equals(fixed)
    switches, work, work_still = stats["order_switches"], stats["work"], still["work"]
    assert isinstance(switches, list)
    assert isinstance(work, dict)
    assert isinstance(work_still, dict)
    assert switches
    assert switches[-1]["to"] != switches[-1]["from"]
    assert switches[-1]["predicted_work"][0] >= 1.2 * switches[-1]["predicted_work"][1]
    assert still["order_switches"] == []
    assert work["comparisons"] < 0.8 * work_still["comparisons"]
