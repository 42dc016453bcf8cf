"""Which rows are late, against the rule written out row by row."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.engine.stream_state import Place, StreamState, least_watermark
from muntin.model.catalog import Stream
from muntin.model.clock import BEFORE_ALL
from muntin.state.batch import Batch

SCHEMA = pa.schema([("n", pa.int64()), ("ts", pa.timestamp("us"))])
PLACES = st.tuples(st.integers(-2, 12), st.integers(0, 2))


def state(slack: int = 0, order: int = 1) -> StreamState:
    return StreamState(Stream("A", SCHEMA, "ts", slack, order=order))


def batch(times: list[int], first: int = 0) -> Batch:
    instants = np.array(times, np.int64)
    table = pa.table([list(range(first, first + len(times))), pa.array(instants).cast(pa.timestamp("us"))], schema=SCHEMA)
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
def test_lateness_does_not_depend_on_how_rows_are_cut(
    times: list[int], slack: int, order: int, others: Place, floor: Place, cuts: list[int]
) -> None:  # fmt: skip
    stream = state(slack, order)
    edges = sorted({0, len(times), *(min(cut, len(times)) for cut in cuts)})
    for start, stop in pairwise(edges):
        stream.take(batch(times[start:stop], start), others, floor)
    newest, late = BEFORE_ALL, []
    for number, time in enumerate(times):
        own = (newest - slack, order) if newest > BEFORE_ALL else (BEFORE_ALL, order)
        if (time, order) < max(min(own, others), floor):
            late.append(number)
        newest = max(newest, time)
    assert numbers(stream.late()) == late
    assert stream.stats()["rows_waiting"] == len(times) - len(late)
    assert stream.stats()["rows_in"] == len(times)
    assert stream.watermark == (newest - slack if times else BEFORE_ALL)
    stream.release(100)
    kept = sorted((number for number in range(len(times)) if number not in late), key=lambda number: (times[number], number))
    assert numbers(stream.log.between(0, 100)[1].rows) == kept


def test_rows_move_to_the_log_when_their_place_is_final() -> None:
    stream = state(slack=5)
    stream.take(batch([7, 3, 9]), (BEFORE_ALL, 0), (BEFORE_ALL, -1))
    stream.release(stream.watermark)
    assert numbers(stream.log.between(0, 9)[1].rows) == [1]
    assert stream.stats() | {"log_bytes": 0} == {
        "rows_in": 3,
        "rows_late": 0,
        "rows_ahead": 0,
        "rows_waiting": 2,
        "rows_logged": 1,
        "log_bytes": 0,
    }


def test_the_least_watermark_is_the_first_in_order_among_equals() -> None:
    streams = [state(order=place) for place in range(3)]
    assert least_watermark(streams) == (BEFORE_ALL, 0)
    for stream, time in zip(streams, (8, 5, 5), strict=True):
        stream.take(batch([time]), (BEFORE_ALL, 0), (BEFORE_ALL, -1))
    assert least_watermark(streams) == (5, 1)
    assert least_watermark([]) == (BEFORE_ALL, 0)
