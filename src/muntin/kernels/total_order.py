"""Putting the new rows of several streams into their total order, as events for a join.

Rows are ordered by (time, order of declaration of the stream, order in the stream). A row becomes
one event for every source of FROM that reads its stream and wants it. Before those come its ticks:
events without a row, which tell that a window has moved (a partitioned window pushed a row out, or,
where retractions are wanted, a row came that nobody stores but that counts).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin.kernels.arrays import Bytes, EventArrays, Integers
from muntin.kernels.jit import kernel


class Readers(NamedTuple):
    """Who reads what: the sources of each stream, the stream and the row width of each source.

    Streams are numbered in the order of declaration. ``tick_always``: whether a row of the stream
    that nobody stores becomes an event.
    """

    first_source: Integers
    sources: Integers
    source_stream: Integers
    width: Integers
    tick_always: Bytes


class StreamRows(NamedTuple):
    """New rows: ``starts`` cuts ``times`` into streams, ``before`` counts the earlier rows of each.

    Per source, from its start on: whether it wants each row, and which position the row pushes out
    (no start: none). ``offset`` is where each source's next formatted row is.
    """

    times: Integers
    starts: Integers
    before: Integers
    wanted: Bytes
    wanted_start: Integers
    offset: Integers
    pushed: Integers
    pushed_start: Integers


@kernel(Readers, StreamRows, Integers, EventArrays, Integers)
def merge_events(readers, rows, cursor, out, out_row):
    """Write the events of all rows in total order and return how many.

    ``cursor`` is scratch, a number per stream. ``out.counts`` has a row per event, or none if
    nobody needs counts; ``out_row`` is the row's place in ``times``.
    """
    first_source, sources, source_stream, width, tick_always = readers
    times, starts, base, wanted, wanted_start, offset, pushed, pushed_start = rows
    out_source, out_offset, out_time = out.sources, out.offsets, out.times
    out_counts, out_pushed = out.counts, out.pushed
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
