"""The spool holds outputs on their way from a partition to the driver."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from muntin.spark.exchange.messages import PartitionOutput
from muntin.spark.partition.spool import Spool
from muntin.spark.storage import LocalStorage


@pytest.mark.parametrize("rows", [0, 3, 100_000])
def test_an_output_arrives_as_it_was_sent_and_only_many_rows_leave_a_file(
    tmp_path: Path, rows: int
) -> None:
    outbox = Spool(LocalStorage(tmp_path / "spool"))
    table = pa.table(
        {
            "x": pa.array(range(rows), pa.int64()),
            "word": pa.array([f"w{n}" for n in range(rows)], pa.string()),
        }
    )
    sent = outbox.put(PartitionOutput("results", "q", table))
    assert (sent.kind, sent.name, sent.rows) == ("results", "q", rows)
    assert bool(sent.file) == (rows > 1000)
    assert outbox.take(sent.blob, sent.file) == table
    again = outbox.put(PartitionOutput("results", "q", table))
    assert not sent.file or sent.file != again.file, "every attempt has its own file"
    outbox.clear()
    assert not list(tmp_path.rglob("*.arrow"))
