"""Evaluation of bound expressions over batches with flat column names (``0.LocationId``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.duck import Duck, EvaluationFailure
from muntin.expressions.plain import plain_mask
from muntin.expressions.salvage import first_line, salvage
from muntin.model.arrays import Mask
from muntin.plan.expression import Expression


class Evaluator:
    """Computes expressions; plain columns, NULLs and plain conditions bypass DuckDB.

    Where an expression fails on a row, because a number overflows or a cast is impossible, its
    value is NULL; other values are not affected. ``failures`` counts these rows, once per
    evaluation however many expressions fail on a row; ``last_failure`` is the reason for the last
    one.
    """

    def __init__(self, duck: Duck) -> None:
        self._duck = duck
        self.failures = 0
        self.last_failure = ""

    def columns(self, expressions: Sequence[Expression], batch: pa.Table) -> list[pa.ChunkedArray]:
        """Return the values of each expression, row by row."""
        computed = [one for one in expressions if one.column is None and not _is_null(one)]
        values = iter(self.raw([expression.sql for expression in computed], batch))
        found = []
        for expression in expressions:
            if _is_null(expression):
                found.append(pa.chunked_array([pa.nulls(len(batch), expression.type)]))
                continue
            column = batch.column(expression.column.flat) if expression.column else next(values)
            found.append(
                column if column.type == expression.type else self._cast(column, expression)
            )
        return found

    def raw(self, texts: Sequence[str], batch: pa.Table) -> list[pa.ChunkedArray]:
        """Return the values of SQL texts over the batch."""
        if not texts:
            return []
        # DuckDB scans a table without columns as one without rows, so constants need a column.
        rows = batch if batch.num_columns else pa.table({"rows": np.zeros(batch.num_rows, np.int8)})
        try:
            return self._run(texts, rows)
        except EvaluationFailure as error:
            return self._salvage(texts, rows, error)

    def _run(self, texts: Sequence[str], rows: pa.Table) -> list[pa.ChunkedArray]:
        select = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
        return list(self._duck.run(f"SELECT {select} FROM batch", batch=rows).columns)

    def _salvage(
        self, texts: Sequence[str], rows: pa.Table, error: BaseException
    ) -> list[pa.ChunkedArray]:
        """Return the values of the texts, NULL for the rows on which one fails."""
        found, failed = [], np.zeros(len(rows), bool)
        for text in texts:
            values, misses = self._tried(text, rows)
            found.append(values)
            failed |= misses
        self._count(failed, error)
        return found

    def _tried(self, text: str, rows: pa.Table) -> tuple[pa.ChunkedArray, Mask]:
        """Return the values of a text, and on which rows it fails.

        TRY finds those rows in one query, and the struct inside distinguishes them from rows whose
        value is NULL. Some errors pass through TRY; then the rows are searched by halves.
        """
        try:
            select = f"SELECT TRY(struct_pack(v := ({text}))) AS c FROM batch"
            tried = self._duck.run_strictly(select, batch=rows).column(0)
        except EvaluationFailure:
            alone = f"SELECT ({text}) AS c FROM batch"
            return salvage(
                lambda part: self._duck.run_strictly(alone, batch=part).column(0), rows, text
            )
        return pc.struct_field(tried, 0), tried.is_null().to_numpy()

    def _cast(self, column: pa.ChunkedArray, expression: Expression) -> pa.ChunkedArray:
        """Return a column cast to the type of its expression, NULL where a value does not fit."""
        try:
            return column.cast(expression.type)
        except EvaluationFailure as error:
            rows = pa.table({"x": column})
            values, failed = salvage(
                lambda part: part.column(0).cast(expression.type), rows, expression.sql
            )
            self._count(failed, error)
            return values

    def _count(self, failed: Mask, error: BaseException) -> None:
        self.failures += int(failed.sum())
        if failed.any():
            self.last_failure = first_line(error)

    def holds(self, predicates: Sequence[Expression], batch: pa.Table) -> Mask:
        """Return whether all predicates are true (not false, not NULL), row by row."""
        masks = [plain_mask(predicate.sql, batch) for predicate in predicates]
        plain = [mask for mask in masks if mask is not None]
        if plain and len(plain) == len(masks):
            return np.logical_and.reduce(plain) if len(plain) > 1 else plain[0]
        text = " AND ".join(f"({predicate.sql})" for predicate in predicates)
        (column,) = self.raw([f"({text})::BOOLEAN"], batch)
        mask: Mask = column.fill_null(False).to_numpy()
        return mask


def _is_null(expression: Expression) -> bool:
    return expression.sql == "NULL"
