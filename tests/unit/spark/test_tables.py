"""Tables by batch: repeated batches replace what was stored, and reading keeps their order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from muntin.spark.storage import LocalStorage
from muntin.spark.storage.tables import TablesByBatch

SCHEMA = pa.schema([("v", pa.int64()), ("name", pa.string())])


def table(*values: int) -> pa.Table:
    return pa.table([values, [str(value) for value in values]], schema=SCHEMA)


def values(tables: TablesByBatch) -> list[int]:
    found = tables.read(SCHEMA)
    assert found.schema == SCHEMA
    return list(found.column("v").to_pylist())


def test_batches_are_read_in_order_and_a_repeated_one_replaces_itself(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    tables = TablesByBatch(storage)
    assert values(tables) == []
    tables.write(table(1, 2), 9)
    tables.write(table(3), 10)
    tables.write(table(4, 5), 10)
    assert values(tables) == [1, 2, 4, 5]
    again = TablesByBatch(storage)
    again.write(SCHEMA.empty_table(), 10)
    again.write(table(6), 11)
    again.write(SCHEMA.empty_table(), 11)
    again.write(SCHEMA.empty_table(), 12)
    storage.put("batch--00000001.parquet", b"of Spark")
    assert values(again) == [1, 2]
    assert storage.names() == ["batch--00000001.parquet", "batch-000000009.parquet"]
