"""The results of one query in one batch, as a sink gets them.

Executors have written most of them already: to the folder of the sink, or to pieces in the
checkpoint. The driver has names and counts, and reads rows only if a sink asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from muntin.spark.exchange.merge_results import in_order

Piece: TypeAlias = tuple[bytes, str]
"""Rows as bytes, or the name of the file that contains them."""

ReadPiece: TypeAlias = Callable[[bytes, str], pa.Table]
"""Returns the rows of a piece, on any machine."""


@dataclass(frozen=True)
class BatchResults:
    """Results of a query: ``rows`` of them, in ``files`` of its sink or in ``pieces``.

    Rows of one file or piece are in the order of time.
    """

    schema: pa.Schema
    rows: int
    files: tuple[str, ...] = ()
    pieces: tuple[Piece, ...] = ()
    read: ReadPiece | None = None
    held: pa.Table | None = None

    @classmethod
    def of(cls, table: pa.Table) -> BatchResults:
        """Return results that the driver holds."""
        return cls(table.schema, len(table), held=table)

    def __len__(self) -> int:
        return self.rows

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows of one piece after the other; those in files of the sink are not here."""
        assert not self.files, "these are in the folder of the sink"
        if self.held is not None:
            yield self.held
        for piece in self.pieces:
            assert self.read is not None, "given with the pieces"
            yield self.read(*piece)

    def table(self) -> pa.Table:
        """Return all rows in the order of time; they must fit into the driver's memory."""
        return in_order([self.schema.empty_table(), *self.tables()])

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return a DataFrame, with one partition per piece; it can be used during the batch.

        Few rows come from the driver, in the order of time.
        """
        if not any(file for _, file in self.pieces):
            return spark.createDataFrame(self.table())
        assert self.read is not None, "given with the pieces"
        wanted = spark.createDataFrame(self.schema.empty_table()).schema
        count = len(self.pieces)
        found = spark.range(0, count, 1, count).mapInArrow(
            _PieceReader(self.pieces, self.read).__call__,
            from_arrow_schema(self.schema, prefer_timestamp_ntz=True),
        )
        columns = [
            found[number].cast(field.dataType).alias(field.name)
            for number, field in enumerate(wanted.fields)
        ]
        return found.select(columns)


@dataclass(frozen=True)
class _PieceReader:
    """Reads in a task the pieces that the numbers in its input name."""

    pieces: Sequence[Piece]
    read: ReadPiece

    def __call__(self, ids: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in ids:
            for number in batch.column("id").to_pylist():
                yield from self.read(*self.pieces[number]).to_batches()
