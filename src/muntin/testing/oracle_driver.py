"""The oracle as a driver: runs a golden script against the oracle alone.

Useful to write a script before what it tests exists, and to test the runner. Keeps every row for
ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from muntin.errors import CatalogError, InputError
from muntin.model.catalog import Catalog, Stream, Table
from muntin.model.settings import Settings
from muntin.plan.expression import ColumnRef, Expression, OutputColumn, quote
from muntin.plan.nodes import Join, Scan
from muntin.plan.query import Emit, Query
from muntin.sql.views import readable
from muntin.testing.golden import StreamDeclaration
from muntin.testing.oracle import Oracle
from muntin.testing.pipeline_oracle import make_oracle
from muntin.testing.script_views import declare_views
from muntin.testing.session import Binder
from muntin.testing.watermark import Arrival, OrderFrontier, Watermark

_ARRIVAL = "number of arrival"


@dataclass
class _Standing:
    query: Query
    after: OrderFrontier
    name: str
    taken: int = 0


class OracleDriver:
    """A :class:`muntin.testing.driver.Driver` that computes everything with the oracle.

    Parameters
    ----------
    bind : Binder
        Binds the texts of queries.
    """

    in_order = True

    def __init__(self, bind: Binder) -> None:
        self._bind = bind
        self._catalog = Catalog()
        self._tables: dict[str, pa.Table] = {}
        self._fed: dict[str, pa.Table] = {}
        self._arrivals: dict[str, list[Arrival]] = {}
        self._standing: dict[str, _Standing] = {}
        self._watermark = Watermark()

    def declare(self, stream: StreamDeclaration) -> None:
        """Declare a stream."""
        self._catalog.add(stream.stream)
        self._watermark.declare(stream.name, stream.slack, arrival=stream.stream.arrival)
        self._fed[stream.name.casefold()] = stream.schema.empty_table()
        self._arrivals[stream.name.casefold()] = []

    def table(self, name: str, rows: pa.Table) -> None:
        """Declare a stored table with its rows."""
        self._catalog.add(Table(name, rows.schema))
        self._tables[name] = rows

    def query(self, name: str, sql: str) -> None:
        """Register a standing query."""
        if name.casefold() in self._standing:
            raise CatalogError(
                f"there is already a query {name}", hint="Choose another name, or drop it first"
            )
        query = self._bind(sql, name, self._catalog)
        after = self._watermark.follow(
            name, (source.relation for source in query.sources if not source.stored)
        )
        self._standing[name.casefold()] = _Standing(query, after, name)
        self._catalog.add_view(readable(query))

    def execute(self, sql: str) -> None:
        """Read the statements, so that what is wrong with them comes up; keep their views."""
        declare_views(sql, self._catalog)

    def change(self, setting: str, value: str) -> None:
        """Check the setting; it changes nothing."""
        Settings().having(setting, value.strip("'"))

    def feed(self, stream: str, rows: pa.Table) -> None:
        """Take rows in order of arrival."""
        known = self._stream(stream)
        times = rows.column(known.time).cast(pa.int64()).to_pylist()
        if None in times:
            raise InputError(
                f"stream {known.name}: column {known.time} is NULL", hint="Every row needs a time"
            )
        self._arrivals[stream.casefold()] += [
            self._watermark.arrive(stream, time) for time in times
        ]
        self._fed[stream.casefold()] = pa.concat_tables([self._fed[stream.casefold()], rows])

    def advance(self, at: int) -> None:
        """Complete an instant."""
        self._watermark.advance(at)

    def take(self, query: str) -> pa.Table:
        """Return the results since the last call."""
        standing = self._find(query)
        closed = self._watermark.frontier(query).closed
        oracle = make_oracle(
            standing.query,
            self._final(standing),
            self._tables,
            self._catalog,
            after=standing.after,
            advanced=self._watermark.advanced(standing.name),
        )
        if standing.query.emit is Emit.INSERTS:
            ahead = standing.query.is_join and not standing.query.every
            results = oracle.inserts(None if ahead else closed)
        else:
            results = oracle.changes(closed)
        new = results.slice(standing.taken)
        standing.taken = results.num_rows
        return new

    def answer(self, query: str) -> pa.Table:
        """Return the answer now."""
        standing = self._find(query)
        oracle = make_oracle(
            standing.query,
            self._accepted(standing),
            self._tables,
            self._catalog,
            after=standing.after,
            advanced=self._watermark.advanced(standing.name),
        )
        return oracle.answer(self._watermark.frontier(query).closed)

    def late(self, stream: str) -> pa.Table:
        """Return all rows that came too late so far."""
        name = self._stream(stream).name.casefold()
        return self._fed[name].filter(
            pa.array([arrival.late for arrival in self._arrivals[name]], pa.bool_())
        )

    def state(self) -> Mapping[str, int]:
        """For each stream, how many of its rows are inside a window of some query now."""
        held: dict[str, set[object]] = {stream.name: set() for stream in self._catalog.streams()}
        for standing in self._standing.values():
            for source in standing.query.sources:
                if not source.stored:
                    held[self._stream(source.relation).name] |= self._alive(standing, source)
        return {name: len(rows) for name, rows in held.items()}

    def explain(self, query: str) -> str | None:
        """Nothing: the oracle has no plan."""
        self._find(query)
        return None

    def drop(self, query: str) -> None:
        """Drop a standing query."""
        self._find(query)
        del self._standing[query.casefold()]
        self._catalog.remove_view(query)
        self._watermark.forget(query)

    def restart(self) -> bool:
        """Nothing is durable: it recomputes everything each time."""
        return False

    def close(self) -> None:
        """Nothing to give back."""

    def _alive(self, standing: _Standing, source: Scan) -> set[object]:
        """Return the arrival numbers of rows in a source's window, which the query selects."""
        name = source.relation.casefold()
        arrivals = pa.array(range(len(self._fed[name])), pa.int64()).filter(
            self._in_time(standing, name)
        )
        numbered = self._accepted(standing)[name].append_column(_ARRIVAL, arrivals)
        number = ColumnRef(0, _ARRIVAL)
        column = OutputColumn("arrival", Expression(quote(number.flat), (number,), pa.int64()))
        query = Query(
            "state", "", Join((replace(source, schema=numbered.schema),), (), (), (column,))
        )
        closed = self._watermark.frontier(standing.name).closed
        return set(
            Oracle(query, {name: numbered}, {}, self._catalog).answer(closed).column(0).to_pylist()
        )

    def _in_time(self, standing: _Standing, stream: str) -> pa.Array:
        """Return a mask of the rows of a stream that were not late for a query."""
        name = standing.name.casefold()
        late = [arrival.lost or name in arrival.late_for for arrival in self._arrivals[stream]]
        return pc.invert(pa.array(late, pa.bool_()))

    def _accepted(self, standing: _Standing) -> dict[str, pa.Table]:
        """Return the rows of all streams that were not late for a query."""
        return {
            name: rows.filter(self._in_time(standing, name)) for name, rows in self._fed.items()
        }

    def _final(self, standing: _Standing) -> dict[str, pa.Table]:
        """Return the accepted rows whose place in the order is final for a query."""
        final, accepted = {}, self._accepted(standing)
        frontier = self._watermark.frontier(standing.name)
        for stream in self._catalog.streams():
            rows = accepted[stream.name.casefold()]
            last = pa.scalar(frontier.last_time(stream.order))
            final[stream.name] = rows.filter(
                pc.less_equal(rows.column(stream.time).cast(pa.int64()), last)
            )
        return final

    def _find(self, query: str) -> _Standing:
        standing = self._standing.get(query.casefold())
        if standing is None:
            raise CatalogError(f"there is no query {query}")
        return standing

    def _stream(self, name: str) -> Stream:
        stream = self._catalog.find(name)
        if not isinstance(stream, Stream):
            raise CatalogError(f"there is no stream {name}")
        return stream
