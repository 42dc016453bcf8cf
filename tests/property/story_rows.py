"""Rows of the stories in which queries come and go while rows arrive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import note

import muntin

SECOND = 1_000_000


def push_rows(
    engines: Iterable[muntin.Engine],
    stream: str,
    rows: Sequence[tuple[int, int, int]],
    event: int,
    clock: int,
) -> int:
    """Push rows of two keys and the seconds since the row before; return the last row's second.

    Values tell rows apart: they begin with the number of the event.
    """
    values = []
    for number, (k, j, step) in enumerate(rows):
        clock += step
        values.append((k, j, event * 10 + number, clock * SECOND))
    note(f"{stream} {values}")
    for engine in engines:
        engine.push(stream, values)
    return clock
