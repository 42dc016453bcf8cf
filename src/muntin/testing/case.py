"""One random case: declarations, a query, rows in arrival order, and their cuts into batches.

What :mod:`muntin.testing.strategies` draws. It prints itself as a golden script, so that a failure,
shrunk to its smallest form, can be kept as a file in ``tests/golden``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import pyarrow as pa

from muntin.model.catalog import Catalog, Table
from muntin.plan.query import Emit, Query
from muntin.testing.cells import (
    is_text,
    read_schema,
    write_cell,
    write_columns,
    write_seconds,
    write_table,
)
from muntin.testing.checks import write_results
from muntin.testing.golden import EMPTY, StreamDeclaration
from muntin.testing.oracle import Oracle
from muntin.testing.pipeline_oracle import PipelineOracle, make_oracle

Value: TypeAlias = int | float | str | None


@dataclass(frozen=True)
class StoredTable:
    """A stored table with its rows."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Value, ...], ...]

    @property
    def data(self) -> pa.Table:
        """Return the rows as Arrow."""
        return _arrow(list(self.rows), read_schema(self.columns))


@dataclass(frozen=True)
class Event:
    """A row that arrives: its stream, its time in microseconds, and the other values."""

    stream: str
    time: int
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Case:
    """A query over streams and tables, with all rows in order of arrival.

    ``cuts`` are the places in ``events`` where a batch ends.

    The time column is always the last of a stream and named ``ts``.
    """

    streams: tuple[StreamDeclaration, ...]
    tables: tuple[StoredTable, ...]
    query: str
    events: tuple[Event, ...]
    cuts: tuple[int, ...] = ()

    @property
    def declarations(self) -> list[str]:
        """Return the statements that declare the streams."""
        return [stream.sql for stream in self.streams]

    @property
    def end(self) -> int:
        """Return the greatest time of all rows."""
        return max((event.time for event in self.events), default=0)

    def catalog(self) -> Catalog:
        """Return the catalog after the declarations."""
        catalog = Catalog()
        for stream in self.streams:
            catalog.add(stream.stream)
        for table in self.tables:
            catalog.add(Table(table.name, read_schema(table.columns)))
        return catalog

    def rows(self) -> dict[str, pa.Table]:
        """Return all rows of every stream in order of arrival."""
        return {stream.name: self._rows(stream, self.events) for stream in self.streams}

    def stored(self) -> dict[str, pa.Table]:
        """Return the rows of the stored tables."""
        return {table.name: table.data for table in self.tables}

    def batches(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows as batches: between two cuts one for each stream with rows there."""
        for events in self._pieces():
            for stream in self.streams:
                rows = self._rows(stream, events)
                if rows.num_rows:
                    yield stream.name, rows

    def micro_batches(self) -> Iterator[dict[str, pa.Table]]:
        """Yield the rows as micro-batches: between two cuts the rows of each stream."""
        for events in self._pieces():
            tables = {stream.name: self._rows(stream, events) for stream in self.streams}
            yield {name: rows for name, rows in tables.items() if rows.num_rows}

    def oracle(self, query: Query, advanced: int | None = None) -> Oracle | PipelineOracle:
        """Return the oracle over all rows; ``query`` is the bound form of the case's query.

        ``advanced`` is the first instant to which time is advanced, by default the end.
        """
        first = self.end if advanced is None else advanced
        return make_oracle(query, self.rows(), self.stored(), self.catalog(), advanced=first)

    def script(self, query: Query, about: str = "a random case that failed once") -> str:
        """Return the case as a golden script with the oracle's results; ``query`` is bound."""
        oracle = self.oracle(query)
        results = (
            oracle.inserts(self.end) if query.emit is Emit.INSERTS else oracle.changes(self.end)
        )
        answer = oracle.answer(self.end)
        lines = [f"# about: {about}"]
        for stream in self.streams:
            slack = f" slack {write_seconds(stream.slack)}" if stream.slack else ""
            lines.append(f"stream {stream.name} ({write_columns(stream.columns)}){slack}")
        for table in self.tables:
            lines += [
                f"table {table.name} ({write_columns(table.columns)})",
                *(_line(row) for row in table.rows),
            ]
        lines.append(f"query q: {self.query}")
        for events in self._pieces():
            for stream in self.streams:
                rows = [
                    f"{write_seconds(event.time)}  {_line(event.values)}"
                    for event in events
                    if event.stream == stream.name
                ]
                lines += [f"feed {stream.name}", *rows] if rows else []
        lines += [f"advance {write_seconds(self.end)}", "out q", *write_results(results)]
        texts = [is_text(arrow) for arrow in answer.schema.types]
        answers = [
            " ".join(write_cell(cell, quoted=text) for cell, text in zip(row, texts, strict=True))
            for row in write_table(answer)
        ]
        return "\n".join([*lines, "answer q", *(answers or [EMPTY])]) + "\n"

    def _pieces(self) -> Iterator[tuple[Event, ...]]:
        edges = sorted({0, *self.cuts, len(self.events)})
        return (self.events[start:stop] for start, stop in pairwise(edges))

    def _rows(self, stream: StreamDeclaration, events: tuple[Event, ...]) -> pa.Table:
        schema = stream.schema
        return _arrow(
            [(*event.values, event.time) for event in events if event.stream == stream.name], schema
        )


def _arrow(rows: list[tuple[Value, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema.names]
    return pa.table(
        [pa.array(column, type=arrow) for column, arrow in zip(columns, schema.types, strict=True)],
        schema=schema,
    )


def _line(values: tuple[Value, ...]) -> str:
    return " ".join(
        "NULL" if value is None else write_cell(str(value), quoted=isinstance(value, str))
        for value in values
    )
