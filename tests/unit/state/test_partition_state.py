from __future__ import annotations

import numpy as np

from muntin.state.partition_state import PartitionState


def push(state: PartitionState, keys: list[int], first: int) -> list[int]:
    low = np.array(keys, np.int64)
    positions = np.arange(first, first + len(keys), dtype=np.int64)
    pushed: list[int] = state.push(low, np.zeros(len(keys), np.int64), positions).tolist()
    return pushed


def test_each_row_pushes_out_the_nth_before_it() -> None:
    state = PartitionState(2)
    assert push(state, [7, 8, 7, 7, 8], 0) == [-1, -1, -1, 0, -1]
    assert push(state, [7, 8, 9], 5) == [2, 1, -1]


def test_one_row_per_partition() -> None:
    state = PartitionState(1)
    assert push(state, [1, 1, 2, 1, 2], 10) == [-1, 10, -1, 11, 12]


def test_memory_follows_the_partitions_not_the_rows() -> None:
    state = PartitionState(3)
    push(state, list(range(10_000)), 0)
    size = state.nbytes()
    assert size < 10_000 * 300
    for turn in range(1, 6):
        expected = (
            [-1] * 10_000 if turn < 3 else list(range(10_000 * (turn - 3), 10_000 * (turn - 2)))
        )
        assert push(state, list(range(10_000)), 10_000 * turn) == expected
    assert state.nbytes() <= 2 * size


def test_no_rows_give_no_positions() -> None:
    assert push(PartitionState(5), [], 0) == []


def test_positions_are_the_last_rows_of_every_partition() -> None:
    state = PartitionState(5)
    keys = np.random.default_rng(1).integers(0, 40, 2_000).tolist()
    for first in range(0, 2_000, 100):
        push(state, keys[first : first + 100], first)
    expected = sorted(
        place for key in set(keys) for place in [p for p, own in enumerate(keys) if own == key][-5:]
    )
    assert state.positions().tolist() == expected
    assert PartitionState(3).positions().tolist() == []
