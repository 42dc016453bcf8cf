from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.state.batch import Batch
from muntin.state.inbox import Inbox

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string())])


def batch(*times: int, first: int = 0) -> Batch:
    """Return rows numbered from ``first`` on, with these times."""
    numbers = list(range(first, first + len(times)))
    return Batch(
        pa.table([numbers, [f"row {n}" for n in numbers]], schema=SCHEMA),
        np.array(times, np.int64),
        np.zeros(len(times)),
    )


def numbers(released: Batch) -> list[int]:
    assert released.rows.column("s").to_pylist() == [
        f"row {n}" for n in released.rows.column("n").to_pylist()
    ]
    found: list[int] = released.rows.column("n").to_pylist()
    return found


def test_rows_come_out_by_time_and_ties_by_arrival() -> None:
    inbox = Inbox(SCHEMA)
    inbox.add(batch(5, 3, 9))
    inbox.add(batch(3, 5, first=3))
    assert numbers(inbox.release(4)) == [1, 3]
    assert inbox.waiting() == 3
    inbox.add(batch(5, first=5))
    assert numbers(inbox.release(5)) == [0, 4, 5]
    assert numbers(inbox.release(5)) == []
    assert numbers(inbox.release(100)) == [2]
    assert inbox.waiting() == 0


def test_an_empty_batch_is_nothing() -> None:
    inbox = Inbox(SCHEMA)
    inbox.add(batch())
    assert inbox.waiting() == 0
    assert inbox.release(10).rows.schema == SCHEMA


def test_single_rows_are_kept_in_few_batches_of_few_chunks() -> None:
    inbox = Inbox(SCHEMA)
    for n in range(1_000):
        inbox.add(batch(1_000 - n, first=n))
    assert len(inbox._batches) <= 11
    assert max(part.rows.column(0).num_chunks for part in inbox._batches) <= 2
    assert numbers(inbox.release(2_000)) == list(range(999, -1, -1))
