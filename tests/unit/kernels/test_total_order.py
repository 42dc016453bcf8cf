"""The merge of several sources over one stream and stored ones, against a sort in plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels.arrays import EventArrays
from muntin.kernels.total_order import Readers, StreamRows, merge_events

# For each row of a stream: its gap to the row before, and for each source whether it accepts the
# row and which position the row pushes out.
ROWS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.lists(st.tuples(st.booleans(), st.integers(-1, 2)), min_size=4, max_size=4),
    ),
    max_size=8,
)

MODES = st.sampled_from(["yes", "no"])


@given(
    st.lists(ROWS, min_size=1, max_size=3),
    st.lists(st.integers(-1, 2), min_size=1, max_size=4),
    MODES,
    MODES,
)
def test_a_row_is_one_event_for_every_source_that_accepts_it(
    streams: list[list[tuple[int, list[tuple[bool, int]]]]], reads: list[int], counts_rows: str,
    ticks: str
) -> None:  # fmt: skip
    counting, ticking = counts_rows == "yes", ticks == "yes"
    n = len(streams)
    reads = [stream if stream < n else -1 for stream in reads]
    members = [[s for s, stream in enumerate(reads) if stream == number] for number in range(n)]
    times = [np.cumsum([gap for gap, _ in rows]).tolist() for rows in streams]
    starts = np.cumsum([0, *map(len, streams)]).astype(np.int64)
    wanted: list[int] = []
    pushed: list[int] = []
    begin = np.zeros(len(reads), np.int64)
    for s, stream in enumerate(reads):
        begin[s] = len(wanted)
        if stream >= 0:
            wanted += [row[1][s][0] for row in streams[stream]]
            pushed += [row[1][s][1] for row in streams[stream]]
    most = 2 * len(wanted) + int(starts[-1])
    source, row = np.empty(most, np.int32), np.empty(most, np.int64)
    offset, time, out = (np.empty(most, np.int64) for _ in range(3))
    counts = np.zeros((most if counting else 0, len(reads)), np.int64)
    offsets = 100 * np.arange(len(reads), dtype=np.int64)
    readers = Readers(
        np.cumsum([0, *map(len, members)]).astype(np.int64),
        np.array([s for group in members for s in group], np.int64), np.array(reads, np.int64),
        np.arange(2, 2 + len(reads), dtype=np.int64),
        np.array([ticking and bool(group) for group in members], np.uint8),
    )  # fmt: skip
    rows_of_streams = StreamRows(
        np.array([at for stream in times for at in stream], np.int64), starts,
        np.arange(n, dtype=np.int64) * 10, np.array(wanted, np.uint8), begin, offsets,
        np.array(pushed, np.int64), begin.copy(),
    )  # fmt: skip
    events = EventArrays(source, offset, time, counts, out, np.zeros(0, np.int64))
    count = merge_events(readers, rows_of_streams, np.zeros(n, np.int64), events, row)

    expected = []
    came, used = [10 * number for number in range(n)], [100 * s for s in range(len(reads))]
    for at, stream, place in sorted(
        (at, stream, place) for stream, own in enumerate(times) for place, at in enumerate(own)
    ):
        came[stream] += 1
        seen = [came[number] if number >= 0 else 0 for number in reads]
        cells = streams[stream][place][1]
        here = [(s, -1, cells[s][1]) for s in members[stream] if cells[s][1] >= 0]
        kept = [s for s in members[stream] if cells[s][0]]
        for s in kept:
            here.append((s, used[s], -1))
            used[s] += 2 + s
        if ticking and members[stream] and not kept:
            here.append((members[stream][0], -1, -1))
        expected += [
            (*event, at, int(starts[stream]) + place, seen if counting else None) for event in here
        ]
    got = [
        (
            int(source[e]),
            int(offset[e]),
            int(out[e]),
            int(time[e]),
            int(row[e]),
            counts[e].tolist() if counting else None,
        )
        for e in range(count)
    ]
    assert got == expected
