"""The window stores: how they grow and shrink, and what a row costs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels import layout
from muntin.kernels.arrays import EventArrays, Output, Program, Span
from muntin.kernels.nway_join import expire_all, join_interval
from muntin.state.join_state import IndexSpec, JoinState, StoreSpec

KEY = (IndexSpec((0,)),)


def time_store(
    stream: int = 0, size: int = 100, codes: int = 1, indexes: tuple[IndexSpec, ...] = KEY
) -> StoreSpec:
    return StoreSpec(layout.TIME, size, stream, codes, indexes)


def insert(state: JoinState, s: int, first: int, codes: npt.NDArray[np.int64]) -> None:
    """Put rows into a store, at positions and times from ``first`` on."""
    count, width = len(codes), state.width(s)
    rows = np.zeros((count, width), np.int64)
    rows[:, layout.COORD] = np.arange(first, first + count)
    rows.view(np.int32)[:, layout.POSITION] = (
        np.arange(first, first + count).astype(np.uint32).view(np.int32)
    )
    rows[:, layout.CODES : layout.CODES + codes.shape[1]] = codes
    state.reserve(s, count, layout.EVER)
    events = EventArrays(
        np.full(count, s, np.int32), np.arange(count) * width, np.arange(first, first + count),
        np.zeros((1, 1), np.int64), np.full(count, -1, np.int64), rows.reshape(-1),
    )  # fmt: skip
    scratch = np.zeros(5 * len(state.specs) + layout.SCRATCH, np.int64)
    join_interval(
        state.arena, Program(np.zeros(1, np.int64), 1), events, Span(0, count, layout.SILENT, 0),
        np.empty(count, np.int64), Output(np.empty((2, 1), np.int64), state.counters, scratch),
    )  # fmt: skip


def expire(state: JoinState, limits: list[int]) -> None:
    expire_all(state.arena, np.array(limits, np.int64), layout.OWN, state.counters)


def keys(*values: int) -> npt.NDArray[np.int64]:
    return np.array(values, np.int64).reshape(-1, 1)


def test_a_new_store_is_small_and_empty() -> None:
    state = JoinState((time_store(), time_store(1)))
    assert (
        state.rows(0),
        state.inside(0, layout.EVER),
        state.positions(1, layout.EVER).tolist(),
    ) == (0, 0, [])
    assert state.nbytes() < 40_000


def test_the_arena_begins_at_a_cache_line() -> None:
    assert JoinState((time_store(),)).words.ctypes.data % 64 == 0


def test_growing_keeps_rows_positions_and_neighbours() -> None:
    state = JoinState((time_store(), time_store(1)))
    insert(state, 1, 0, keys(5, 6, 7))
    insert(state, 0, 0, np.arange(10_000, dtype=np.int64).reshape(-1, 1))
    assert state.positions(0, layout.EVER).tolist() == list(range(10_000))
    assert state.positions(1, 0).tolist() == [1, 2]
    expire(state, [9_989, 2])
    assert (state.rows(0), state.rows(1)) == (10, 0)
    assert state.counters[layout.N_EXPIRED] == 9_990 + 3


def test_memory_that_two_batches_did_not_need_is_released() -> None:
    state = JoinState((time_store(),))
    insert(state, 0, 0, np.zeros((50_000, 1), np.int64))
    full = state.nbytes()
    expire(state, [49_899])
    limits = np.array([49_899], np.int64)
    state.fit(limits)
    assert state.nbytes() == full
    state.fit(limits)
    state.fit(limits)
    assert state.nbytes() < full / 20
    assert state.positions(0, 0).tolist() == list(range(49_900, 50_000))


@pytest.mark.parametrize("window", [20_000, 100_000])
def test_a_row_costs_at_most_forty_bytes_in_the_steady_state(window: int) -> None:
    state = JoinState((time_store(0, window), time_store(1, window)))
    random, batch = np.random.default_rng(1), window // 20
    costs = []
    for turn in range(60):
        limit = batch * (turn + 1) - window - 1
        for s in (0, 1):
            insert(state, s, batch * turn, random.integers(0, window, (batch, 1)))
        expire(state, [limit, limit])
        state.fit(np.array([limit, limit], np.int64))
        costs.append(state.nbytes() / (state.inside(0, limit) + state.inside(1, limit)))
    assert [state.rows(s) for s in (0, 1)] == [window, window]
    assert max(costs[30:]) <= 40


def test_memory_stays_flat_over_a_hundred_windows() -> None:
    state = JoinState((time_store(0, 1_000),))
    sizes = []
    for turn in range(200):
        insert(state, 0, 500 * turn, np.zeros((500, 1), np.int64))
        expire(state, [500 * turn - 501])
        state.fit(np.array([500 * turn - 501], np.int64))
        sizes.append(state.nbytes())
    assert max(sizes[100:]) <= max(sizes[10:100])


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(1, 300), st.integers(0, 400)), max_size=12),
    st.sampled_from(["one", "two"]),
)
def test_any_sequence_of_inserts_expiries_and_fits_keeps_the_rows_inside(
    steps: list[tuple[int, int, int]], indexes: str
) -> None:
    index = (IndexSpec((0,), 7), IndexSpec((1, 0))) if indexes == "two" else KEY
    state = JoinState(tuple(time_store(s, codes=2, indexes=index) for s in (0, 1)))
    came, limit = [0, 0], [-1, -1]
    for s, rows, passed in steps:
        insert(state, s, came[s], np.arange(2 * rows).reshape(-1, 2) % 5)
        came[s] += rows
        limit[s] = max(limit[s], came[s] - passed)
        expire(state, limit)
        state.fit(np.array(limit, np.int64))
        for other in (0, 1):
            expected = list(range(limit[other] + 1, came[other]))
            assert state.positions(other, limit[other]).tolist() == expected
            assert (
                state.inside(other, limit[other])
                == len(expected)
                == state.stores[other, layout.HELD]
            )


@pytest.mark.parametrize("different", [1, 10, 1_000, 30_000])
def test_distinct_codes_are_counted_to_a_few_percent(different: int) -> None:
    state = JoinState((time_store(),))
    insert(
        state,
        0,
        0,
        np.random.default_rng(2).permutation(np.arange(30_000) % different).reshape(-1, 1),
    )
    assert state.distinct(0, 0) == pytest.approx(different, rel=0.05)


def test_positions_beyond_32_bits_are_exact() -> None:
    state = JoinState((time_store(),))
    first = 2**32 - 2
    state.stores[0, layout.LAST] = first - 1
    insert(state, 0, first, keys(1, 2, 3, 4))
    assert state.positions(0, layout.EVER).tolist() == [first, first + 1, first + 2, first + 3]
