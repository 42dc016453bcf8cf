"""The kernel of as-of joins against rows that are searched at every instant."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels.asof_join import INSERTS, OUTER
from muntin.kernels.ordered_rows import BELOW, NEXT, NONE, PARENT, PREVIOUS, ROOT
from muntin.state.asof_rows import AsofRows, SideRows

LEFT, RIGHT = 0, 1
SCHEMA = pa.schema([("id", pa.int64())])
Row = tuple[int, int]
"""A row of one side: its key, and where it is in the order."""
Change = tuple[int, int, int]
"""The side, the number of the row, and the sign."""
Found = Counter[tuple[int, int, int | None]]
"""Of results: the instant, the numbers of the left and the right row."""
ROWS = 8

sides = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 4)), min_size=ROWS, max_size=ROWS)


def side_rows(rows: list[Row], side: int, changes: list[tuple[int, Change]]) -> SideRows:
    """Return changes as the state takes them; right rows at one place are ordered by number."""
    own = [(time, number, sign) for time, (at, number, sign) in changes if at == side]
    times, numbers, signs = (np.array([one[place] for one in own], np.int64) for place in range(3))
    keys = np.array([rows[number][0] for number in numbers], np.int64)
    order = np.array([rows[number][1] for number in numbers], np.int64)
    zeros = np.zeros(len(own), np.int64)
    words = np.column_stack([order, zeros + (side == LEFT), numbers if side else zeros])
    table = pa.table([numbers], schema=SCHEMA)
    return SideRows(table, (keys, zeros), (numbers, zeros), words, times, signs)


def matches(sides: tuple[list[Row], list[Row]], there: Counter[tuple[int, int]]) -> dict[int, int]:
    """Return the match of every left row that has one, found by looking at all right rows."""
    found = {}
    for side, number in +there:
        if side == LEFT:
            key, at = sides[LEFT][number]
            before = [
                (sides[RIGHT][other][1], other)
                for one, other in +there
                if one == RIGHT and sides[RIGHT][other][0] == key and sides[RIGHT][other][1] <= at
            ]
            if before:
                found[number] = max(before)[1]
    return found


def answer(
    sides: tuple[list[Row], list[Row]], there: Counter[tuple[int, int]], form: int
) -> Counter[tuple[int, int | None]]:
    found = matches(sides, there)
    return Counter(
        {
            (number, found.get(number)): weight
            for (side, number), weight in (+there).items()
            if side == LEFT and (number in found or form & OUTER)
        }
    )


def check_order(kept: AsofRows, there: Counter[tuple[int, int]]) -> None:
    """Assert that the trees and lists of all keys have the rows that are there, in order."""
    nodes, keys, _ = kept._kept
    seen = 0
    for root in keys[:, ROOT]:
        if root == NONE:
            continue
        at = int(root)
        assert nodes[at, PARENT] == NONE
        while nodes[at, BELOW] != NONE:
            assert nodes[nodes[at, BELOW], PARENT] == at
            at = int(nodes[at, BELOW])
        assert nodes[at, PREVIOUS] == NONE
        before = None
        while at != NONE:
            words = tuple(nodes[at, -3:].tolist())
            assert before is None or before <= words
            before, at, seen = words, int(nodes[at, NEXT]), seen + 1
    assert seen == len(+there)


@given(sides, sides, st.sampled_from([0, OUTER, INSERTS, OUTER | INSERTS]), st.data())
def test_matches_are_those_of_a_search(
    left: list[Row], right: list[Row], form: int, data: st.DataObject
) -> None:
    rows = left, right
    kept = AsofRows(SCHEMA, SCHEMA, 3, form)
    there: Counter[tuple[int, int]] = Counter()
    time = 0
    for _ in range(data.draw(st.integers(1, 3))):
        changes: list[tuple[int, Change]] = []
        expected: Found = Counter()
        for _ in range(data.draw(st.integers(1, 3))):
            time += 1
            before, held = answer(rows, there, form), Counter(there)
            for side, number in data.draw(
                st.lists(st.tuples(st.integers(0, 1), st.integers(0, ROWS - 1)), max_size=6)
            ):
                leaves = there[side, number] > 0 and data.draw(st.booleans())
                there[side, number] += -1 if leaves else 1
                changes.append((time, (side, number, -1 if leaves else 1)))
            after = answer(rows, there, form)
            for (number, match), weight in after.items():
                gained = weight - before[number, match]
                if form & INSERTS and match is None:
                    gained = weight - held[LEFT, number]
                expected[time, number, match] += max(gained, 0)
            for (number, match), weight in () if form & INSERTS else before.items():
                expected[time, number, match] -= max(weight - after[number, match], 0)
        lefts, rights = (side_rows(rows[side], side, changes) for side in (LEFT, RIGHT))
        one, other, times, signs = kept.run(lefts, rights)
        found: Found = Counter()
        for number, match, instant, sign in zip(
            one["id"].to_pylist(), other["id"].to_pylist(), times, signs, strict=True
        ):
            found[int(instant), number, match] += int(sign)
        assert {key: weight for key, weight in found.items() if weight} == {
            key: weight for key, weight in expected.items() if weight
        }
        check_order(kept, there)
    gone = [(time + 1, (*row, -weight)) for row, weight in (+there).items()]
    every = [(at, (side, number, -1)) for at, (side, number, n) in gone for _ in range(-n)]
    kept.run(side_rows(left, LEFT, every), side_rows(right, RIGHT, every))
    assert len(kept) == 0


def test_room_for_results_is_found_again_and_again() -> None:
    """A right row that becomes the match of very many left rows fills the room several times."""
    count = 5_000
    kept = AsofRows(SCHEMA, SCHEMA, 3, OUTER)
    rows = [(0, 1)] * count
    lefts = [(1, (LEFT, number, 1)) for number in range(count)]
    kept.run(side_rows(rows, LEFT, lefts), side_rows(rows, RIGHT, []))
    came = [(2, (RIGHT, 7, 1))]
    one, other, _, signs = kept.run(side_rows(rows, LEFT, []), side_rows(rows, RIGHT, came))
    assert len(one) == 2 * count
    assert sorted(one["id"].to_pylist()) == sorted([*range(count)] * 2)
    assert other["id"].null_count == count
    assert int(signs.sum()) == 0
