"""Partitions in a table and a pool that are always too small, against a dictionary of lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels.partitions import (
    BLOCK,
    ENTRY_FIELDS,
    FIRST,
    ROOM,
    USED,
    PartitionArrays,
    find_entry,
    move_partitions,
    push_partitions,
)

KEYS = st.lists(
    st.tuples(st.sampled_from([-(2**63), -1, 0, 1, 7, 2**63 - 1]), st.integers(0, 2)), max_size=80
)


@given(st.integers(1, 11), KEYS)
def test_blocks_grow_and_move_and_push_out_the_oldest(
    rows: int, keys: list[tuple[int, int]]
) -> None:
    low, high = (np.array([key[part] for key in keys], np.int64) for part in (0, 1))
    positions = 1000 + 3 * np.arange(len(keys), dtype=np.int64)
    table, pool, sizes = (
        np.zeros((2, ENTRY_FIELDS), np.int64),
        np.zeros(4, np.int64),
        np.zeros(2, np.int64),
    )
    pushed = np.empty(len(keys), np.int64)
    done = 0
    while (
        done := push_partitions(
            PartitionArrays(table, pool, sizes), rows, low, high, done, positions, pushed
        )
    ) < len(keys):
        larger, longer = (
            np.zeros((2 * len(table), ENTRY_FIELDS), np.int64),
            np.zeros(2 * len(pool), np.int64),
        )
        move_partitions(table, pool, larger, longer, sizes)
        table, pool = larger, longer

    twin: dict[tuple[int, int], list[int]] = {}
    expected = []
    for key, position in zip(keys, positions.tolist(), strict=True):
        members = twin.setdefault(key, [])
        members.append(position)
        expected.append(members.pop(0) if len(members) > rows else -1)
    assert pushed.tolist() == expected
    assert sizes[0] == len(twin)
    assert sizes[1] <= len(pool)
    for (first, second), members in twin.items():
        entry = table[find_entry(table, np.int64(first), np.int64(second))]
        ring = pool[entry[BLOCK] : entry[BLOCK] + entry[ROOM]].tolist()
        assert [
            ring[(entry[FIRST] + place) % entry[ROOM]] for place in range(entry[USED])
        ] == members
