"""From matches to result rows: residual predicates, then the select list, gathered once and late.

Only the columns that residuals read are gathered for all candidates; the others only for those that
pass. Plain columns go straight from the stream log to the result; DuckDB computes expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.operators.join import Matches
from muntin.plan.expression import POSITION, ColumnRef, Expression
from muntin.plan.query import Query
from muntin.state.columns import take

Integers = npt.NDArray[np.int64]


class Gatherer(Protocol):
    """Where the rows of a source are: a stream log or a stored table."""

    def gather(self, positions: Integers, columns: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return the values of columns at positions."""


class StoredRows:
    """A stored table as a gatherer."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def gather(self, positions: Integers, columns: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return the values of columns at row numbers."""
        return [take(self._table.column(name), positions) for name in columns]


class ResultMaker:
    """Makes the result rows of one query.

    ``select`` and ``residuals`` read the sources of the join, whose ``rows`` these are.
    """

    def __init__(
        self,
        query: Query,
        select: Sequence[Expression],
        residuals: Sequence[Expression],
        rows: Sequence[Gatherer],
        evaluator: Evaluator,
    ) -> None:
        self._every = query.every
        self._schema = query.output_schema
        self._columns = pa.schema(list(self._schema)[2:])
        self._select = select
        self._selected = _by_source(select)
        self._residuals = residuals
        self._tested = _by_source(residuals)
        self._rows = rows
        self._evaluator = evaluator

    def make(self, matches: Matches) -> pa.Table:
        """Return the result rows of matches that pass, in their order."""
        times = (
            matches.times if self._every is None else -(-matches.times // self._every) * self._every
        )
        return self._table(matches.signs, times, self._values(matches))

    def table(self, signs: Integers, times: Integers, rows: pa.Table) -> pa.Table:
        """Return the result rows of changes of rows."""
        return self._table(signs.astype(np.int8), times, rows.columns)

    def _table(
        self, signs: npt.NDArray[np.int8] | None, times: Integers, values: list[pa.ChunkedArray]
    ) -> pa.Table:
        return pa.table(
            [sign_column(signs, len(times)), time_column(times), *values], schema=self._schema
        )

    def select(self, matches: Matches) -> pa.Table:
        """Return the columns of the select list, of matches that pass."""
        return pa.table(self._values(matches), schema=self._columns)

    def empty(self) -> pa.Table:
        """Return no result rows."""
        return self._schema.empty_table()

    def passing(self, matches: Matches) -> Matches:
        """Return the matches that satisfy the residual predicates."""
        if not self._residuals:
            return matches
        keep = self._evaluator.holds(self._residuals, self._gather(self._tested, matches))
        return matches if keep.all() else matches.where(keep)

    def _values(self, matches: Matches) -> list[pa.ChunkedArray]:
        return self._evaluator.columns(self._select, self._gather(self._selected, matches))

    def _gather(self, by_source: Mapping[int, Sequence[ColumnRef]], matches: Matches) -> pa.Table:
        """Return columns of each source under their flat names."""
        columns: dict[str, pa.ChunkedArray] = {}
        for source, wanted in by_source.items():
            positions = matches.positions[source]
            own = [reference for reference in wanted if reference.column != POSITION]
            values = self._rows[source].gather(positions, [reference.column for reference in own])
            columns.update(zip((reference.flat for reference in own), values, strict=True))
            if len(own) < len(wanted):
                columns[ColumnRef(source, POSITION).flat] = pa.chunked_array(
                    [pa.array(np.array(positions))]
                )
        if not columns:
            return pa.table({"rows": np.zeros(len(matches), np.int8)})
        return pa.table(columns)


def _by_source(expressions: Iterable[Expression]) -> dict[int, list[ColumnRef]]:
    """Return the columns that expressions read, source by source."""
    by_source: dict[int, list[ColumnRef]] = {}
    for reference in sorted(
        {reference for expression in expressions for reference in expression.references}
    ):
        by_source.setdefault(reference.source, []).append(reference)
    return by_source


def sign_column(signs: npt.NDArray[np.int8] | None, count: int) -> pa.Array:
    """Return ``'+'`` and ``'-'`` as an Arrow column, without a Python object per row."""
    text = (
        np.full(count, ord("+"), np.uint8)
        if signs is None
        else np.where(signs > 0, ord("+"), ord("-")).astype(np.uint8)
    )
    offsets = np.arange(count + 1, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))


def time_column(times: Integers) -> pa.Array:
    """Return instants as an Arrow column; a copy, since kernels reuse their buffers."""
    return pa.array(np.array(times)).view(pa.timestamp("us"))
