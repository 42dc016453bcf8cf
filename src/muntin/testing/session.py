"""A running golden script: the driver, and for the oracle all input and all output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from muntin.model.catalog import Catalog, Table
from muntin.plan.query import Emit, Query
from muntin.sql.views import readable
from muntin.testing.cells import read_schema, read_seconds, read_table
from muntin.testing.compare import (
    accumulate,
    changes_difference,
    difference,
    ordered_difference,
    rows_of,
)
from muntin.testing.driver import DriverFactory
from muntin.testing.golden import (
    Action,
    Advance,
    DeclareStream,
    DeclareTable,
    Execute,
    Register,
    Restart,
    ScriptDrop,
    ScriptFeed,
    ScriptRow,
    ScriptSetting,
    StreamDeclaration,
)
from muntin.testing.oracle import Oracle
from muntin.testing.pipeline_oracle import PipelineOracle, make_oracle
from muntin.testing.script_views import declare_views
from muntin.testing.watermark import Arrival, OrderFrontier, Watermark

Binder: TypeAlias = Callable[[str, str, Catalog], Query]
"""Makes a bound query of its text, its name and the catalog."""


@dataclass
class ScriptQuery:
    """A query that runs, what it sent out so far, and from which instant on it has results."""

    name: str
    query: Query | None = None
    after: OrderFrontier | None = None
    sent: list[pa.Table] = field(default_factory=list)
    waiting: list[pa.Table] = field(default_factory=list)


class Session:
    """Performs the actions of a script; the checks ask it what came of them.

    Parameters
    ----------
    make_driver : DriverFactory
        Makes the system under test, once at the start and once for every ``restart``.
    bind : Binder
        Binds query texts for the oracle.
    settings : Mapping[str, object]
        Settings that the script cannot change.
    """

    def __init__(
        self, make_driver: DriverFactory, bind: Binder, settings: Mapping[str, object]
    ) -> None:
        self._make_driver = make_driver
        self._bind = bind
        self._settings = settings
        self._journal: list[Action] = []
        self._registered: dict[str, ScriptQuery] = {}
        self._streams: dict[str, StreamDeclaration] = {}
        self._fed: dict[str, list[pa.Table]] = {}
        self._arrivals: dict[str, list[Arrival]] = {}
        self._tables: dict[str, pa.Table] = {}
        self._catalog = Catalog()
        self._watermark = Watermark()
        self.driver = make_driver(settings)

    def perform(self, action: Action) -> None:
        """Do what a step says, with the driver first: what it refuses has not happened."""
        if isinstance(action, Restart):
            self._restart()
            return
        self._drive(action)
        self._journal.append(action)
        match action:
            case DeclareStream(declaration):
                self._streams[declaration.name.casefold()] = declaration
                self._catalog.add(declaration.stream)
                stream = declaration.stream
                self._watermark.declare(stream.name, stream.slack, arrival=stream.arrival)
            case DeclareTable(name, columns, _):
                self._catalog.add(Table(name, read_schema(columns)))
                self._tables[name] = self._table(action)
            case Execute(sql):
                declare_views(sql, self._catalog)
            case Register(name, sql):
                query = self._bind(sql, name, self._catalog)
                self._catalog.add_view(readable(query))
                after = self._watermark.follow(
                    name, (source.relation for source in query.sources if not source.stored)
                )
                self._registered[name.casefold()] = ScriptQuery(name, query, after)
            case ScriptFeed(stream, rows):
                self._fed.setdefault(stream.casefold(), []).append(self.stream_rows(stream, rows))
                arrivals = self._arrivals.setdefault(stream.casefold(), [])
                arrivals += [
                    self._watermark.arrive(stream, read_seconds(row.cells[0] or "")) for row in rows
                ]
            case Advance(at):
                self._watermark.advance(at)
            case ScriptDrop(query):
                self._registered.pop(query.casefold(), None)
                self._catalog.remove_view(query)
                self._watermark.forget(query)
            case _:
                pass

    def output(self, query: str) -> pa.Table:
        """Return the output of the query since the last call."""
        registration = self._collect(query)
        waiting = pa.concat_tables(registration.waiting)
        registration.sent += registration.waiting
        registration.waiting = []
        return waiting

    def query(self, name: str) -> Query | None:
        """Return the bound query, None when the script made it by ``sql``."""
        registration = self._registered.get(name.casefold())
        return registration.query if registration else None

    def running(self) -> list[str]:
        """Return the names of the queries that run."""
        return list(self._registered)

    def against_oracle(self, name: str) -> str:
        """Describe how the output of a query differs from the oracle's; empty if it does not.

        What happens up to the last closed instant must be there; of what happens later, a part in
        order may be.
        """
        registration = self._collect(name)
        oracle = self._oracle(registration)
        if oracle is None or registration.query is None:
            return ""
        sent = pa.concat_tables([*registration.sent, *registration.waiting])
        closed = self._watermark.frontier(name).closed
        if registration.query.emit is Emit.INSERTS:
            due, possible = oracle.inserts(closed), oracle.inserts()
            ordered = self.driver.in_order and registration.query.is_join
            compare = ordered_difference if ordered else changes_difference
            return compare(possible.slice(0, max(due.num_rows, sent.num_rows)), sent)
        latest = max([closed, *sent.column("_ts").cast(pa.int64()).to_pylist()])
        problem = changes_difference(oracle.changes(latest), sent)
        begun = not isinstance(oracle, PipelineOracle) or oracle.has_begun(latest)
        if problem or registration.query.emit is not Emit.CHANGES or not begun:
            return problem
        return difference(oracle.answer(latest), accumulate(sent))

    def oracle_answer(self, name: str) -> pa.Table | None:
        """Return the oracle's answer now, or None when the script made the query by ``sql``.

        Raises
        ------
        ValueError
            When now is no instant at which all streams are complete: the script must ``advance``
            first.
        """
        oracle = self._oracle(self._collect(name))
        if oracle is None:
            return None
        frontier = self._watermark.frontier(name)
        if not frontier.exact:
            raise ValueError(
                "rows were fed beyond the last advance, so the answer is between two instants; "
                "advance first"
            )
        return oracle.answer(frontier.time)

    def stream_rows(self, stream: str, rows: tuple[ScriptRow, ...]) -> pa.Table:
        """Return rows of a stream as the script writes them: the time, then the other columns."""
        declaration = self._streams.get(stream.casefold())
        if declaration is None:
            raise ValueError(f"the script declares no stream {stream}")
        known = declaration.stream
        schema, place = known.schema, known.schema.get_field_index(known.time)
        others = read_table([row.cells[1:] for row in rows], schema.remove(place))
        times = [None if row.cells[0] is None else read_seconds(row.cells[0]) for row in rows]
        return others.add_column(
            place,
            schema.field(place),
            pa.array(times, type=pa.int64()).cast(schema.field(place).type),
        )

    def close(self) -> None:
        """Stop the driver."""
        self.driver.close()

    def _drive(self, action: Action) -> None:
        driver = self.driver
        match action:
            case DeclareStream(declaration):
                driver.declare(declaration)
            case DeclareTable(name):
                driver.table(name, self._table(action))
            case Register(name, sql):
                driver.query(name, sql)
            case Execute(sql):
                driver.execute(sql)
            case ScriptSetting(name, value):
                if name not in self._settings:
                    driver.change(name, value)
            case ScriptFeed(stream, rows):
                driver.feed(stream, self.stream_rows(stream, rows))
            case Advance(at):
                driver.advance(at)
            case ScriptDrop(query):
                driver.drop(query)
            case _:
                raise AssertionError(f"{action} is a check, not an action")

    def _restart(self) -> None:
        """Resume the driver from durable state, or replay into a new one.

        The output of the replay was sent before and is dropped.
        """
        if self.driver.restart():
            return
        for name in self._registered:
            self._collect(name)
        self.driver.close()
        self.driver = self._make_driver(self._settings)
        for action in self._journal:
            self._drive(action)
        for name in self._registered:
            self.driver.take(name)

    def _collect(self, name: str) -> ScriptQuery:
        new = self.driver.take(name)
        registration = self._registered.setdefault(name.casefold(), ScriptQuery(name))
        registration.waiting.append(new)
        return registration

    def _oracle(self, registration: ScriptQuery) -> Oracle | PipelineOracle | None:
        if registration.query is None:
            return None
        accepted = {name: self._accepted(name, registration.name) for name in self._fed}
        return make_oracle(
            registration.query,
            accepted,
            self._tables,
            self._catalog,
            after=registration.after,
            advanced=self._watermark.advanced(registration.name),
        )

    def _accepted(self, stream: str, query: str) -> pa.Table:
        """Return the rows of a stream that were not late for a query.

        Of equal rows the last were late: what is late once stays late. A row that the driver calls
        late was so for somebody; it counts as late for the query if it was lost for all, or late
        for this query row by row.
        """
        everything = pa.concat_tables(self._fed[stream])
        late = Counter(rows_of(self.driver.late(stream)))
        kept = []
        for place, row in reversed(list(enumerate(rows_of(everything)))):
            arrival = self._arrivals[stream][place]
            if late[row] > 0 and arrival.late:
                late[row] -= 1
                if arrival.lost or query.casefold() in arrival.late_for:
                    continue
            kept.append(place)
        return everything.take(pa.array(kept[::-1], type=pa.int64()))

    @staticmethod
    def _table(action: DeclareTable) -> pa.Table:
        return read_table([row.cells for row in action.rows], read_schema(action.columns))
