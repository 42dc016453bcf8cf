"""Least and greatest values of rows that leave in arrival order, against plain Python.

Changes are random.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels import order_statistics as ordering
from muntin.state.group_extremes import GroupExtremes
from muntin.state.group_table import GroupTable
from muntin.state.group_values import Question

QUESTIONS = [Question(ordering.GREATEST), Question(ordering.LEAST)]
VALUE = st.one_of(st.integers(0, 5), st.sampled_from([2**63 - 1, -(2**63)]))
Change = tuple[int, int, int, int]


@dataclass
class Twin:
    """Extremes, together with the rows of each group."""

    table: GroupTable = field(default_factory=GroupTable)
    extremes: GroupExtremes = field(default_factory=lambda: GroupExtremes(QUESTIONS))
    rows: dict[int, deque[int]] = field(default_factory=dict)

    def check(self, changes: list[Change]) -> None:
        """Apply changes (key, value, sign, time) and check the values of every slot."""
        keys, values, signs, times = (
            np.array(column, np.int64) for column in zip(*changes, strict=True)
        )
        slots = self.table.touch(self.table.find(keys, np.zeros_like(keys)), times)
        self.extremes.reserve(self.table.capacity)
        self.table.count(slots, signs)
        found = self.extremes.add(slots, signs, values)
        for run in range(len(slots.run_rows) - 1):
            mine = range(slots.run_slots[run], slots.run_slots[run + 1])
            for slot in mine:
                assert found[:, 2 * slot].tolist() == self._expected(int(keys[slots.rows[slot]]))
            for row in range(slots.run_rows[run], slots.run_rows[run + 1]):
                there = self.rows.setdefault(int(keys[row]), deque())
                if signs[row] > 0:
                    there.append(int(values[row]))
            for row in range(slots.run_rows[run], slots.run_rows[run + 1]):
                if signs[row] < 0:
                    self.rows[int(keys[row])].popleft()
            for slot in mine:
                assert found[:, 2 * slot + 1].tolist() == self._expected(
                    int(keys[slots.rows[slot]])
                )
        self.extremes.forget(self.table.release(slots))
        left = {value for rows in self.rows.values() for value in rows}
        assert set(self.extremes.known().tolist()) <= left
        assert (len(self.extremes) == 0) == (not left)

    def _expected(self, key: int) -> list[int]:
        rows = self.rows.get(key)
        return [max(rows), min(rows)] if rows else [0, 0]


@given(st.data())
def test_extremes_follow_their_rows(data: st.DataObject) -> None:
    """At one instant rows may leave in any order, and a removal may precede its row."""
    twin = Twin()
    live: dict[int, int] = {}
    time = 0
    for _ in range(data.draw(st.integers(1, 5))):
        changes: list[Change] = []
        for _ in range(data.draw(st.integers(1, 8))):
            time += 1
            coming = data.draw(
                st.lists(st.tuples(st.integers(0, 2), VALUE), min_size=1, max_size=6)
            )
            run = [(key, value, 1, time) for key, value in coming]
            for key, _ in coming:
                live[key] = live.get(key, 0) + 1
            for key in sorted(live):
                going = data.draw(st.integers(0, live[key]))
                live[key] -= going
                run += [(key, 0, -1, time)] * going
            changes += data.draw(st.permutations(run))
        twin.check(changes)


def test_other_integers_can_stand_for_the_values() -> None:
    twin = Twin()
    twin.check([(1, value, 1, 1) for value in (4, 2, 3, 9, 5)])
    known = twin.extremes.known()
    assert known.tolist() == [2, 3, 5, 9]
    twin.extremes.rename(known, known * 10)
    twin.rows[1] = deque(value * 10 for value in twin.rows[1])
    twin.check([(1, 0, -1, 2), (1, 25, 1, 3), (1, 0, -1, 4), (1, 0, -1, 5)])
    assert twin.extremes.known().tolist() == [25, 50, 90]


def test_blocks_are_used_again_and_memory_stays() -> None:
    """Falling values are all kept for the maximum, so queues grow through all block sizes."""
    twin = Twin()
    bytes_at = []
    for batch in range(6):
        twin.check(
            [
                (key, 1_000 - value, 1, batch * 1_000 + value)
                for value in range(200)
                for key in (batch, batch + 100)
            ]
        )
        twin.check(
            [(key, 0, -1, batch * 1_000 + 500) for key in (batch, batch + 100) for _ in range(200)]
        )
        bytes_at.append(twin.extremes.nbytes())
    assert len(twin.extremes) == 0
    assert bytes_at[1] == bytes_at[-1]


def test_a_pool_that_grows_between_rows_loses_no_value() -> None:
    """The pool runs out while the first row of a run replaces the greatest value before it."""
    twin = Twin()
    keys = np.random.default_rng(7).integers(0, 100, 2_000)
    twin.check([(int(key), time + 1, 1, time) for time, key in enumerate(keys)])
