"""The oracle for queries above joins: at every instant the same SQL, run by DuckDB over the answers of the leaves.

The answers of the leaves are the oracle's own (:mod:`muntin.testing.oracle`). MINUS, which DuckDB does not have, is an anti-join:
a left row stays while no equal right row is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from muntin.aggregates import aggregate_functions
from muntin.model.catalog import Catalog, Stream, Table
from muntin.plan.pipeline import (
    Aggregate,
    Combine,
    Distinct,
    GroupBy,
    Leaf,
    Node,
    Pipeline,
    SetOperation,
    SetOperator,
    Stored,
)
from muntin.plan.query import ColumnRef, Emit, Query, quote
from muntin.testing.compare import rows_of
from muntin.testing.connection import run_sql
from muntin.testing.oracle import Oracle
from muntin.testing.watermark import Frontier

_END = 1 << 61


def make_oracle(  # noqa: PLR0913 - as for the oracles
    query: Query,
    streams: Mapping[str, pa.Table],
    tables: Mapping[str, pa.Table],
    catalog: Catalog,
    *,
    after: Frontier | None = None,
    advanced: int | None = None,
) -> Oracle | PipelineOracle:
    """The oracle of a query of either kind; parameters as for the one of its kind."""
    if isinstance(query, Pipeline):
        return PipelineOracle(query, streams, tables, catalog, after=after, advanced=advanced)
    return Oracle(query, streams, tables, catalog, after=after)


class PipelineOracle:
    """Computes the results of one pipeline from all accepted rows of its streams; parameters as for ``Oracle``.

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
        after: Frontier | None = None,
        advanced: int | None = None,
    ) -> None:
        assert isinstance(query, Pipeline), "other queries have an oracle of their own"
        self._query = query
        times = [] if advanced is None else [advanced]
        for name in {source.relation for source in query.sources if not source.stored}:
            times += _times_after(
                catalog.find(name), {key.casefold(): rows for key, rows in streams.items()}, after
            )
        self._seen = min(times, default=None)
        self._leaves = [
            Oracle(leaf, streams, tables, catalog, after=after) for leaf in query.leaves
        ]
        named = {name.casefold(): table for name, table in tables.items()}
        stored = [node.source.relation for node in query.nodes if isinstance(node, Stored)]
        self._tables = {f"stored {name}": named[name.casefold()] for name in stored}
        self._sql = _sql(query.root, iter(range(len(self._leaves))))

    def answer(self, at: int) -> pa.Table:
        """The answer at an instant: a multiset of rows, in no particular order."""
        answers = {f"leaf{number}": leaf.answer(at) for number, leaf in enumerate(self._leaves)}
        rows = run_sql(self._sql, {**answers, **self._tables})
        schema = pa.schema(list(self._query.output_schema)[2:])
        return pa.table(
            [column.cast(field.type) for column, field in zip(rows.columns, schema, strict=True)],
            schema=schema,
        )

    def instants(self, until: int) -> list[int]:
        """The instants up to ``until`` at which a row comes or goes, in order."""
        return sorted({instant for leaf in self._leaves for instant in leaf.instants(until)})

    def inserts(self, until: int | None = None) -> pa.Table:
        """The rows that come, of all changes."""
        changes = self._differences(_END if until is None else until)
        return changes.filter(pc.equal(changes.column("_op"), "+"))

    def changes(self, until: int) -> pa.Table:
        """The differences between the answers at successive instants up to ``until``; the answers themselves for EMIT SNAPSHOT."""
        return (
            self._snapshots(until)
            if self._query.emit is Emit.SNAPSHOT
            else self._differences(until)
        )

    def _shown(self, until: int) -> list[int]:
        """The instants at which answers may differ from those before."""
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
                self._output(_without(before, now), "-", instant),
                self._output(_without(now, before), "+", instant),
            ]
            before = now
        return pa.concat_tables(parts)

    def has_begun(self, until: int) -> bool:
        """Whether results show up to an instant; before that there is an answer, but nothing was sent."""
        first = self._first()
        return first is not None and first <= until

    def _first(self) -> int | None:
        """The first instant at which results show."""
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
    stream: Stream | Table | None, tables: Mapping[str, pa.Table], after: Frontier | None
) -> list[int]:
    """The times of the rows of a stream that came after a place in the order."""
    assert isinstance(stream, Stream), "queries read streams of the catalogue"
    rows = tables.get(stream.name.casefold())
    times = [] if rows is None else _micros(rows.column(stream.time)).to_pylist()
    return [time for time in times if after is None or time > after.last_time(stream.order)]


