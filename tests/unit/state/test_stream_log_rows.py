"""The stream log: positions, gathering, trimming."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.state.batch import Batch
from muntin.state.columns import take
from muntin.state.inbox import Inbox
from muntin.state.stream_log import StreamLog

SCHEMA = pa.schema(
    [("n", pa.int64()), ("s", pa.string()), ("h", pa.int32()), ("ts", pa.timestamp("us"))]
)


def batch(numbers: list[int], times: list[int]) -> Batch:
    texts = [None if number % 3 == 0 else str(number) for number in numbers]
    rows = pa.table(
        [numbers, texts, pa.array(numbers, pa.int32()), pa.array(times).cast(pa.timestamp("us"))],
        schema=SCHEMA,
    )
    return Batch(rows, np.array(times, np.int64), np.zeros(len(times)))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.data())
def test_rows_are_found_at_their_positions_after_any_trimming(
    lengths: list[int], data: st.DataObject
) -> None:
    log = StreamLog(SCHEMA)
    for length in lengths:
        log.append(
            batch(
                list(range(log.next, log.next + length)), list(range(log.next, log.next + length))
            )
        )
    before = data.draw(st.integers(0, log.next))
    log.trim(before)
    wanted = np.array(
        data.draw(st.lists(st.integers(before, log.next - 1), max_size=20))
        if before < log.next
        else [],
        np.int64,
    )
    numbers, texts = log.gather(wanted, ["n", "s"])
    assert numbers.to_pylist() == wanted.tolist()
    assert texts.to_pylist() == [
        None if number % 3 == 0 else str(number) for number in wanted.tolist()
    ]
    positions, rows = log.between(before, log.next)
    assert positions.tolist() == list(range(before, log.next))
    assert rows.times.tolist() == positions.tolist()
    if before < log.next:
        assert log.position_after(before - 1) == before
        assert log.time_at(before) == before
    assert log.position_after(log.next) == log.next


def test_rows_that_a_partitioned_window_keeps_outlive_their_segment() -> None:
    log = StreamLog(SCHEMA)
    for start in range(0, 20_000, 1_000):
        log.append(batch(list(range(start, start + 1_000)), list(range(start, start + 1_000))))
    kept = np.arange(0, 20_000, 500, dtype=np.int64)
    log.trim(20_000, lambda: kept)
    assert log.held() == len(kept)
    assert log.gather(kept[::-1], ["n"])[0].to_pylist() == kept[::-1].tolist()
    log.append(batch([20_000], [20_000]))
    assert log.gather(np.array([20_000, 500]), ["n"])[0].to_pylist() == [20_000, 500]
    assert log.between(400, 20_001)[0].tolist() == [*range(500, 20_000, 500), 20_000]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=40), st.integers(1, 12), st.data())
def test_taking_from_many_chunks_is_taking_from_one(
    values: list[int], pieces: int, data: st.DataObject
) -> None:
    kind = data.draw(
        st.sampled_from(
            [
                pa.int64(),
                pa.int32(),
                pa.float64(),
                pa.float32(),
                pa.int16(),
                pa.string(),
                pa.timestamp("us"),
                pa.bool_(),
            ]
        )
    )
    plain = [value % 2 for value in values] if kind == pa.bool_() else values
    nulls = data.draw(st.booleans())
    array = pa.array([None if nulls and value % 5 == 0 else value for value in plain]).cast(kind)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=pieces)))
    edges = [0, *cuts, len(values)]
    chunked = pa.chunked_array([array.slice(a, b - a) for a, b in pairwise(edges)], kind)
    ranks = np.array(data.draw(st.lists(st.integers(0, len(values) - 1), max_size=50)), np.int64)
    assert take(chunked, ranks).to_pylist() == array.take(pa.array(ranks)).to_pylist()


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=12), st.integers(0, 9))
def test_the_inbox_releases_by_time_then_arrival(pushes: list[list[int]], until: int) -> None:
    inbox = Inbox(SCHEMA)
    arrived: list[int] = []
    for times in pushes:
        inbox.add(batch(list(range(len(arrived), len(arrived) + len(times))), times))
        arrived += times
    released = inbox.release(until)
    due = sorted((time, number) for number, time in enumerate(arrived) if time <= until)
    assert released.rows.column("n").to_pylist() == [number for _, number in due]
    assert inbox.waiting() == len(arrived) - len(due)
    rest = inbox.release(100)
    assert rest.rows.column("n").to_pylist() == [
        n for _, n in sorted((time, n) for n, time in enumerate(arrived) if time > until)
    ]
