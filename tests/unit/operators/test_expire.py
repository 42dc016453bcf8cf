"""W-Expire stores rows with their ends and retracts each one once, when it is due."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.operators.expire import Expire
from muntin.operators.signed import NEVER, Changes

SCHEMA = pa.schema([("x", pa.int64())])


def rows(values: list[tuple[int, int, int]]) -> Changes:
    """Return changes of numbered rows, given by time, end and sign."""
    columns = pa.table({"x": pa.array([abs(end - time) for time, end, _ in values], pa.int64())})
    times, ends, signs = (
        np.array([value[place] for value in values], np.int64) for place in range(3)
    )
    return Changes(columns, times, signs, ends)


@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(1, 9), st.sampled_from([1, 1, 1, -1])), max_size=40),
            st.integers(0, 5),
        ),
        max_size=30,
    )
)
def test_due_rows_are_retracted_at_their_end_and_the_others_stay(
    batches: list[tuple[list[tuple[int, int]], int]],
) -> None:
    expire = Expire(SCHEMA)
    kept: list[tuple[int, int, int]] = []
    now = 0
    for batch, later in batches:
        expire.take(rows([(now, now + length, sign) for length, sign in batch]))
        kept += [(now + length, -sign, length) for length, sign in batch]
        now += later
        due = expire.due(now)
        found = list(
            zip(
                due.times.tolist(),
                due.signs.tolist(),
                due.columns.column("x").to_pylist(),
                strict=True,
            )
        )
        assert [(time, -sign) for time, sign, _ in found] == sorted(
            (time, -sign) for time, sign, _ in found
        ), "by time, what comes first"
        assert sorted(found) == sorted(row for row in kept if row[0] <= now)
        kept = [row for row in kept if row[0] > now]
        assert len(expire) == len(kept)


def test_many_batches_are_kept_in_few_segments() -> None:
    expire = Expire(SCHEMA)
    for now in range(5_000):
        expire.take(rows([(now, now + 1_000_000, 1)]))
    assert len(expire) == 5_000
    assert len(list(expire._log.batches())) < 50
    assert expire.nbytes() < 5_000 * 80


def test_rows_that_stay_do_not_keep_those_that_have_gone() -> None:
    expire = Expire(SCHEMA)
    for now in range(0, 40_000, 100):
        stays = [(now, now + 1_000_000, 1)]
        expire.take(rows(stays + [(now, now + 10, 1)] * 100))
        assert len(expire.due(now + 50)) == 100
    assert len(expire) == 400
    assert expire._log.held() < 4 * 400 + 1_200
    assert expire.due(2_000_000).times.tolist() == list(range(1_000_000, 1_040_000, 100))


@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=30))
def test_any_length_of_stay_is_possible(lengths: list[int]) -> None:
    expire = Expire(SCHEMA)
    for length in lengths:
        expire.take(rows([(0, length, 1)]))
    found = [expire.due(end).columns.column("x").to_pylist() for end in sorted(set(lengths))]
    assert [value for part in found for value in part] == sorted(lengths)


def test_rows_without_an_end_are_not_stored() -> None:
    expire = Expire(SCHEMA)
    expire.take(rows([(0, NEVER, 1), (0, 5, 1)]))
    expire.take(Changes.coming(pa.table({"x": [1]}), 0))
    assert len(expire) == 1


def test_removals_of_an_instant_come_before_its_additions() -> None:
    expire = Expire(SCHEMA)
    expire.run(rows([(0, 5, 1)]), 0)
    found = expire.run(rows([(5, 9, 1)]), 5)
    assert list(zip(found.times.tolist(), found.signs.tolist(), strict=True)) == [(5, -1), (5, 1)]
    assert found.ends is None


@given(st.integers(1, 2**40), st.integers(0, 2**31))
def test_many_rows_are_sorted_by_their_ends(window: int, seed: int) -> None:
    """There are more rows than are compared one by one."""
    lengths = np.random.default_rng(seed).integers(1, window + 1, 5_000)
    expire = Expire(SCHEMA)
    expire.take(
        Changes(
            pa.table({"x": lengths}), np.zeros(5_000, np.int64), np.ones(5_000, np.int64), lengths
        )
    )
    found = expire.due(window)
    assert np.array_equal(found.times, np.sort(lengths))
    assert np.array_equal(found.columns.column("x").to_numpy(), found.times)
