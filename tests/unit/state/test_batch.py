from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.state.batch import Batch, join_batches

SCHEMA = pa.schema([("n", pa.int64())])


def batch(*rows: tuple[int, int]) -> Batch:
    """Return rows of (time, number)."""
    times = np.array([time for time, _ in rows], np.int64)
    return Batch(
        pa.table([[number for _, number in rows]], schema=SCHEMA),
        times,
        (times / 2).astype(np.float64),
    )


def lines(given: Batch) -> list[tuple[int, int, float]]:
    return list(
        zip(
            given.times.tolist(),
            given.rows.column("n").to_pylist(),
            given.arrivals.tolist(),
            strict=True,
        )
    )


def test_sorting_keeps_ties_as_they_came() -> None:
    assert lines(batch((3, 0), (1, 1), (3, 2), (1, 3)).sorted()) == [
        (1, 1, 0.5),
        (1, 3, 0.5),
        (3, 0, 1.5),
        (3, 2, 1.5),
    ]


def test_rows_in_order_are_not_copied() -> None:
    ordered = batch((1, 0), (1, 1), (2, 2))
    assert ordered.sorted() is ordered


def test_a_part_and_a_selection() -> None:
    whole = batch((1, 10), (2, 20), (3, 30), (4, 40))
    assert lines(whole.part(1, 3)) == [(2, 20, 1.0), (3, 30, 1.5)]
    assert lines(whole.take(np.array([3, 0]))) == [(4, 40, 2.0), (1, 10, 0.5)]
    assert len(whole.part(2, 2)) == 0


def test_batches_are_joined_in_their_order() -> None:
    assert lines(join_batches([batch((5, 1)), batch(), batch((2, 2))], SCHEMA)) == [
        (5, 1, 2.5),
        (2, 2, 1.0),
    ]
    nothing = join_batches([], SCHEMA)
    assert (len(nothing), nothing.rows.schema) == (0, SCHEMA)
