"""Which rows are late, against the rule applied row by row."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.model.catalog import Stream
from muntin.model.clock import BEFORE_ALL
from muntin.runtime.stream_input import Place, StreamInput, StreamState, least_watermark
from muntin.state.batch import Batch

SCHEMA = pa.schema([("n", pa.int64()), ("ts", pa.timestamp("us"))])
PLACES = st.tuples(st.integers(-2, 12), st.integers(0, 2))


def state(slack: int = 0, order: int = 1) -> StreamInput:
    return StreamInput(StreamState(Stream("A", SCHEMA, "ts", slack, order=order)))


def take(stream: StreamInput, rows: Batch, others: Place, floor: Place) -> list[int]:
    """Feed rows to a stream and return the numbers of the late ones."""
    if not len(rows):
        return []
    late = stream.take(rows, floor, stream.source.arrive(rows), others)
    return [] if late is None else numbers(rows.rows.filter(pa.array(late)))


def batch(times: list[int], first: int = 0) -> Batch:
    instants = np.array(times, np.int64)
    table = pa.table(
        [list(range(first, first + len(times))), pa.array(instants).cast(pa.timestamp("us"))],
        schema=SCHEMA,
    )
    return Batch(table, instants, np.zeros(len(times)))


def numbers(rows: pa.Table) -> list[int]:
    found: list[int] = rows.column("n").to_pylist()
    return found


@given(
    st.lists(st.integers(0, 10), max_size=20),
    st.integers(0, 4),
    st.integers(0, 2),
    PLACES,
    PLACES,
    st.lists(st.integers(0, 20), max_size=3),
)
def test_lateness_does_not_depend_on_batches(
    times: list[int], slack: int, order: int, others: Place, floor: Place, cuts: list[int]
) -> None:  # fmt: skip
    stream = state(slack, order)
    edges = sorted({0, len(times), *(min(cut, len(times)) for cut in cuts)})
    found = []
    for start, stop in pairwise(edges):
        found += take(stream, batch(times[start:stop], start), others, floor)
    newest, late = BEFORE_ALL, []
    for number, time in enumerate(times):
        own = (newest - slack, order) if newest > BEFORE_ALL else (BEFORE_ALL, order)
        if (time, order) < max(min(own, others), floor):
            late.append(number)
        newest = max(newest, time)
    assert found == late
    assert stream.waiting() == len(times) - len(late)
    assert stream.rows_late == len(late)
    assert stream.source.rows_in == len(times)
    assert stream.source.watermark == (newest - slack if times else BEFORE_ALL)
    stream.release((100, 0))
    kept = sorted(
        (number for number in range(len(times)) if number not in late),
        key=lambda number: (times[number], number),
    )
    assert numbers(stream.log.between(0, 100)[1].rows) == kept


def test_rows_move_to_the_log_when_their_place_is_final() -> None:
    stream = state(slack=5)
    take(stream, batch([7, 3, 9]), (BEFORE_ALL, 0), (BEFORE_ALL, -1))
    stream.release(stream.source.place)
    assert numbers(stream.log.between(0, 9)[1].rows) == [1]
    assert (stream.source.rows_in, stream.rows_late, stream.waiting(), stream.log.held()) == (
        3,
        0,
        2,
        1,
    )


def test_an_input_continued_elsewhere_has_the_same_rows_at_another_frontier() -> None:
    stream = state()
    take(stream, batch([1, 3, 5, 5, 7, 9]), (BEFORE_ALL, 0), (BEFORE_ALL, -1))
    stream.release((7, 1))
    stream.log.trim(1, exactly=True)
    for frontier, logged in (
        ((3, 1), [1]),
        ((5, 0), [1]),
        ((5, 1), [1, 2, 3]),
        ((8, 0), [1, 2, 3, 4]),
        ((0, 0), []),
    ):
        other = stream.continued(frontier)
        assert numbers(other.log.between(0, 9)[1].rows) == logged
        assert other.waiting() == 5 - len(logged)
        assert numbers(other.held()[1]) == [1, 2, 3, 4, 5]
        assert other.log.next == (logged[-1] if logged else 0) + 1, (
            "positions stay those of the stream"
        )
        assert other.held_after(4) == 4
    assert (numbers(stream.log.between(0, 9)[1].rows), stream.waiting()) == ([1, 2, 3, 4], 1), (
        "the first group notices nothing"
    )


def test_the_least_watermark_is_the_first_in_order_among_equals() -> None:
    streams = [state(order=place) for place in range(3)]
    sources = [stream.source for stream in streams]
    assert least_watermark(sources) == (BEFORE_ALL, 0)
    for stream, time in zip(streams, (8, 5, 5), strict=True):
        take(stream, batch([time]), (BEFORE_ALL, 0), (BEFORE_ALL, -1))
    assert least_watermark(sources) == (5, 1)
    assert least_watermark([]) == (BEFORE_ALL, 0)
