"""Groups, counts, exact sums and ordered values against plain Python, on random changes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels import order_statistics as ordering
from muntin.state.group_sums import GroupCounts, RealSums, WholeSums
from muntin.state.group_table import GroupTable, Slots
from muntin.state.group_values import GroupValues, Question

WHOLE = st.sampled_from([0, 1, -1, 7, 2**63 - 1, -(2**63), 2**127 - 1, -(2**127)])
REAL = st.one_of(
    st.sampled_from(
        [0.0, -0.0, 0.1, 1e300, -1e300, 1.7e308, 5e-324, 1e-310, math.inf, -math.inf, math.nan]
    ),
    st.floats(-1e6, 1e6),
)
QUESTIONS = [
    Question(ordering.LEAST),
    Question(ordering.GREATEST),
    Question(ordering.LOWER, 0.75),
    Question(ordering.UPPER, 0.75),
    Question(ordering.DISCRETE, 0.3, (3, 10)),
]


@dataclass
class Twin:
    """The state of groups, together with the plain rows."""

    table: GroupTable = field(default_factory=GroupTable)
    counts: GroupCounts = field(default_factory=GroupCounts)
    whole: WholeSums = field(default_factory=WholeSums)
    reals: RealSums = field(default_factory=RealSums)
    values: GroupValues = field(default_factory=lambda: GroupValues(QUESTIONS))
    trees: GroupValues = field(default_factory=lambda: GroupValues(QUESTIONS, most=4))
    rows: dict[int, list[tuple[int, float]]] = field(default_factory=dict)

    def check(self, changes: list[tuple[int, int, float, int, int]]) -> None:
        """Apply changes (key, integer, real number, sign, time) and check all slots."""
        keys = np.array([change[0] for change in changes], np.int64)
        low = np.array([(change[1] + 2**63) % 2**64 - 2**63 for change in changes], np.int64)
        high = np.array([change[1] >> 64 for change in changes], np.int64)
        reals = np.array([change[2] for change in changes])
        signs = np.array([change[3] for change in changes], np.int64)
        slots = self.table.touch(
            self.table.find(keys, np.zeros_like(keys)),
            np.array([change[4] for change in changes], np.int64),
        )
        for part in (self.counts, self.whole, self.reals, self.values, self.trees):
            part.reserve(self.table.capacity)
        counted, sums = self.table.count(slots, signs), self.whole.add(slots, signs, low, high)
        rounded, answers = self.reals.add(slots, signs, reals), self.values.add(slots, signs, low)
        assert np.array_equal(self.trees.add(slots, signs, low), answers)
        for place, key in self._follow(changes, slots, keys):
            there = self.rows.get(key, [])
            assert counted[place] == len(there)
            words = [int(word) % 2**64 for word in sums[place]]
            total = sum(number for number, _ in there)
            assert words == [(total >> shift) % 2**64 for shift in (0, 64, 128)]
            check_real(
                [real for _, real in there], float(rounded[place, 0]), float(rounded[place, 1])
            )
            assert answers[:, place].tolist() == asked(
                sorted((number + 2**63) % 2**64 - 2**63 for number, _ in there)
            )
        gone = self.table.release(slots)
        for part in (self.counts, self.whole, self.reals, self.values, self.trees):
            part.forget(gone)
        different = sum(len({number % 2**64 for number, _ in rows}) for rows in self.rows.values())
        assert len(self.values) == len(self.trees) == different
        assert np.array_equal(self.values.known(), self.trees.known())
        assert len(self.table) == sum(bool(rows) for rows in self.rows.values())

    def _follow(
        self,
        changes: list[tuple[int, int, float, int, int]],
        slots: Slots,
        keys: npt.NDArray[np.int64],
    ) -> Iterator[tuple[int, int]]:
        """Yield the places of slots before and after each run, with the rows at that time."""
        for run in range(len(slots.run_rows) - 1):
            mine = range(slots.run_slots[run], slots.run_slots[run + 1])
            yield from ((2 * slot, int(keys[slots.rows[slot]])) for slot in mine)
            for key, number, real, sign, _ in changes[
                slots.run_rows[run] : slots.run_rows[run + 1]
            ]:
                if sign > 0:
                    self.rows.setdefault(key, []).append((number, real))
                else:
                    spelled = [(known, repr(other)) for known, other in self.rows[key]]
                    self.rows[key].pop(spelled.index((number, repr(real))))
            yield from ((2 * slot + 1, int(keys[slots.rows[slot]])) for slot in mine)


def check_real(values: list[float], got: float, rest: float) -> None:
    special = {value for value in values if not math.isfinite(value)}
    if any(math.isnan(value) for value in special) or len(special) == 2:
        assert math.isnan(got)
    elif special:
        assert got == special.pop()
    else:
        exact = sum((Fraction(value) for value in values), Fraction())
        limit = Fraction(2) ** 1024
        rounded = (
            float(exact)
            if abs(exact) < limit - limit / 2**54
            else math.inf * (1 if exact > 0 else -1)
        )
        assert got == rounded
        if math.isfinite(rounded):
            assert rest == float(exact - Fraction(rounded))


def asked(values: list[int]) -> list[int]:
    if not values:
        return [0] * len(QUESTIONS)
    last = len(values) - 1
    lower, upper = math.floor(last * 0.75), math.ceil(last * 0.75)
    discrete = max(math.ceil(Fraction(3, 10) * len(values)), 1) - 1
    return [values[0], values[-1], values[lower], values[upper], values[discrete]]


@given(st.data())
def test_groups_follow_their_rows(data: st.DataObject) -> None:
    twin = Twin()
    live: list[tuple[int, int, float]] = []
    time = 0
    for _ in range(data.draw(st.integers(1, 5))):
        changes: list[tuple[int, int, float, int, int]] = []
        for _ in range(data.draw(st.integers(1, 30))):
            time += data.draw(st.integers(0, 1))
            leaves = data.draw(st.booleans())
            if live and leaves:
                row = live.pop(data.draw(st.integers(0, len(live) - 1)))
                changes.append((*row, -1, time))
            else:
                row = (data.draw(st.integers(0, 4)), data.draw(WHOLE), data.draw(REAL))
                live.append(row)
                changes.append((*row, 1, time))
        twin.check(changes)


def test_a_million_rows_later_a_sum_has_not_drifted() -> None:
    """A window of 1,000 rows slides over a million.

    Its sum is then exactly that of its rows, although 1e300 passed through it.
    """
    random = np.random.default_rng(7)
    values = random.normal(0, 1e6, 1_000_000)
    values[500_000] = 1e300
    sums, table = RealSums(), GroupTable()
    out = np.zeros((2, 2))
    for start in range(0, len(values), 100_000):
        coming = values[start : start + 100_000]
        first = max(start - 1_000, 0)
        going = values[first : max(start + 99_000, 0)]
        both = np.concatenate([coming, going])
        signs = np.repeat([1, -1], [len(coming), len(going)])
        zeros = np.zeros(len(both), np.int64)
        slots = table.touch(table.find(zeros, zeros), np.full(len(both), start))
        table.count(slots, signs)
        sums.reserve(table.capacity)
        out = sums.add(slots, signs, both)
    assert out[1, 0] == math.fsum(values[-1_000:])


def test_numbers_of_groups_are_used_again_and_memory_stays() -> None:
    table = GroupTable()
    for batch in range(50):
        keys = np.repeat(np.arange(batch * 100, batch * 100 + 100), 2)
        slots = table.touch(table.find(keys, keys), np.repeat(np.arange(100), 2) + 100 * batch)
        table.count(slots, np.tile([1, -1], 100))
        assert len(table.release(slots)) == 100
        assert len(table) == 0
    assert table.capacity == 1024


@pytest.mark.parametrize("order", ["up", "down", "shuffled"])
def test_many_values_in_any_order(order: str) -> None:
    """Trees stay shallow: a hundred thousand values in order would otherwise take minutes."""
    count = 100_000
    keys = (
        np.arange(count)
        if order == "up"
        else np.arange(count)[::-1]
        if order == "down"
        else np.random.default_rng(1).permutation(count)
    )
    values, table = GroupValues(QUESTIONS), GroupTable()
    zeros = np.zeros(count, np.int64)
    found = np.zeros((len(QUESTIONS), 2), np.int64)
    for sign in (1, -1):
        slots = table.touch(table.find(zeros, zeros), np.full(count, sign))
        table.count(slots, np.full(count, sign))
        values.reserve(table.capacity)
        found = values.add(slots, np.full(count, sign), np.ascontiguousarray(keys))
    assert found[:, 0].tolist() == asked(list(range(count)))
    assert found[:, 1].tolist() == [0] * len(QUESTIONS)
    assert len(values) == 0
