"""Evaluating bound expressions over batches whose columns have flat names (``0.LocationId``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions.duck import Duck, DuckError
from muntin.expressions.plain import plain_mask
from muntin.plan.query import Expression


class Evaluator:
    """Computes expressions; plain columns are passed through, and plain conditions decided, without asking DuckDB.

    ``failures`` counts the batches in which some row had no value for an expression, because a number did not fit or
    a cast was impossible; ``last_failure`` is DuckDB's reason for the last of them.
    """

    def __init__(self, duck: Duck) -> None:
        self._duck = duck
        self.failures = 0
        self.last_failure = ""

    def columns(self, expressions: Sequence[Expression], batch: pa.Table) -> list[pa.ChunkedArray]:
        """The values of each expression, row by row."""
        computed = [expression for expression in expressions if expression.column is None]
        values = iter(self.raw([expression.sql for expression in computed], batch))
        found = []
        for expression in expressions:
            column = batch.column(expression.column.flat) if expression.column else next(values)
            found.append(column if column.type == expression.type else column.cast(expression.type))
        return found

    def raw(self, texts: Sequence[str], batch: pa.Table) -> list[pa.ChunkedArray]:
        """The values of SQL texts over the batch."""
        if not texts:
            return []
        # DuckDB scans a table without columns as one without rows, so constants need something to stand on.
        rows = batch if batch.num_columns else pa.table({"rows": np.zeros(batch.num_rows, np.int8)})
        try:
            return self._run(texts, rows)
        except DuckError as error:
            # Some row overflows, divides by zero or cannot be cast: its value is NULL, that of the others what it is.
            self.failures += 1
            self.last_failure = str(error).splitlines()[0]
            return self._run([f"TRY({text})" for text in texts], rows)

    def _run(self, texts: Sequence[str], rows: pa.Table) -> list[pa.ChunkedArray]:
        select = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
        return list(self._duck.run(f"SELECT {select} FROM batch", batch=rows).columns)

    def holds(self, predicates: Sequence[Expression], batch: pa.Table) -> npt.NDArray[np.bool_]:
        """Whether all predicates are true (not false, not NULL), row by row."""
        masks = [plain_mask(predicate.sql, batch) for predicate in predicates]
        plain = [mask for mask in masks if mask is not None]
        if plain and len(plain) == len(masks):
            return np.logical_and.reduce(plain) if len(plain) > 1 else plain[0]
        text = " AND ".join(f"({predicate.sql})" for predicate in predicates)
        (column,) = self.raw([f"({text})::BOOLEAN"], batch)
        mask: npt.NDArray[np.bool_] = column.fill_null(False).to_numpy()
        return mask
