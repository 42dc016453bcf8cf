"""Partitions against a dictionary of lists."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muntin.state.partition_state import PartitionState


@given(st.integers(1, 9), st.lists(st.lists(st.tuples(st.integers(-2, 300), st.integers(0, 1)), max_size=200), max_size=4))
def test_each_row_pushes_out_the_nth_before_it_in_its_partition(rows: int, batches: list[list[tuple[int, int]]]) -> None:
    state = PartitionState(rows)
    twin: dict[tuple[int, int], list[int]] = defaultdict(list)
    position = 100
    for batch in batches:
        positions = np.arange(position, position + 2 * len(batch), 2, dtype=np.int64)
        low = np.array([key for key, _ in batch], np.int64)
        high = np.array([key for _, key in batch], np.int64)
        expected = []
        for key, at in zip(batch, positions.tolist(), strict=True):
            members = twin[key]
            members.append(at)
            expected.append(members.pop(0) if len(members) > rows else -1)
        assert state.push(low, high, positions).tolist() == expected
        position += 2 * len(batch)


def test_a_huge_window_takes_memory_only_for_rows_that_came() -> None:
    state = PartitionState(10**12)
    state.push(np.zeros(1000, np.int64), np.zeros(1000, np.int64), np.arange(1000))
    assert state.nbytes() < 100_000