def _without(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows that remain when each of the others takes one equal row away."""
    spare = Counter(rows_of(others))
    places = []
    for place, row in enumerate(rows_of(rows)):
        spare[row] -= 1
        if spare[row] < 0:
            places.append(place)
    return rows.take(pa.array(places, pa.int64()))


def _sql(node: Node, leaves: Iterator[int]) -> str:
    inputs = [_sql(child, leaves) for child in node.inputs]
    match node:
        case Leaf():
            return f"SELECT * FROM leaf{next(leaves)}"
        case Stored(source):
            return f"SELECT {', '.join(map(quote, source.schema.names))} FROM {quote(f'stored {source.relation}')}"
        case Combine(children, predicates, select):
            sources = ", ".join(
                _flat(place, text, child.schema.names)
                for place, (text, child) in enumerate(zip(inputs, children, strict=True))
            )
            where = " AND ".join(f"({predicate.expression.sql})" for predicate in predicates)
            items = ", ".join(
                f"{column.expression.sql} AS {quote(column.name)}" for column in select
            )
            return f"SELECT {items} FROM {sources}{f' WHERE {where}' if where else ''}"
        case GroupBy():
            return _group_sql(node, inputs[0])
        case Distinct():
            return f"SELECT DISTINCT * FROM ({inputs[0]})"
        case SetOperation(SetOperator.MINUS, left, right):
            names = [f"r{place}" for place in range(len(right.schema))]
            pairs = zip(left.schema.names, names, strict=True)
            same = " AND ".join(
                f"l.{quote(name)} IS NOT DISTINCT FROM r.{other}" for name, other in pairs
            )
            return f"SELECT * FROM ({inputs[0]}) l WHERE NOT EXISTS (SELECT 1 FROM ({inputs[1]}) r({', '.join(names)}) WHERE {same})"
        case SetOperation(operator):
            return f"SELECT * FROM ({inputs[0]}) {operator.value} SELECT * FROM ({inputs[1]})"


def _flat(place: int, sql: str, names: list[str]) -> str:
    """A select in FROM with columns under the names that expressions use."""
    columns = ", ".join(f"{quote(name)} AS {quote(ColumnRef(place, name).flat)}" for name in names)
    return f"(SELECT {columns} FROM ({sql})) AS i{place}"


def _group_sql(node: GroupBy, below: str) -> str:
    names = node.input.schema.names
    keys = [quote(name) for name in names[: node.keys]]
    items = keys + [
        f"{_call(aggregate, names)} AS a{number}"
        for number, aggregate in enumerate(node.aggregates)
    ]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    grouped = f"SELECT {', '.join(items)} FROM ({below}){by}"
    select = ", ".join(f"{column.expression.sql} AS {quote(column.name)}" for column in node.select)
    having = f" WHERE ({node.having.sql})" if node.having else ""
    return f"SELECT {select} FROM {_flat(0, grouped, node.groups.names)}{having}"


def _call(aggregate: Aggregate, names: list[str]) -> str:
    if aggregate.argument is None:
        return "count(*)"
    return aggregate_functions()[aggregate.function].oracle.format(
        name=aggregate.function,
        distinct="DISTINCT " if aggregate.distinct else "",
        argument=quote(names[aggregate.argument]),
        fraction=f", {aggregate.fraction}" if aggregate.fraction else "",
        key=quote(names[aggregate.order[0]]) if aggregate.order else "",
        order=", ".join(quote(names[place]) for place in aggregate.order),
    )
