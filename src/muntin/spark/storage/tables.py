"""Tables by batch, as parquet files: results in memory and late rows."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.spark.storage.interface import Storage

_BATCH = re.compile(r"batch-\d+\.parquet")


class TablesByBatch:
    """The tables in a storage, at most one per batch."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._last: int | None = None

    def write(self, table: pa.Table, batch: int) -> None:
        """Store the table of a batch in place of what was stored for it before.

        Only a batch that is repeated, by this process or a new one, may have been stored before.
        """
        name = f"batch-{batch:09d}.parquet"
        repeated = self._last is None or batch <= self._last
        if len(table):
            self.storage.put(name, as_parquet(table))
        elif repeated and self.storage.start_of(name, 1) is not None:
            self.storage.delete([name])
        self._last = batch

    def read(self, schema: pa.Schema) -> pa.Table:
        """Return all rows in the order of the batches."""
        names = [name for name in self.storage.names() if _BATCH.fullmatch(name)]
        tables = (
            pq.read_table(pa.BufferReader(pa.py_buffer(self.storage.get(name))), schema=schema)
            for name in names
        )
        return pa.concat_tables([schema.empty_table(), *tables])


def as_parquet(table: pa.Table) -> memoryview:
    """Return a table as the content of a parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, use_dictionary=repeating(table.schema))
    return memoryview(sink.getvalue())


def repeating(schema: pa.Schema) -> list[str]:
    """Return the columns to try a dictionary for.

    Numbers and times mostly differ, and finding that out takes a third of the time.
    """
    return [field.name for field in schema if not pa.types.is_primitive(field.type)]
