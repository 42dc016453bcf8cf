"""The merge of new rows into events, against a sort in plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels.merging import merge_events

rows = st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), max_size=12)


@given(st.lists(rows, min_size=1, max_size=4), st.booleans())
def test_events_come_by_time_then_stream_then_arrival(streams: list[list[tuple[int, bool, bool]]], ticking: bool) -> None:  # noqa: FBT001
    """One source a stream; a row may be unwanted, and may push another one out (a tick before it)."""
    streams = [sorted(stream, key=lambda row: row[0]) for stream in streams]
    n = len(streams)
    lengths = [len(stream) for stream in streams]
    starts = np.cumsum([0, *lengths]).astype(np.int64)
    flat = [row for stream in streams for row in stream]
    most = 3 * len(flat)
    source, offset = np.empty(most, np.int32), np.empty(most, np.int64)
    time, pushed, place = (np.empty(most, np.int64) for _ in range(3))
    counts = np.zeros((most, n), np.int64)
    each = np.arange(n, dtype=np.int64)
    count = merge_events(
        np.array([row[0] for row in flat], np.int64), starts, np.arange(n + 1, dtype=np.int64), each, each,
        np.array([row[1] for row in flat], np.uint8), starts[:-1].copy(), 1000 * each, np.full(n, 3, np.int64), 10 * each,
        np.array([77 if row[2] else -1 for row in flat], np.int64), starts[:-1].copy(),
        np.full(n, ticking, np.uint8), np.zeros(n, np.int64),
        source, offset, time, pushed, counts, place,
    )  # fmt: skip
    expected = []
    used = [0] * n
    came = [10 * s for s in range(n)]
    for at, s, i in sorted((row[0], s, i) for s, stream in enumerate(streams) for i, row in enumerate(stream)):
        _, wanted, pushes = streams[s][i]
        came[s] += 1
        if pushes:
            expected.append((s, -1, at, 77, tuple(came), starts[s] + i))
        if wanted:
            expected.append((s, 1000 * s + 3 * used[s], at, -1, tuple(came), starts[s] + i))
            used[s] += 1
        elif ticking:
            expected.append((s, -1, at, -1, tuple(came), starts[s] + i))
    got = [(source[e], offset[e], time[e], pushed[e], tuple(counts[e]), place[e]) for e in range(count)]
    assert got == expected
