"""The report of the shared-window benchmark, computed from given runs without Spark."""

from __future__ import annotations

import pytest

from benchmarks import spark_shared
from benchmarks.spark_queries import Run
from benchmarks.spark_shared import OURS, QUICK, THEIRS, Sizes, compare, measure, spread_windows


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Run]]:
    """Return the lists of runs that the two systems will report, to be filled by the test."""
    to_come: dict[str, list[Run]] = {OURS: [], THEIRS: []}
    monkeypatch.setattr(spark_shared, "bench_session", lambda: None)
    monkeypatch.setattr(spark_shared, "write_files", lambda *_: None)
    monkeypatch.setattr(spark_shared, "run_muntin", lambda *_: to_come[OURS].pop(0))
    monkeypatch.setattr(spark_shared, "run_spark", lambda *_: to_come[THEIRS].pop(0))
    return to_come


def made(seconds: float, **results: int) -> Run:
    return Run(
        [0.0, 7.0, 7.0 + seconds],
        {float(window[1:]): count for window, count in results.items()},
        10,
        20,
        30,
    )


def test_ratios_are_those_of_batches_with_full_windows_and_of_results(
    results: dict[str, list[Run]],
) -> None:
    sizes = Sizes(windows=(1, 4), rate=100, file_seconds=2, files=6, per_trigger=2, times=1)
    assert (sizes.warm_up, sizes.timed_rows) == (1, 2 * 100 * 8)
    sizes = Sizes(windows=(1, 8), rate=100, file_seconds=2, files=6, per_trigger=2, times=1)
    assert (sizes.warm_up, sizes.timed_rows) == (2, 2 * 100 * 4)
    results[OURS] = [made(2.0, w8=100), made(3.0, w1=50, w8=100)]
    results[THEIRS] = [made(60.0, w1=50, w8=100)]
    found, faster, slower, more = compare(lambda _: None, sizes, 1_000)
    assert (faster, slower, more) == (20.0, 1.5, 1.5)
    assert [measured.row(sizes)["rows per second"] for measured in found] == [400, 267, 13]


def test_a_system_that_loses_a_result_is_reported(results: dict[str, list[Run]]) -> None:
    results[OURS], results[THEIRS] = [made(2.0, w1=50, w4=100)], [made(2.0, w1=49, w4=100)]
    with pytest.raises(AssertionError, match="the same number of results"):
        measure(lambda _: None, QUICK, QUICK.many_keys, [(QUICK.windows, True)])


@pytest.mark.parametrize("number", [1, 4, 16, 64])
def test_spread_windows_are_all_different_and_end_with_the_largest(number: int) -> None:
    windows = spread_windows(600, number)
    assert len(set(windows)) == number
    assert windows[-1] == max(windows) == 600
    assert list(windows) == sorted(windows)
