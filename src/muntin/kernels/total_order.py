"""Putting the new rows of several streams into their total order, as events for a join.

Rows are ordered by (time, order of declaration of the stream, order in the stream). A row becomes one
event for every source of FROM that reads its stream and wants it. Before those come its ticks: events
without a row, which tell that a window has moved (a partitioned window pushed a row out, or, where
retractions are wanted, a row came that nobody stores but that counts).
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.jit import kernel


@kernel(
    "(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], uint8[::1], int64[::1],"
    " int32[::1], int64[::1], int64[::1], int64[::1], int64[:,::1], int64[::1])"
)
def merge_events(
    times, starts, first_source, sources, source_stream, wanted, wanted_start, offset, width, base,
    pushed, pushed_start, tick_always, cursor,
    out_source, out_offset, out_time, out_pushed, out_counts, out_row,
):  # fmt: skip
    """Write the events of all rows in total order and return how many.

    Streams are numbered in the order of declaration; ``starts`` cuts ``times`` (and ``wanted``, ``pushed``
    per source) into them. ``offset`` is where each source's next formatted row stands, ``base`` how many
    rows of each stream came before this batch. ``out_counts`` has one row an event, or none if nobody
    needs counts; ``out_row`` is the row's place in ``times``.
    """
    streams = starts.shape[0] - 1
    counting = out_counts.shape[0] > 0
    for stream in range(streams):
        cursor[stream] = starts[stream]
    events = 0
    while True:
        chosen = -1
        earliest = np.int64(0)
        for stream in range(streams):
            if cursor[stream] < starts[stream + 1]:
                time = times[cursor[stream]]
                if chosen < 0 or time < earliest:
                    chosen = stream
                    earliest = time
        if chosen < 0:
            return events
        row = cursor[chosen] - starts[chosen]
        cursor[chosen] += 1
        begin = events
        stored = False
        for i in range(first_source[chosen], first_source[chosen + 1]):
            source = sources[i]
            if pushed_start[source] >= 0 and pushed[pushed_start[source] + row] >= 0:
                out_source[events] = source
                out_offset[events] = -1
                out_time[events] = earliest
                out_pushed[events] = pushed[pushed_start[source] + row]
                events += 1
        for i in range(first_source[chosen], first_source[chosen + 1]):
            source = sources[i]
            if wanted[wanted_start[source] + row]:
                out_source[events] = source
                out_offset[events] = offset[source]
                out_time[events] = earliest
                out_pushed[events] = -1
                offset[source] += width[source]
                events += 1
                stored = True
        if not stored and tick_always[chosen]:
            out_source[events] = sources[first_source[chosen]]
            out_offset[events] = -1
            out_time[events] = earliest
            out_pushed[events] = -1
            events += 1
        for event in range(begin, events):
            out_row[event] = starts[chosen] + row
        if counting:
            for event in range(begin, events):
                for source in range(out_counts.shape[1]):
                    stream = source_stream[source]
                    if stream >= 0:
                        out_counts[event, source] = base[stream] + cursor[stream] - starts[stream]
