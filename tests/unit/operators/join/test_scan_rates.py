"""The rates by which MQT counts: measured in the windows, rounded, and the same after a rebuild."""

from __future__ import annotations

import pytest

import muntin
from muntin.operators.join.scan_rates import scan_rates
from muntin.operators.join.windows import JoinWindows

SECOND = 1_000_000


def windows_of(
    rates: dict[str, int], windows: str = "[RANGE 10 SECONDS]", seconds: int = 30
) -> JoinWindows:
    """Return the windows of a join after streams of some rows per second."""
    engine = muntin.Engine(window_memory="900 GB")
    for name in "AB":
        engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
    left, comma, right = windows.partition(", ")
    right = right if comma else left
    engine.query(f"SELECT A.k FROM A {left}, B {right} WHERE A.k = B.k", name="q")
    for name, rate in rates.items():
        engine.push(name, [(row, row * SECOND // rate) for row in range(seconds * rate)])
    engine.advance(seconds * SECOND)
    (join,) = engine.dataflow.joins()
    return join.operator.windows


@pytest.mark.parametrize(
    ("a", "b", "rates"),
    [(100, 100, (1, 1)), (100, 90, (1, 1)), (10, 100, (16, 181)), (400, 100, (4, 1))],
)
def test_ratios_of_rates_are_rounded(a: int, b: int, rates: tuple[int, int]) -> None:
    assert scan_rates(windows_of({"A": a, "B": b})) == rates


def test_the_length_of_a_window_does_not_matter() -> None:
    windows = windows_of({"A": 40, "B": 40}, "[RANGE 2 SECONDS], [RANGE 20 SECONDS]")
    assert scan_rates(windows) == (1, 1)


def test_a_row_window_counts_rows_and_a_time_window_those_of_a_microsecond() -> None:
    windows = windows_of({"A": 10, "B": 40}, "[ROWS 5], [RANGE 20 SECONDS]")
    row, micro = scan_rates(windows)
    assert row / micro == pytest.approx(SECOND / 40, rel=0.2)


def test_row_windows_alone_and_few_rows_count_as_equal() -> None:
    assert scan_rates(windows_of({"A": 10, "B": 90}, "[ROWS 5], [ROWS 50]")) == (1, 1)
    assert scan_rates(windows_of({"A": 1, "B": 5})) == (1, 1)


def test_lengths_that_kernels_cannot_multiply_exactly_make_rates_coarser() -> None:
    windows = windows_of({"A": 1, "B": 200}, "[ROWS 2000000000], [RANGE 100000 DAYS]", 1)
    rates = scan_rates(windows)
    sizes = [spec.size for spec in windows.state.specs]
    assert max(rate * size for rate, size in zip(rates, sizes, strict=True)) < 1 << 62
