"""Workloads: every row in its batch, equal results from all runs, and a reliable digest."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
import pytest

from benchmarks import workload as module
from benchmarks.orders import table_5
from benchmarks.workload import (
    Join,
    Workload,
    check_digest,
    check_same,
    digest,
    duckdb_digest,
    run,
    run_all,
    run_in_turn,
)


def rows(*cells: tuple[int, int]) -> pa.Table:
    """Return a stream of times in microseconds and keys."""
    keys, times = [key for _, key in cells], [time for time, _ in cells]
    return pa.table({"k": pa.array(keys, pa.int64()), "ts": pa.array(times, pa.timestamp("us"))})


@pytest.fixture
def small() -> Workload:
    join = Join({"A": 10, "B": 5}, ["A.k", "A.ts", "B.ts"], [("A.k", "B.k")])
    streams = {
        "A": rows((0, 1), (4, 2), (9, 1), (30, 2)),
        "B": rows((3, 1), (9, 1), (10, 1), (13, 1), (14, 2), (34, 2)),
    }
    return Workload(join, streams, [9, 20, 40], 1)


def test_a_batch_ends_with_its_last_instant_and_only_later_ones_are_timed(small: Workload) -> None:
    assert [[len(batch[name]) for name in "AB"] for batch in small.batches] == [
        [3, 2],
        [0, 3],
        [1, 1],
    ]
    assert small.timed_rows == run(small, {}).rows == 5


def test_windows_of_both_sides_decide_and_duckdb_agrees_across_its_stretches(
    small: Workload,
) -> None:
    """Join (0, 3), (0, 9), (9, 9), (9, 10), (9, 13), (30, 34), times of A and B.

    Not (0, 10), (0, 13) or (4, 14).
    """
    results = run(small, {}).results
    pairs = list(
        zip(*(results.column(name).cast("int64").to_pylist() for name in ("c1", "c2")), strict=True)
    )
    assert sorted(pairs) == [(0, 3), (0, 9), (9, 9), (9, 10), (9, 13), (30, 34)]
    assert digest(results) == duckdb_digest(small) == (6, 7, 57, 78)


def test_counts_are_those_of_full_windows_and_work_adds_probes_to_comparisons(
    small: Workload,
) -> None:
    timed, all_of_it = run(small, {}), run(replace(small, filling=0), {})
    assert timed.counters["rows_inserted"] == 5
    assert all_of_it.counters["rows_inserted"] == 10
    assert timed.work == timed.counters["probes"] + timed.counters["comparisons"] > 0


def test_declared_statistics_reach_the_planner() -> None:
    plain = table_5(100)
    declared = replace(
        plain,
        declared={
            name: f"rate = {rate}, distinct = 100"
            for name, rate in zip(plain.streams, (9, 7, 5, 1), strict=True)
        },
    )
    q = declared.engine().query(declared.join.sql)
    assert "predicted" in q.explain()
    assert "predicted" not in plain.engine().query(plain.join.sql).explain()


def test_alternating_runs_begin_with_another_setting_each_time_and_share_results(
    small: Workload,
) -> None:
    seen: list[str] = []

    def noting(workload: Workload, settings: dict[str, str]) -> module.Run:
        seen.append(settings["order"])
        return run(workload, settings)

    with patch.object(module, "run", noting):
        runs = run_in_turn(small, {"one": {"order": "A, B"}, "two": {"order": "B, A"}}, 3)
    assert seen == ["A, B", "B, A", "B, A", "A, B", "A, B", "B, A"]
    assert {name: len(done) for name, done in runs.items()} == {"one": 3, "two": 3}
    assert len({id(one.results) for done in runs.values() for one in done}) == 1


def test_a_missing_result_another_order_and_another_value_are_noticed(small: Workload) -> None:
    results = run(small, {}).results
    check_same(results, results.slice(0))
    check_digest(small, results)
    other = results.set_column(
        results.schema.get_field_index("c0"), "c0", pa.array([1, 1, 1, 1, 1, 1])
    )
    for wrong in (results.slice(1), other):
        with pytest.raises(AssertionError, match="same results"):
            check_digest(small, wrong)
    for wrong in (results.slice(1), other, results.take(list(range(len(results)))[::-1])):
        with pytest.raises(AssertionError, match="same 6 results in the same order"):
            check_same(results, wrong)


def test_a_setting_under_which_results_are_lost_stops_all_runs(small: Workload) -> None:
    def losing(workload: Workload, settings: dict[str, str]) -> module.Run:
        done = run(workload, {})
        return replace(done, results=done.results.slice(1)) if "lossy" in settings else done

    with patch.object(module, "run", losing), pytest.raises(AssertionError, match="one gave 5"):
        run_all(small, {"sound": {}, "broken": {"lossy": "yes"}})
    with patch.object(module, "run", losing), pytest.raises(AssertionError, match="one gave 5"):
        run_in_turn(small, {"sound": {}, "broken": {"lossy": "yes"}}, 1)
