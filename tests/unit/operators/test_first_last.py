"""FIRST, LAST and distinct values against plain Python; values of expired rows are removed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.aggregates.function import Edge
from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.operators.distinct_values import DistinctValues
from muntin.operators.first_last import FirstLast
from muntin.state.group_table import GroupTable, Slots

Row = tuple[int, int, int, str | None]
"""Group, time, place in the stream, value."""


def touch(table: GroupTable, changes: list[tuple[Row, int]], times: list[int]) -> Slots:
    keys = np.array([row[0] for row, _ in changes], np.int64)
    return table.touch(table.find(keys, np.zeros_like(keys)), np.array(times, np.int64))


class Twin:
    """FIRST and LAST, together with the rows of each group."""

    def __init__(self) -> None:
        self.table = GroupTable()
        self.values = FirstLast(pa.string(), [Edge.NEWEST, Edge.OLDEST], Evaluator(Duck()))
        self.rows: list[Row] = []

    def check(self, changes: list[tuple[Row, int]], time: int) -> None:
        """Apply the changes of one run and check the values of each group before and after."""
        slots = touch(self.table, changes, [time] * len(changes))
        signs = np.array([sign for _, sign in changes], np.int64)
        self.values.reserve(self.table.capacity)
        self.table.count(slots, signs)
        column = pa.chunked_array([pa.array([row[3] for row, _ in changes], pa.string())])
        order = pa.table({"t": [row[1] for row, _ in changes], "p": [row[2] for row, _ in changes]})
        kept = self.values.run(slots, signs, column, order)
        first, last = kept.pick(Edge.OLDEST), kept.pick(Edge.NEWEST)
        groups = [changes[row][0][0] for row in slots.rows]
        before = [self.expected(group) for group in groups]
        for row, sign in changes:
            if sign > 0:
                self.rows.append(row)
            else:
                self.rows.remove(row)
        after = [self.expected(group) for group in groups]
        assert (
            list(zip(first.values.to_pylist()[0::2], last.values.to_pylist()[0::2], strict=True))
            == before
        )
        assert (
            list(zip(first.values.to_pylist()[1::2], last.values.to_pylist()[1::2], strict=True))
            == after
        )
        assert first.changed.tolist() == [
            one[0] != two[0] for one, two in zip(before, after, strict=True)
        ]
        assert last.changed.tolist() == [
            one[1] != two[1] for one, two in zip(before, after, strict=True)
        ]
        self.values.forget(self.table.release(slots))

    def expected(self, group: int) -> tuple[str | None, str | None]:
        """Return the first and the last value of a group."""
        values = [
            row[3]
            for row in sorted(self.rows, key=lambda row: row[1:3])
            if row[0] == group and row[3] is not None
        ]
        return (values[0], values[-1]) if values else (None, None)


@given(st.data())
def test_first_and_last_follow_their_rows(data: st.DataObject) -> None:
    """Rows of one time arrive and leave in any order."""
    twin = Twin()
    place = 0
    for time in range(data.draw(st.integers(1, 8))):
        coming = []
        for _ in range(data.draw(st.integers(0, 4))):
            place += 1
            coming.append(
                (
                    data.draw(st.integers(0, 2)),
                    time,
                    place,
                    data.draw(st.sampled_from(["a", "b", None])),
                )
            )
        going = [row for row in twin.rows if data.draw(st.booleans())]
        changes = [
            *((row, 1) for row in data.draw(st.permutations(coming))),
            *((row, -1) for row in going),
        ]
        if changes:
            twin.check(changes, time)


def test_indistinguishable_rows_leave_one_by_one() -> None:
    """Partitions may give different rows the same positions."""
    twin = Twin()
    same, other = (1, 5, 7, "a"), (1, 5, 8, "b")
    twin.check([(same, 1), (other, 1)], 5)
    twin.check([(same, 1)], 6)
    twin.check([(same, -1)], 7)
    twin.check([(same, -1)], 8)
    assert twin.expected(1) == ("b", "b")
    twin.check([(other, -1)], 9)


def test_values_of_expired_rows_are_removed() -> None:
    twin = Twin()
    rows = [(number % 3, number, number, f"value {number}") for number in range(4_000)]
    most = 0
    for number in range(0, 4_000, 50):
        twin.check([(row, 1) for row in rows[number : number + 50]], number)
        if number >= 100:
            twin.check([(row, -1) for row in rows[number - 100 : number - 50]], number + 1)
        most = max(most, twin.values.nbytes())
    assert most < 400_000
    assert twin.expected(0)[1] is not None


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.sampled_from([0.0, -0.0, 1.5, float("nan"), None]),
            st.integers(0, 3),
        ),
        max_size=40,
    )
)
def test_a_value_counts_once_however_often_it_is_there(
    rows: list[tuple[int, float | None, int]],
) -> None:
    """Rows arrive run by run; each leaves some runs later, or stays."""
    events = [(time, row, 1) for time, row in enumerate(rows)] + [
        (time + 2 * row[2], row, -1) for time, row in enumerate(rows) if row[2]
    ]
    events.sort(key=lambda event: event[0])
    table, values = GroupTable(), DistinctValues(Evaluator(Duck()))
    there: dict[tuple[int, str], int] = {}
    counted = 0
    for start in range(0, len(events), 7):
        part = events[start : start + 7]
        slots = touch(
            table,
            [((row[0], 0, 0, None), sign) for _, row, sign in part],
            [time for time, _, _ in part],
        )
        signs = np.array([sign if row[1] is not None else 0 for _, row, sign in part], np.int64)
        table.count(slots, np.array([sign for _, _, sign in part], np.int64))
        found = values.weights(
            slots, signs, pa.chunked_array([pa.array([row[1] for _, row, _ in part], pa.float64())])
        )
        for _, row, sign in part:
            if row[1] is not None:
                key = row[0], repr(row[1] + 0.0)
                there[key] = there.get(key, 0) + sign
        counted += int(found.sum())
        assert counted == sum(count > 0 for count in there.values())
