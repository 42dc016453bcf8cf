"""The input of an engine, and the results that must follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

import muntin
from muntin.model.catalog import Catalog, Stream, Table
from muntin.plan.query import Emit, Query
from muntin.testing.compare import accumulate, changes_difference, difference
from muntin.testing.pipeline_oracle import make_oracle
from muntin.testing.watermark import Arrival, Watermark

_MOST_INSTANTS = 12
"""Changes of a pipeline are recomputed up to this number of instants: each asks DuckDB."""


@dataclass
class Standing:
    """A registered query with everything it has sent out."""

    query: Query
    exact: bool
    got: list[pa.Table] = field(default_factory=list)


@dataclass
class Model:
    """The rows of all streams and tables, and the registered queries."""

    catalog: Catalog = field(default_factory=Catalog)
    fed: dict[str, list[pa.Table]] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    queries: dict[str, Standing] = field(default_factory=dict)
    exact: bool = True
    """Whether it is known which rows the engine took."""
    watermark: Watermark = field(default_factory=Watermark)
    arrivals: dict[str, list[Arrival]] = field(default_factory=dict)

    def declare(self, stream: Stream) -> None:
        """Add a stream."""
        self.catalog.add(stream)
        self.watermark.declare(stream.name, stream.slack)
        self.fed[stream.name] = []
        self.arrivals[stream.name] = []

    def register(self, query: Query, *, exact: bool) -> None:
        """Add a query."""
        self.watermark.follow(
            query.name, {source.relation for source in query.sources if not source.stored}
        )
        self.queries[query.name] = Standing(query, exact)

    def drop(self, name: str) -> None:
        """Drop a query."""
        self.watermark.forget(name)
        del self.queries[name]

    def advance(self, at: int) -> None:
        """Complete an instant."""
        self.watermark.advance(at)

    def table(self, name: str, rows: pa.Table) -> None:
        """Add a stored table."""
        self.catalog.add(Table(name, rows.schema))
        self.tables[name] = rows

    def feed(self, stream: str, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows that the engine took."""
        relation = self.catalog.find(stream)
        assert isinstance(relation, Stream)
        try:
            table = arrow_rows(rows, relation.schema)
        except pa.ArrowException:
            self.exact = False  # some time is finer than its column
            return
        kind = relation.schema.field(relation.time).type
        times = (
            table.column(relation.time)
            .cast(pa.timestamp("us", kind.tz))
            .cast(pa.int64())
            .to_pylist()
        )
        self.arrivals[stream] += [self.watermark.arrive(stream, time) for time in times]
        self.fed[stream].append(table)

    def accepted(self, query: str) -> dict[str, pa.Table]:
        """Return the rows of all streams that were not late for a query."""
        found = {}
        for name, parts in self.fed.items():
            late = [
                arrival.lost or query.casefold() in arrival.late_for
                for arrival in self.arrivals[name]
            ]
            if parts:
                found[name] = pa.concat_tables(parts).filter(
                    pa.array([not one for one in late], pa.bool_())
                )
        return found

    def problem(self, engine: muntin.Engine, name: str, at: int | None) -> str:
        """Return how a query differs from the expected results at a complete instant, or None."""
        standing = self.queries[name]
        query, handle = standing.query, engine.handle(name)
        standing.got.append(handle.poll())
        sent, answer = pa.concat_tables(standing.got), handle.answer()
        shown, wanted = plain(sent), plain(answer)
        if query.emit is not Emit.CHANGES and sent.column("_op").to_pylist().count("-"):
            return f"{name}: EMIT {query.emit.name} takes results back"
        if query.emit is Emit.CHANGES and query.every is None:
            try:
                found = difference(wanted, accumulate(shown))
            except AssertionError as error:
                return f"{name}: {error}"
            if found:
                return f"{name}: accumulated changes differ from the answer\n{found}"
        if at is None or not (standing.exact and self.exact) or _set_aside(engine):
            return ""
        try:
            return self._against_oracle(standing, sent, answer, at)
        except duckdb.Error:
            return ""  # an expression fails on some row, where the engine has NULL

    def _against_oracle(self, standing: Standing, sent: pa.Table, answer: pa.Table, at: int) -> str:
        query = standing.query
        oracle = make_oracle(
            query,
            self.accepted(query.name),
            self.tables,
            self.catalog,
            advanced=self.watermark.advanced(query.name),
        )
        if found := difference(plain(oracle.answer(at)), plain(answer)):
            return f"{query.name}: the answer differs from the oracle\n{found}"
        if not query.is_join and len(oracle.instants(at)) > _MOST_INSTANTS:
            return ""
        wanted = oracle.inserts(at) if query.emit is Emit.INSERTS else oracle.changes(at)
        if found := changes_difference(plain(wanted), plain(sent)):
            return f"{query.name}: what was sent out differs from the oracle\n{found}"
        return ""


def arrow_rows(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Return rows as a table; integers in timestamp columns are microseconds."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table(
        [_column(list(cells), one.type) for cells, one in zip(columns, schema, strict=True)],
        schema=schema,
    )


def _column(cells: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) and any(isinstance(cell, int) for cell in cells):
        return pa.array(cells, pa.timestamp("us", kind.tz)).cast(kind)
    return pa.array(cells, kind)


def plain(table: pa.Table) -> pa.Table:
    """Return a table with instants as numbers and with one zero.

    Python's calendar is shorter than Arrow's.
    """
    return pa.table([_plain_column(column) for column in table.columns], names=table.column_names)


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    if pa.types.is_floating(column.type):
        return pc.add(column, pa.scalar(0.0, column.type))  # -0.0 equals 0.0 in SQL
    return column


def _set_aside(engine: muntin.Engine) -> bool:
    """Return whether rows were set aside as too far ahead; the model does not cover those."""
    return any(state.rows_ahead for state in engine.dataflow.groups.streams.values())


def sent_by(model: Model) -> Mapping[str, pa.Table]:
    """Return everything that each query sent out."""
    return {
        name: pa.concat_tables(standing.got)
        for name, standing in model.queries.items()
        if standing.got
    }
