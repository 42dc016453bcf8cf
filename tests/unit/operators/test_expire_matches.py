"""W-Expire above a join stores matches by position and retracts each once, in order of ends."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muntin.operators.expire_matches import ExpireMatches
from muntin.state.expiring_matches import Endings

Batch = tuple[list[tuple[int, int]], int]


@given(
    st.integers(1, 40),
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=40),
            st.integers(0, 30),
        ),
        max_size=30,
    ),
)
def test_every_match_is_added_and_removed_once_in_order_of_time(
    horizon: int, batches: list[Batch]
) -> None:
    """This holds even if the reported horizon is too short."""
    expire = ExpireMatches(2, horizon)
    kept: list[tuple[int, int]] = []
    now = number = 0
    for batch, later in batches:
        came = sorted((now + after, now + after + length) for after, length in batch)
        numbers = np.arange(number, number + len(came))
        number += len(came)
        times, ends = (
            np.array([time for time, _ in came], np.int64),
            np.array([end for _, end in came], np.int64),
        )
        expire.take(times, ends, np.stack([numbers, -numbers]))
        kept += zip(ends.tolist(), numbers.tolist(), strict=True)
        now += later
        due = sorted(match for match in kept if match[0] <= now)
        kept = [match for match in kept if match[0] > now]
        expected = [(end, -1, place) for end, place in due]
        expected += [
            (time, 1, place) for time, place in zip(times.tolist(), numbers.tolist(), strict=True)
        ]
        expected.sort(key=lambda change: (change[0], change[1]))
        found = expire.run(now)
        assert found.signs is not None
        assert (
            list(
                zip(
                    found.times.tolist(),
                    found.signs.tolist(),
                    found.positions[0].tolist(),
                    strict=True,
                )
            )
            == expected
        )
        assert np.array_equal(found.positions[1], -found.positions[0])
        assert len(expire) == len(kept)


@given(st.integers(1, 2**40), st.integers(0, 2**31))
def test_many_matches_are_sorted_by_their_ends(window: int, seed: int) -> None:
    """There are more matches than initially fit, and than are compared one by one."""
    ends = np.random.default_rng(seed).integers(-window, window + 1, 5_000)
    expire = ExpireMatches(1, window)
    expire.take(np.full(5_000, -window - 1), ends, ends[None, :])
    assert len(expire.run(-window - 1)) == 5_000, "all come, none goes"
    found = expire.run(window)
    assert np.array_equal(found.times, np.sort(ends))
    assert np.array_equal(found.positions[0], found.times)


def test_memory_is_released() -> None:
    endings = Endings(3, 1_000_000)
    empty = endings.nbytes()
    ends = np.arange(100_000)
    endings.put(ends, np.stack([ends, ends, ends]))
    assert endings.nbytes() > 100_000 * 40
    for until in range(0, 100_000, 1_000):
        gone, _ = endings.pop(until)
        assert gone.tolist() == list(range(max(until - 999, 0), until + 1))
    assert len(endings) == 999
    assert endings.nbytes() < 4 * empty
