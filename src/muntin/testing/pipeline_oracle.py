"""The oracle for queries above joins.

At every instant the same SQL, run by DuckDB over the answers of the leaves.

The answers of the leaves are the oracle's own (:mod:`muntin.testing.oracle`). MINUS, which DuckDB
does not have, is an anti-join: a left row stays while no equal right row is there.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from muntin.model.catalog import Catalog, Stream, Table
from muntin.plan.expression import quote
from muntin.plan.nodes import Join
from muntin.plan.query import Emit, Query
from muntin.plan.sessions import SessionWindows
from muntin.testing.asof_inserts_oracle import asof_inserts, emits_matches
from muntin.testing.compare import without
from muntin.testing.connection import run_sql
from muntin.testing.oracle import Oracle
from muntin.testing.oracle_clauses import clause_of
from muntin.testing.outer_inserts_oracle import emits_once, inserts_of
from muntin.testing.session_oracle import SessionOracle
from muntin.testing.watermark import OrderFrontier

_END = 1 << 61


def make_oracle(  # noqa: PLR0913 - as for the oracles
    query: Query,
    streams: Mapping[str, pa.Table],
    tables: Mapping[str, pa.Table],
    catalog: Catalog,
    *,
    after: OrderFrontier | None = None,
    advanced: int | None = None,
) -> Oracle | PipelineOracle:
    """Return the oracle of a query of either kind; parameters as for the one of its kind."""
    if query.is_join:
        return Oracle(query, streams, tables, catalog, after=after)
    return PipelineOracle(query, streams, tables, catalog, after=after, advanced=advanced)


class PipelineOracle:
    """Computes the results of one pipeline from all accepted rows of its streams.

    Parameters as for ``Oracle``.

    ``advanced`` is the first instant to which time was advanced while the query was registered.
    What it has before any row comes takes effect there, or at the first row, if that is earlier.
    """

    def __init__(  # noqa: PLR0913 - as for Oracle
        self,
        query: Query,
        streams: Mapping[str, pa.Table],
        tables: Mapping[str, pa.Table],
        catalog: Catalog,
        *,
        after: OrderFrontier | None = None,
        advanced: int | None = None,
    ) -> None:
        self._query = query
        times = [] if advanced is None else [advanced]
        for name in {source.relation for source in query.sources if not source.stored}:
            times += _times_after(
                catalog.find(name), {key.casefold(): rows for key, rows in streams.items()}, after
            )
        self._seen = min(times, default=None)
        self._leaves = [Oracle(leaf, streams, tables, catalog, after=after) for leaf in query.joins]
        self._sessions = {
            leaf.name: SessionOracle(node, self._leaves[place], query.every)
            for place, leaf in enumerate(query.joins)
            for node in query.root.walk()
            if isinstance(node, SessionWindows)
            and isinstance(node.input, Join)
            and node.input.name == leaf.name
        }
        named = {name.casefold(): table for name, table in tables.items()}
        stored = [source.relation for source in query.sources if source.stored]
        self._tables = {f"stored {name}": named[name.casefold()] for name in stored}
        self._sql = clause_of(query.root)

    def answer(self, at: int) -> pa.Table:
        """Return the answer at an instant: a multiset of rows, in no particular order."""
        rows = self._rows(at, answer=True)
        schema = pa.schema(list(self._query.output_schema)[2:])
        return pa.table(
            [column.cast(field.type) for column, field in zip(rows.columns, schema, strict=False)],
            schema=schema,
        )

    def _rows(self, at: int, sql: str = "", *, answer: bool = False) -> pa.Table:
        """Return the rows at an instant with hidden columns; for an ``answer``, of open windows.

        With ``sql``, what that makes of the leaves.
        """
        answers = {
            join.name: oracle.answer(at)
            for join, oracle in zip(self._query.joins, self._leaves, strict=True)
        }
        answers |= {
            name: sessions.present(at, answer=answer) for name, sessions in self._sessions.items()
        }
        return run_sql(sql or self._sql, {**answers, **self._tables})

    def instants(self, until: int) -> list[int]:
        """Return the instants up to ``until`` at which a row comes or goes, in order."""
        return sorted({instant for leaf in self._leaves for instant in leaf.instants(until)})

    def inserts(self, until: int | None = None) -> pa.Table:
        """Return the rows that come, of all changes."""
        until = _END if until is None else until
        if emits_once(self._query.root):
            parts = [
                self._output(rows, "+", instant)
                for instant, rows in inserts_of(self._query.root, self._leaves, until)
            ]
            return pa.concat_tables([self._query.output_schema.empty_table(), *parts])
        if emits_matches(self._query.root) and (first := self._first()) is not None:
            instants = [first, *(shown for shown in self._shown(until) if shown > first)]
            found = asof_inserts(self._query.root, self._rows, instants)
            parts = [self._output(rows, "+", instant) for instant, rows in found]
            return pa.concat_tables([self._query.output_schema.empty_table(), *parts])
        changes = self._differences(until)
        return changes.filter(pc.equal(changes.column("_op"), "+"))

    def changes(self, until: int) -> pa.Table:
        """Return the differences between the answers at successive instants up to ``until``.

        The answers themselves for EMIT SNAPSHOT, the last one of each window for EMIT FINAL.
        """
        if self._query.emit is Emit.FINAL:
            return self._finals(until)
        return (
            self._snapshots(until)
            if self._query.emit is Emit.SNAPSHOT
            else self._differences(until)
        )

    def _finals(self, until: int) -> pa.Table:
        """Return the rows of the windows that end, of the answer just before each instant."""
        assert self._query.closes is not None, "the binder finds it"
        column, micros = self._query.closes
        parts = [self._query.output_schema.empty_table()]
        for instant in self.instants(until):
            rows = self._rows(instant - 1)
            own = rows.column_names[column]
            ends = f"epoch_us({quote(own)}) + {micros} = {instant}"
            last = run_sql(f"SELECT * FROM answer WHERE {ends}", {"answer": rows})
            parts.append(self._output(last.select(range(len(parts[0].schema) - 2)), "+", instant))
        return pa.concat_tables(parts)

    def _shown(self, until: int) -> list[int]:
        """Return the instants at which answers may differ from those before."""
        columns = [leaf.changes(until).column("_ts") for leaf in self._leaves]
        return sorted(
            {int(instant) for column in columns for instant in column.cast(pa.int64()).to_pylist()}
        )

    def _differences(self, until: int) -> pa.Table:
        parts = [self._query.output_schema.empty_table()]
        before = parts[0].drop_columns(["_op", "_ts"])
        first = self._first()
        if first is None or not self.has_begun(until):
            return parts[0]
        for instant in [first, *(shown for shown in self._shown(until) if shown > first)]:
            now = self.answer(instant)
            parts += [
                self._output(without(before, now), "-", instant),
                self._output(without(now, before), "+", instant),
            ]
            before = now
        return pa.concat_tables(parts)

    def has_begun(self, until: int) -> bool:
        """Return whether results show up to an instant.

        Before that there is an answer, but nothing was sent.
        """
        first = self._first()
        return first is not None and first <= until

    def _first(self) -> int | None:
        """Return the first instant at which results show."""
        every = self._query.every or 1
        return None if self._seen is None else -(-self._seen // every) * every

    def _snapshots(self, until: int) -> pa.Table:
        every = self._query.every
        assert every is not None, "the binder asks for it"
        shown = self._shown(until)
        parts = [self._query.output_schema.empty_table()]
        parts += (
            [self._output(self.answer(at), "+", at) for at in range(shown[0], until + 1, every)]
            if shown
            else []
        )
        return pa.concat_tables(parts)

    def _output(self, rows: pa.Table, sign: str, instant: int) -> pa.Table:
        signs = pa.array([sign] * len(rows), pa.string())
        times = pa.array([instant] * len(rows), pa.int64()).cast(pa.timestamp("us"))
        return pa.table([signs, times, *rows.columns], schema=self._query.output_schema)


def _micros(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return instants of any unit as microseconds."""
    return times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())


def _times_after(
    stream: Stream | Table | None, tables: Mapping[str, pa.Table], after: OrderFrontier | None
) -> list[int]:
    """Return the times of the rows of a stream that came after a place in the order."""
    assert isinstance(stream, Stream), "queries read streams of the catalog"
    rows = tables.get(stream.name.casefold())
    times = [] if rows is None else _micros(rows.column(stream.time)).to_pylist()
    return [time for time in times if after is None or time > after.last_time(stream.order)]
