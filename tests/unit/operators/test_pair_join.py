"""Joins of signed rows against all combinations of all changes; removed rows leave no state."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.operators.pair_join import Key, PairJoin
from muntin.operators.signed import NEVER, Changes
from muntin.plan.expression import ColumnRef, Expression
from muntin.plan.key_types import key_type

Change = tuple[int, int, int | None, str, int]
"""Time, sign, key, value, end."""
LEFT, RIGHT = (
    pa.schema([(f"{place}.k", pa.int64()), (f"{place}.v", pa.string())]) for place in (0, 1)
)


def column(place: int, kind: pa.DataType | None = None) -> Expression:
    return Expression(f'"{place}.k"', (ColumnRef(place, "k"),), kind or pa.int64())


def join(*, keyed: bool = True, ending: bool = False) -> PairJoin:
    keys = [Key(column(0), column(1), pa.int64())] if keyed else []
    return PairJoin(keys, (LEFT, RIGHT), Evaluator(Duck()), ending=ending)


def changes(rows: list[Change], schema: pa.Schema, *, ending: bool) -> Changes:
    rows = sorted(rows, key=lambda row: row[0])
    columns = pa.table([[row[2] for row in rows], [row[3] for row in rows]], schema=schema)
    times, signs, ends = (np.array([row[place] for row in rows], np.int64) for place in (0, 1, 4))
    return Changes(columns, times, signs, ends if ending else None)


def weighed(found: Changes) -> Counter[tuple[object, ...]]:
    rows: Counter[tuple[object, ...]] = Counter()
    values = zip(*(part.to_pylist() for part in found.columns.columns), strict=True)
    for row, time, weight, end in zip(
        values,
        found.times.tolist(),
        found.signs.tolist(),
        found.explicit_ends().tolist(),
        strict=True,
    ):
        rows[(*row, time, end)] += weight
    return Counter({row: weight for row, weight in rows.items() if weight})


@pytest.mark.parametrize("ending", [False, True])
@pytest.mark.parametrize("keyed", [False, True])
@given(data=st.data())
def test_all_combinations_with_the_products_of_their_signs(
    data: st.DataObject,
    keyed: bool,  # noqa: FBT001
    ending: bool,  # noqa: FBT001
) -> None:
    """Rows are added and later retracted in batches; a batch gives combinations with new rows."""
    joined = join(keyed=keyed, ending=ending)
    past: tuple[list[Change], list[Change]] = ([], [])
    there: tuple[list[Change], list[Change]] = ([], [])
    expected: Counter[tuple[object, ...]] = Counter()
    found: Counter[tuple[object, ...]] = Counter()
    for batch in range(data.draw(st.integers(1, 4))):
        new: tuple[list[Change], list[Change]] = ([], [])
        for side in (0, 1):
            for _ in range(data.draw(st.integers(0, 5))):
                time = 10 * batch + data.draw(st.integers(0, 9))
                leaves = data.draw(st.booleans())
                if there[side] and leaves:
                    _, _, key, value, end = there[side].pop()
                    if end > time:
                        new[side].append((time, -1, key, value, end))
                    continue
                end = time + data.draw(st.integers(1, 25)) if ending else NEVER
                row = (
                    time,
                    1,
                    data.draw(st.sampled_from([1, 2, None])),
                    data.draw(st.sampled_from(["a", "b"])),
                    end,
                )
                new[side].append(row)
            past[side].extend(new[side])
        there[0].extend(row for row in new[0] if row[1] > 0)
        there[1].extend(row for row in new[1] if row[1] > 0)
        result = joined.run(
            changes(new[0], LEFT, ending=ending), changes(new[1], RIGHT, ending=ending)
        )
        assert (np.diff(result.times) >= 0).all()
        found.update(weighed(result))
    for left in past[0]:
        for right in past[1]:
            time, end = max(left[0], right[0]), min(left[4], right[4])
            if time < end and (not keyed or (left[2] == right[2] and left[2] is not None)):
                expected[(left[2], left[3], right[2], right[3], time, end)] += left[1] * right[1]
    assert {row: weight for row, weight in found.items() if weight} == {
        row: weight for row, weight in expected.items() if weight
    }


@pytest.mark.parametrize("ending", [False, True])
def test_removed_rows_leave_no_state(ending: bool) -> None:  # noqa: FBT001
    """Rows with ends are not retracted; the join searches for ended rows when many may exist."""
    joined = join(ending=ending)
    nothing = Changes.none(RIGHT)
    most = 0
    for second in range(0, 6_000, 100):
        coming: list[Change] = [
            (second + number, 1, second + number, "x", second + number + 100)
            for number in range(100)
        ]
        joined.run(changes(coming, LEFT, ending=ending), nothing)
        if not ending:
            joined.run(
                changes(
                    [(second + 100, -1, key, "x", end) for _, _, key, _, end in coming],
                    LEFT,
                    ending=False,
                ),
                nothing,
            )
        most = max(most, joined.nbytes())
    assert joined.rows() < 1_500
    assert most < 1_000_000


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        (pa.string(), pa.string(), pa.string()),
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.float32(), pa.float64(), None),
        (pa.uint64(), pa.int64(), None),
        (pa.string(), pa.int64(), None),
    ],
)
def test_types_that_a_cast_makes_comparable(
    left: pa.DataType, right: pa.DataType, common: pa.DataType | None
) -> None:
    assert key_type(left, right) == key_type(right, left) == common
