"""Sessions by the compiled kernel against a naive definition, under any division into batches."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels.sessions import EACH, FINAL, STEADY
from muntin.state import session_rows
from muntin.state.session_rows import SessionRows

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int64())])
END = 40
Row = tuple[int, int]
"""A time and a key."""
Shown = tuple[int, int, int]
"""The number of a row, and the bounds of its session."""


def sessions(rows: list[Row], gap: int, until: int) -> Iterator[tuple[list[int], int, int]]:
    """Yield the numbers of the rows of each session, and its bounds, of the rows up to a time."""
    for key in {key for _, key in rows}:
        own = [(time, n) for n, (time, of) in enumerate(rows) if of == key and time <= until]
        cuts = [at for at in range(1, len(own)) if own[at][0] - own[at - 1][0] > gap]
        for first, last in zip([0, *cuts], [*cuts, len(own)], strict=True):
            if own:
                yield [n for _, n in own[first:last]], own[first][0], own[last - 1][0] + gap


def expected(rows: list[Row], gap: int, at: int, mode: int) -> list[Shown]:
    """Return what is shown at an instant."""
    until = END if mode == FINAL else at
    return sorted(
        (n, start, rows[n][0] + gap if mode == STEADY else end)
        for numbers, start, end in sessions(rows, gap, until)
        if (end == at + 1 if mode == FINAL else end > at)
        for n in numbers
    )


@given(
    drawn=st.lists(st.tuples(st.integers(0, 24), st.integers(0, 2)), max_size=25),
    cuts=st.sets(st.integers(0, 30), max_size=4),
    gap=st.sampled_from([1, 2, 5]),
    form=st.sampled_from([(EACH, 1), (EACH, 3), (STEADY, 1), (STEADY, 7), (FINAL, 1)]),
)
def test_changes_add_up_to_the_sessions_of_every_instant(
    drawn: list[Row], cuts: set[int], gap: int, form: tuple[int, int]
) -> None:
    rows, (mode, every) = sorted(drawn, key=lambda row: row[0]), form
    with patch.object(session_rows, "_LEAST", 2):
        kept = SessionRows(SCHEMA, gap, every, mode)
        changes, read = list[tuple[int, int, Shown]](), 0
        for cut in [*sorted(cuts), END]:
            now = cut // every * every
            stop = sum(time <= now for time, _ in rows)
            keys = np.array([key for _, key in rows[read:stop]], np.int64)
            times = np.array([time for time, _ in rows[read:stop]], np.int64)
            places = np.arange(read, stop)
            table = pa.table([keys, places], schema=SCHEMA)
            found = kept.run(table, (keys, np.zeros_like(keys)), (times, places), now)
            shown = zip(
                found.rows.column("n").to_pylist(),
                found.starts.tolist(),
                found.ends.tolist(),
                strict=True,
            )
            signed = zip(found.times.tolist(), found.signs.tolist(), shown, strict=True)
            changes += [(time, sign, row) for time, sign, row in signed]
            read = stop
            there = expected(rows, gap, now, EACH)
            assert sorted(kept.positions().tolist()) == [n for n, _, _ in there]
            assert len(kept) == len(there)
            assert kept.due() == min((end for _, _, end in there), default=None)
            answer = kept.present()
            assert (
                sorted(
                    zip(
                        answer.rows.column("n").to_pylist(),
                        answer.starts.tolist(),
                        answer.ends.tolist(),
                        strict=True,
                    )
                )
                == there
            )
    for at in range(-1, END // every * every + 1):
        if at % every == 0 or mode == FINAL:
            counts: dict[Shown, int] = {}
            for time, sign, row in changes:
                counts[row] = counts.get(row, 0) + sign * (time <= at)
            assert set(counts.values()) <= {0, 1}
            assert sorted(row for row, n in counts.items() if n) == expected(rows, gap, at, mode)
