"""[Hammad03, sections 3.1.1 and 3.2.1]: average response times at Figures 2(b) and 3(b).

The limits are checked too.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.testing.paper_costs.response_times import Burst, isolated, lwo, swf, window_rows

BURST = Burst(50, 1e-6)
RATE = 100
TABLE_1 = {
    "Uniform": [1, 100, 200, 300, 400, 500, 600],
    "Mostly-Small": [1, 5, 15, 30, 60, 300, 600],
    "Mostly-Large": [1, 60, 300, 420, 510, 570, 600],
    "Small-Large": [1, 5, 15, 300, 510, 570, 600],
}
SIZES = st.lists(st.integers(1, 10_000), min_size=1, max_size=8, unique=True).map(sorted)


@pytest.mark.parametrize("windows", TABLE_1.values(), ids=TABLE_1)
def test_the_smallest_window_waits_milliseconds_alone_and_under_swf_but_seconds_under_lwo(
    windows: list[float],
) -> None:
    sizes = window_rows(RATE, windows)
    assert isolated(sizes, BURST)[0] == pytest.approx(0.0025005)
    assert swf(sizes, BURST)[0] == pytest.approx(0.00255)
    assert lwo(sizes, BURST)[0] == pytest.approx(1.4700505)


def test_lwo_is_nearly_flat_over_the_windows() -> None:
    times = lwo(window_rows(RATE, TABLE_1["Mostly-Small"]), BURST)
    assert times == sorted(times)
    assert times[-1] / times[0] < 1.03


def test_swf_serves_small_windows_at_the_expense_of_the_largest() -> None:
    sizes = window_rows(RATE, TABLE_1["Uniform"])
    shared, all_waiting = swf(sizes, BURST), lwo(sizes, BURST)
    assert [mine < theirs for mine, theirs in zip(shared, all_waiting, strict=True)] == [
        True,
        True,
        True,
        True,
        False,
        False,
        False,
    ]


def test_the_largest_window_waits_less_under_swf_when_the_next_smaller_one_is_farther_away() -> (
    None
):
    """Section 5.1 compares Mostly-Small with Uniform."""
    assert swf(window_rows(RATE, TABLE_1["Uniform"]), BURST)[-1] == pytest.approx(2.755)
    assert swf(window_rows(RATE, TABLE_1["Mostly-Small"]), BURST)[-1] == pytest.approx(2.265)


@given(SIZES, st.integers(1, 100))
def test_under_lwo_the_largest_window_waits_as_if_it_were_alone_and_no_other_waits_less_than_alone(
    sizes: list[float], rows: int
) -> None:
    burst = Burst(rows, 1.0)
    assert lwo(sizes, burst)[-1] == isolated(sizes, burst)[-1]
    assert all(
        shared >= alone
        for shared, alone in zip(lwo(sizes, burst), isolated(sizes, burst), strict=True)
    )


@given(SIZES)
def test_a_single_row_does_not_wait(sizes: list[float]) -> None:
    burst = Burst(1, 1.0)
    assert lwo(sizes, burst) == isolated(sizes, burst)
    assert swf(sizes, burst) == sizes


@given(SIZES, st.integers(1, 1000))
def test_under_swf_no_window_waits_longer_than_the_burst_takes_to_finish_it(
    sizes: list[float], rows: int
) -> None:
    times = swf(sizes, Burst(rows, 1.0))
    assert times == sorted(times)
    assert all(time <= rows * size for time, size in zip(times, sizes, strict=True))


@pytest.mark.parametrize("sizes", [[0, 1], [2, 2], [3, 1]])
def test_windows_must_come_in_order(sizes: list[float]) -> None:
    with pytest.raises(AssertionError, match="from the smallest"):
        swf(sizes, BURST)
