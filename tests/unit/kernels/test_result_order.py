"""Results of one event are sorted by the recency of their partners, in FROM order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels.result_order import sort_matches

results = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 5)), max_size=60)


@given(results)
def test_it_equals_a_sort_by_event_and_descending_positions(
    drawn: list[tuple[int, int, int]],
) -> None:
    drawn.sort(key=lambda result: result[0])
    out = np.array([(tag, 0, a, b) for tag, a, b in drawn], np.int64).reshape(-1, 4).T
    expected = out[:, np.lexsort([-out[3], -out[2], out[0]])].tolist()
    sort_matches(out, np.empty(len(drawn), np.int64), np.empty(len(drawn), np.int64))
    assert out.tolist() == expected


def test_long_runs_are_sorted_in_reasonable_time() -> None:
    random = np.random.default_rng(1)
    out = np.concatenate([np.zeros((2, 200_000), np.int64), random.integers(0, 1000, (3, 200_000))])
    expected = out[:, np.lexsort([-out[4], -out[3], -out[2]])].tolist()
    sort_matches(out, np.empty(200_000, np.int64), np.empty(200_000, np.int64))
    assert out.tolist() == expected
