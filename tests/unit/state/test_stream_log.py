"""The stream log under any sequence of appends and trims, against a dictionary of its rows."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.state import stream_log
from muntin.state.batch import Batch
from muntin.state.stream_log import StreamLog

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.int32()))])


def append(log: StreamLog, count: int, step: int = 1) -> None:
    """Append rows whose number is their position and whose time is three times that."""
    numbers = list(range(log.next, log.next + count))
    texts = [None if n % 4 == 0 else "é" * (n % 3) for n in numbers]
    rows = pa.table(
        [numbers, texts, [None if n % 5 == 0 else [n, n] for n in numbers]], schema=SCHEMA
    )
    log.append(Batch(rows, np.array(numbers, np.int64) // step * 3, np.zeros(count)))


# An append of N rows, or a trim up to a position (in hundredths) that keeps every nth row.
STEPS = st.lists(
    st.one_of(st.integers(0, 40), st.tuples(st.integers(0, 100), st.sampled_from([0, 1, 2, 7]))),
    max_size=14,
)


@given(STEPS, st.sampled_from([1, 8, 65_536]), st.sampled_from([0, 3]))
def test_what_may_be_needed_is_there_and_gathered_right(
    steps: list[int | tuple[int, int]], small: int, few: int
) -> None:
    log = StreamLog(SCHEMA)
    needed: list[int] = []
    with patch.object(stream_log, "_SMALL", small), patch.object(stream_log, "_FEW", few):
        for step in steps:
            if isinstance(step, int):
                needed += range(log.next, log.next + step)
                append(log, step)
            else:
                before = log.next * step[0] // 100
                kept = [n for n in needed if n < before and step[1] and n % step[1] == 0]
                needed = kept + [n for n in needed if n >= before]
                log.trim(before, partial(np.array, kept, np.int64) if step[1] else None)
    positions, rows = log.between(0, log.next)
    held = positions.tolist()
    assert set(held) >= set(needed)
    assert held == sorted(set(held)) == rows.rows.column("n").to_pylist()
    assert log.held() == len(held)
    asked = np.array(needed[::-1] * 2, np.int64)
    numbers, texts, lists = log.gather(asked, ["n", "s", "l"])
    assert numbers.to_pylist() == asked.tolist()
    assert texts.to_pylist() == [None if n % 4 == 0 else "é" * (n % 3) for n in asked.tolist()]
    assert lists.to_pylist() == [None if n % 5 == 0 else [n, n] for n in asked.tolist()]
    for n in held:
        assert log.time_at(n) == 3 * n
        assert log.position_after(3 * n - 1) == n
        assert log.position_after(3 * n - 1, n) == n
    assert log.position_after(3 * log.next, 5) == max(5, log.next)


def test_single_rows_are_put_together() -> None:
    log = StreamLog(SCHEMA)
    for _ in range(1_000):
        append(log, 1)
    assert len(log._segments) <= 11
    assert all(segment.batch.rows.column(0).num_chunks == 1 for segment in log._segments)
    assert log.between(400, 403)[1].rows.column("n").to_pylist() == [400, 401, 402]


def test_a_large_batch_is_kept_as_it_came() -> None:
    log = StreamLog(SCHEMA)
    append(log, 70_000)
    before = log._segments[0].batch.rows
    append(log, 70_000)
    assert log._segments[0].batch.rows is before
    assert len(log._segments) == 2


def test_rows_of_equal_times_are_passed_together() -> None:
    log = StreamLog(SCHEMA)
    append(log, 10, step=5)
    assert [log.position_after(time) for time in (-1, 0, 2, 3)] == [0, 5, 5, 10]
    assert log.position_after(-1, 7) == 7


@pytest.mark.parametrize("keep", [None, lambda: np.empty(0, np.int64)])
def test_memory_is_released_when_no_row_is_needed(keep: object) -> None:
    log = StreamLog(SCHEMA)
    append(log, 2_000)
    assert log.nbytes() > 0
    log.trim(log.next, keep)  # type: ignore[arg-type]
    assert (log.held(), log.nbytes()) == (0, 0)
    assert [column.to_pylist() for column in log.gather(np.empty(0, np.int64), ["n", "s"])] == [
        [],
        [],
    ]
    append(log, 2)
    assert log.gather(np.array([2_001]), ["n"])[0].to_pylist() == [2_001]


def test_kept_rows_are_copied_only_when_they_have_become_few() -> None:
    log = StreamLog(SCHEMA)
    asked = 0

    def keep() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        nonlocal asked
        asked += 1
        return np.arange(0, log.next, 2, dtype=np.int64)

    for _ in range(200):
        append(log, 100)
        log.trim(log.next, keep)
    assert asked <= 10
    assert log.held() <= 2 * log.next // 2 + 2 * 1_024
