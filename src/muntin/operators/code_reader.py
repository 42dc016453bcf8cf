"""From the values of a source's rows to the integers that a join compares.

Cost: one pass over the key columns of new rows. A row that fails a filter, or whose code is NULL,
can be in no result (a comparison with NULL is never true) and is not stored; it still counts in
count windows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.evaluator import Evaluator
from muntin.plan.expression import ColumnRef, quote
from muntin.plan.join import Code, CodeKind, SourcePlan

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_QUIET_NAN = np.float64("nan")


class CodeReader:
    """Reads filters and codes of one source."""

    def __init__(
        self, source: int, plan: SourcePlan, partition: tuple[str, ...], evaluator: Evaluator
    ) -> None:
        self._plan = plan
        self._evaluator = evaluator
        expressions = [*plan.filters, *(code.expression for code in plan.codes)]
        references = {
            reference for expression in expressions for reference in expression.references
        }
        self._partition = tuple(ColumnRef(source, column) for column in partition)
        self._columns = tuple(sorted(references | set(self._partition)))

    def _flat(self, rows: pa.Table) -> pa.Table:
        if not self._columns:
            return rows.select([])
        return rows.select([reference.column for reference in self._columns]).rename_columns(
            [ref.flat for ref in self._columns]
        )

    def read(self, rows: pa.Table) -> tuple[Integers, Mask | None]:
        """Return the codes of all rows, one line per row, and which rows to store; None: all."""
        if not len(rows):
            return np.empty((0, len(self._plan.codes)), np.int64), None
        batch = self._flat(rows)
        wanted = self._evaluator.holds(self._plan.filters, batch) if self._plan.filters else None
        codes = np.empty((len(rows), len(self._plan.codes)), np.int64)
        for number, code in enumerate(self._plan.codes):
            values, known = self._values(code, batch)
            codes[:, number] = values
            if known is not None:
                wanted = known if wanted is None else wanted & known
        return codes, wanted

    def _values(self, code: Code, batch: pa.Table) -> tuple[Integers, Mask | None]:
        if code.kind is CodeKind.HASH:
            text = code.expression.sql
            (column,) = self._evaluator.raw(
                [f"CASE WHEN ({text}) IS NOT NULL THEN hash({text}) END"], batch
            )
        else:
            (column,) = self._evaluator.columns([code.expression], batch)
        known = column.is_valid().to_numpy() if column.null_count else None
        if code.kind is CodeKind.REAL:
            return real_codes(column), known
        return whole_codes(column), known

    def read_partitions(self, rows: pa.Table) -> tuple[Integers, Integers]:
        """Return the two words of each row's partition key.

        That is the value if it is one number, else 128 bits of hash.
        """
        if not len(rows):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        batch = self._flat(rows)
        columns = [batch.column(reference.flat) for reference in self._partition]
        if len(columns) == 1 and (
            _is_whole(columns[0].type) or pa.types.is_float64(columns[0].type)
        ):
            low = whole_codes(columns[0]) if _is_whole(columns[0].type) else real_codes(columns[0])
            return low, (~columns[0].is_valid().to_numpy()).astype(np.int64)
        keys = ", ".join(
            _partition_text(quote(ref.flat), column.type)
            for ref, column in zip(self._partition, columns, strict=True)
        )
        digest = f"md5(to_json([{keys}])::VARCHAR)"
        texts = [f"('0x' || substr({digest}, {start}, 16))::UBIGINT" for start in (1, 17)]
        low_column, high_column = self._evaluator.raw(texts, batch)
        return whole_codes(low_column), whole_codes(high_column)


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind)) and kind != pa.uint64()


def _partition_text(name: str, kind: pa.DataType) -> str:
    """Return SQL for a JSON text that is equal for equal values: one zero and one NaN."""
    if pa.types.is_floating(kind):
        return f"to_json(CASE WHEN isnan({name}) THEN 'nan' ELSE ({name} + 0)::VARCHAR END)"
    return f"to_json({name})"


def whole_codes(column: pa.ChunkedArray) -> Integers:
    """Return codes of integers, booleans, dates and times; NULL as 0."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type) or pa.types.is_time64(column.type):
        column = column.cast(pa.int64())
    if column.null_count:
        column = column.fill_null(0)
    values: Integers = column.to_numpy()
    return (
        values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64, copy=False)
    )


def real_codes(column: pa.ChunkedArray) -> Integers:
    """Return codes of floating-point values in their order: one zero, one NaN above infinity."""
    values = column.cast(pa.float64(), safe=False)
    if values.null_count:
        values = pc.fill_null(values, 0.0)
    reals: npt.NDArray[np.float64] = values.to_numpy() + 0.0
    reals[np.isnan(reals)] = _QUIET_NAN
    bits = reals.view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
