"""Equal pairs of two samples against counting them one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels.join_sample import count_pairs, count_values

codes = st.lists(st.sampled_from([0, 1, 2, -1, 1 << 40, -(1 << 63), (1 << 63) - 1]), max_size=15)


@given(codes, codes)
def test_pairs_are_those_of_two_nested_loops(one: list[int], other: list[int]) -> None:
    values, counts = np.zeros(16, np.int64), np.zeros(16, np.int64)
    count_values(np.array(one, np.int64), values, counts)
    assert counts.sum() == len(one)
    assert count_pairs(np.array(other, np.int64), values, counts) == sum(
        a == b for a in one for b in other
    )
