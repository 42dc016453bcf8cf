"""The rows and matches of semi and anti joins, against counting in Python."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.state.semi_join_rows import SemiJoinRows

Change = tuple[int, int, int, int]
"""An instant, a key, a value (of the left side only) and a sign."""


@st.composite
def batches(drawing: st.DrawFn) -> list[tuple[list[Change], list[Change]]]:
    """Draw batches of changes of both sides: a row goes only after it has come."""
    found = []
    present: tuple[Counter[tuple[int, int]], ...] = Counter(), Counter()
    now = 0
    for _ in range(drawing(st.integers(1, 5))):
        sides: tuple[list[Change], list[Change]] = [], []
        for _ in range(drawing(st.integers(0, 30))):
            now += drawing(st.integers(0, 1))
            side = drawing(st.integers(0, 1))
            row = drawing(st.integers(0, 3)), drawing(st.integers(0, 2)) if side == 0 else 0
            sign = -1 if present[side][row] and drawing(st.booleans()) else 1
            present[side][row] += sign
            sides[side].append((now, *row, sign))
        found.append(sides)
        now += 1
    return found


def answers(
    changes: list[tuple[list[Change], list[Change]]], instants: list[int], *, anti: bool
) -> list[Counter[tuple[int, int]]]:
    """Count the rows of the result after each instant, from all changes up to it."""
    found = []
    for instant in instants:
        left, right = Counter[tuple[int, int]](), Counter[int]()
        for sides in changes:
            for time, key, value, sign in sides[0]:
                left[key, value] += sign if time <= instant else 0
            for time, key, _, sign in sides[1]:
                right[key] += sign if time <= instant else 0
        found.append(
            Counter({row: n for row, n in left.items() if n and (right[row[0]] > 0) != anti})
        )
    return found


def words(numbers: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(numbers, np.int64), np.zeros(len(numbers), np.int64)


@pytest.mark.parametrize("kind", ["semi", "anti"])
@given(drawn=batches())
def test_the_result_changes_by_what_counting_gives(
    kind: str, drawn: list[tuple[list[Change], list[Change]]]
) -> None:
    anti = kind == "anti"
    kept = SemiJoinRows(pa.schema({"k": pa.int64(), "v": pa.int64()}), anti=anti)
    changed: dict[int, Counter[tuple[int, int]]] = {}
    for left, right in drawn:
        columns = pa.table(
            {"k": [one[1] for one in left], "v": [one[2] for one in left]},
            schema=pa.schema({"k": pa.int64(), "v": pa.int64()}),
        )
        rows, times, signs = kept.run(
            (
                columns,
                words([one[1] for one in left]),
                words([3 * one[1] + one[2] for one in left]),
                np.array([one[0] for one in left], np.int64),
                np.array([one[3] for one in left], np.int64),
            ),
            (
                words([one[1] for one in right]),
                np.array([one[0] for one in right], np.int64),
                np.array([one[3] for one in right], np.int64),
            ),
        )
        assert (times[1:] >= times[:-1]).all()
        for row, time, sign in zip(rows.to_pylist(), times.tolist(), signs.tolist(), strict=True):
            changed.setdefault(time, Counter())[row["k"], row["v"]] += sign
            assert abs(changed[time][row["k"], row["v"]]) > 0, "no row both comes and goes"
    instants = [-1, *range(max((t for s in drawn for part in s for t, *_ in part), default=0) + 1)]
    for (_, before), (now, after) in pairwise(
        zip(instants, answers(drawn, instants, anti=anti), strict=True)
    ):
        expected = {row: after[row] - before[row] for row in after | before}
        found = changed.get(now, Counter())
        assert Counter({row: n for row, n in expected.items() if n}) == found
    last = answers(drawn, instants, anti=not anti)[-1] + answers(drawn, instants, anti=anti)[-1]
    right_keys = Counter[int]()
    for _, right in drawn:
        for _, key, _, sign in right:
            right_keys[key] += sign
    keys = {key for key, _ in last} | {key for key, n in right_keys.items() if n}
    assert len(kept) == len(last) + len(keys), "nothing is kept of rows and keys that are gone"
