"""A join measures rates, rows, values and fractions of equal pairs, or reports nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from muntin.kernels import layout
from muntin.kernels.arrays import EventArrays, Output, Program, Span
from muntin.kernels.nway_join import join_interval
from muntin.operators.join.meter import CodeSample, Meter
from muntin.state.join_state import JoinState, StoreSpec

SECOND = 1_000_000
KEY = (frozenset({(0, 0), (1, 0)}),)


def two_windows(kind: int = layout.TIME, size: int = 10 * SECOND) -> JoinState:
    return JoinState(
        (StoreSpec(kind, size, 0, 1, ()), StoreSpec(layout.TIME, 10 * SECOND, 1, 1, ()))
    )


def insert(state: JoinState, s: int, codes: npt.NDArray[np.int64]) -> None:
    count, width = len(codes), state.width(s)
    rows = np.zeros((count, width), np.int64)
    rows[:, layout.CODES] = codes
    state.reserve(s, count, layout.EVER)
    events = EventArrays(
        np.full(count, s, np.int32), np.arange(count) * width, np.zeros(count, np.int64),
        np.zeros((1, 1), np.int64), np.full(count, -1, np.int64), rows.reshape(-1),
    )  # fmt: skip
    scratch = np.zeros(5 * len(state.specs) + layout.SCRATCH, np.int64)
    join_interval(
        state.arena, Program(np.zeros(1, np.int64), 1), events, Span(0, count, layout.SILENT, 0),
        np.empty(count, np.int64), Output(np.empty((2, 1), np.int64), state.counters, scratch),
    )  # fmt: skip


def both(state: JoinState, count: int, values: int) -> None:
    for s in range(2):
        insert(state, s, np.random.default_rng(s).integers(0, values, count))


def test_rates_are_rows_over_the_time_that_passed() -> None:
    state = two_windows()
    meter = Meter(state, KEY)
    assert meter.rates(SECOND) is None, "it does not count yet"
    meter.start(0)
    assert meter.rates(0) is None, "no time has passed"
    insert(state, 0, np.arange(30))
    insert(state, 1, np.arange(3))
    assert meter.rates(3 * SECOND) == [10.0, 1.0]
    assert meter.rates(6 * SECOND) == [5.0, 0.5], "looking changes nothing"


def test_a_reading_covers_the_rows_since_the_last_one() -> None:
    state = two_windows()
    meter = Meter(state, KEY)
    meter.start(0)
    both(state, 100, 50)
    first = meter.read(10 * SECOND)
    both(state, 300, 50)
    second = meter.read(20 * SECOND)
    assert first is not None
    assert second is not None
    assert [source.rate for source in first.sources + second.sources] == [10.0, 10.0, 30.0, 30.0]
    assert [source.rows for source in second.sources] == [300.0, 300.0], (
        "what a window of that rate will hold"
    )


def test_starting_again_changes_nothing() -> None:
    state = two_windows()
    meter = Meter(state, KEY)
    meter.start(0)
    insert(state, 0, np.arange(8))
    meter.start(4 * SECOND)
    assert meter.rates(8 * SECOND) == [1.0, 0.0]


@pytest.mark.parametrize("silent", [0, 1])
def test_a_window_without_new_rows_reports_nothing(silent: int) -> None:
    state = two_windows()
    meter = Meter(state, KEY)
    meter.start(0)
    insert(state, 1 - silent, np.arange(5))
    assert meter.read(SECOND) is None, "one window is empty"
    both(state, 5, 5)
    assert meter.read(2 * SECOND) is not None
    insert(state, 1 - silent, np.arange(5))
    assert meter.read(3 * SECOND) is None, "nothing has come to one window"


def test_nothing_is_read_before_it_starts_or_when_no_time_passed() -> None:
    state = two_windows()
    meter = Meter(state, KEY)
    both(state, 5, 5)
    assert meter.read(SECOND) is None
    meter.start(SECOND)
    both(state, 5, 5)
    assert meter.read(SECOND) is None
    assert meter.read(2 * SECOND) is not None


def test_a_stored_table_has_rows_and_no_rate() -> None:
    state = two_windows(layout.STORED, 0)
    meter = Meter(state, KEY)
    insert(state, 0, np.arange(40))
    meter.start(0)
    insert(state, 1, np.arange(10))
    measured = meter.read(SECOND)
    assert measured is not None
    assert (measured.sources[0].rate, measured.sources[0].rows) == (0.0, 40.0)
    assert measured.sources[0].distinct[0] == pytest.approx(40, rel=0.1)


@pytest.mark.parametrize("values", [2, 50, 20_000])
def test_fractions_of_equal_pairs_are_nearly_exact_even_if_a_window_lacks_some_values(
    values: int,
) -> None:
    state = two_windows()
    meter = Meter(state, KEY)
    meter.start(0)
    both(state, 1_500, values)
    measured = meter.read(SECOND)
    assert measured is not None
    (((one, other), share),) = measured.edges
    assert (one, other) == ((0, 0), (1, 0))
    assert share == pytest.approx(1 / values, rel=0.25)


def test_values_that_never_match_have_a_small_fraction_and_not_zero() -> None:
    state = two_windows()
    meter = Meter(state, KEY)
    meter.start(0)
    insert(state, 0, np.arange(1_000))
    insert(state, 1, np.arange(1_000) + 5_000)
    measured = meter.read(SECOND)
    assert measured is not None
    ((_, share),) = measured.edges
    assert 0 < share < 0.1 / 1_000


def test_earlier_samples_count_half() -> None:
    state = two_windows()
    meter = Meter(state, KEY)
    meter.start(0)
    shares = []
    for turn in range(3):
        for s in range(2):
            insert(
                state,
                s,
                np.zeros(1_000, np.int64)
                if turn == 0
                else np.arange(1_000) + 1_000_000 * (turn + 3 * s),
            )
            state.stores[s, layout.TAIL] = state.stores[s, layout.NEXT] - 1_000
            state.stores[s, layout.TAIL_SLOT] = (
                state.stores[s, layout.NEXT] - 1_000
            ) % state.stores[s, layout.CAP]
        measured = meter.read((turn + 1) * SECOND)
        assert measured is not None
        shares.append(measured.edges[0][1])
    assert shares == [pytest.approx(share, rel=0.05) for share in (1, 1 / 3, 1 / 7)]


def test_a_table_counts_equal_pairs() -> None:
    one, other = CodeSample.of(np.array([1, 1, 2, 9])), CodeSample.of(np.array([1, 2, 2, 3, 1]))
    assert one.equal_pairs(other) == other.equal_pairs(one) == 6
    assert one.equal_pairs(CodeSample.of(np.empty(0, np.int64))) == 0
