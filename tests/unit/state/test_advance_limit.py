"""Which rows are too far ahead.

The decision is the same as for single rows, for any cut; on Spark it is made per batch.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muntin.model.clock import BEFORE_ALL
from muntin.state.advance_limit import (
    PATIENCE,
    AdvanceLimit,
    Segment,
    merge_segments,
    pack_segments,
    segments_of,
    unpack_segments,
)

LIMIT = 10
TIMES = st.lists(st.integers(-40, 40) | st.integers(0, 5) | st.integers(100, 130), max_size=80)


def one_by_one(times: list[int], reached: list[int]) -> list[bool]:
    """Apply the rule row by row."""
    newest, ahead, inside = None, 0, []
    for time, instant in zip(times, reached, strict=True):
        fits = newest is None or time <= max(newest, instant) + LIMIT
        ahead = 0 if fits else ahead + 1
        taken = fits or ahead == PATIENCE
        if taken:
            newest = time if newest is None or not fits else max(newest, time)
            ahead = 0
        inside.append(taken)
    return inside


@given(TIMES, st.sets(st.integers(0, 80)), st.integers(-20, 120), st.integers(0, 80))
@example([0, *[100] * 10], set(), BEFORE_ALL, 0)
@example([0, *[100] * 9, 5, *[100] * 10], {4, 12}, BEFORE_ALL, 0)
def test_rows_are_judged_one_by_one_for_any_cut(
    times: list[int], cuts: set[int], instant: int, advanced: int
) -> None:
    """Time is advanced to an instant before one of the rows.

    Rows are cut there, and anywhere else.
    """
    state = AdvanceLimit()
    inside: list[bool] = []
    places = sorted({0, len(times), *(cut for cut in {*cuts, advanced} if cut < len(times))})
    for start, stop in itertools.pairwise(places):
        mask = state.take(
            np.array(times[start:stop], np.int64),
            LIMIT,
            instant if start >= advanced else BEFORE_ALL,
        )
        inside += [True] * (stop - start) if mask is None else mask.tolist()
    assert inside == one_by_one(
        times, [instant if place >= advanced else BEFORE_ALL for place in range(len(times))]
    )


def test_many_rows_that_alternate_are_judged_too() -> None:
    times = np.tile([0, 1000], 5000)
    mask = AdvanceLimit().take(times, LIMIT, BEFORE_ALL)
    assert mask is not None
    assert mask.tolist() == [True, False] * 5000


def test_without_a_limit_all_rows_are_taken() -> None:
    state = AdvanceLimit()
    assert state.take(np.array([0, 2**61, 5]), None, BEFORE_ALL) is None
    assert state.newest == 2**61


@given(st.lists(TIMES, max_size=4))
def test_segments_of_tasks_merge_to_those_of_the_batch(tasks: list[list[int]]) -> None:
    parts = [
        segment for times in tasks for segment in segments_of(np.array(times, np.int64), LIMIT)
    ]
    whole = segments_of(np.array([time for times in tasks for time in times], np.int64), LIMIT)
    assert merge_segments(parts, LIMIT) == whole
    assert unpack_segments(pack_segments(whole)) == whole


@pytest.mark.parametrize(
    ("batches", "wanted"),
    [
        ([[(0, 5, 3)], [(8, 20, 2), (100, 100, 1)], [(25, 25, 1)]], [None, 20, None]),
        ([[(0, 0, 1), (100, 120, 50)]], [0]),
        ([[(0, 0, 1)], [(100, 104, 9)], [(102, 105, 1)], [(110, 110, 1)]], [None, 0, None, None]),
        ([[(0, 0, 1)], [(100, 104, 9)], [(1, 1, 1)], [(102, 105, 9)]], [None, 0, None, 1]),
        ([[(0, 0, 1)], [(100, 104, 10), (200, 200, 1)]], [None, 104]),
        ([[(0, 0, 1)], []], [None, None]),
    ],
    ids=[
        "one ahead",
        "first batch",
        "ten over two batches",
        "run interrupted",
        "lowest segment",
        "empty",
    ],
)
def test_a_batch_is_judged_as_a_unit(
    batches: list[list[Segment]], wanted: list[int | None]
) -> None:
    state = AdvanceLimit()
    assert [state.take_batch(batch, LIMIT, BEFORE_ALL) for batch in batches] == wanted


@given(st.lists(TIMES.filter(bool), max_size=6))
def test_a_batch_of_one_row_is_judged_as_that_row(batches: list[list[int]]) -> None:
    """In batches of single rows both rules are the same."""
    times = [time for batch in batches for time in batch]
    by_row, by_batch = AdvanceLimit(), AdvanceLimit()
    for time in times:
        mask = by_row.take(np.array([time]), LIMIT, BEFORE_ALL)
        bound = by_batch.take_batch([(time, time, 1)], LIMIT, BEFORE_ALL)
        assert (mask is None) == (bound is None or time <= bound)
        assert by_row == by_batch
