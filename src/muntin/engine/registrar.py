"""Adds and drops the streams, tables and queries of an engine."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from muntin.engine.arrival_clock import ArrivalClock, Clock
from muntin.engine.declarations import Actions, Declarations, run_script
from muntin.engine.kafka_checks import needs_spark
from muntin.engine.query_registry import QueryRegistry
from muntin.engine.table_files import load_table
from muntin.errors import CatalogError, InputError
from muntin.model.arguments import check_name
from muntin.model.catalog import Stream, Table
from muntin.plan.query import Query
from muntin.plan.statement import DropStatement
from muntin.runtime.dataflow import Dataflow
from muntin.runtime.keyed_table import KeyedTable
from muntin.runtime.planned_query import PlannedQuery
from muntin.runtime.table_change import TableChange


def read_clock(clock: object) -> Clock | None:
    """Return a clock that a user gives, or None."""
    if clock is not None and not callable(clock):
        raise InputError(
            f"the clock cannot be {clock!r}",
            hint="Pass a function that returns microseconds since 1970, or None",
        )
    return clock


class Registrar:
    """Keeps declarations, dataflow and registry in step.

    ``finish`` completes work in progress before queries come or go. ``clock`` is compared with the
    first time of each stream; without it there is no comparison.
    """

    def __init__(
        self,
        declared: Declarations,
        dataflow: Dataflow,
        registry: QueryRegistry,
        finish: Callable[[], None],
        clock: Clock | None,
    ) -> None:
        self._declared = declared
        self._dataflow = dataflow
        self._registry = registry
        self._finish = finish
        self._clock = clock
        self.arrivals = None if clock is None else ArrivalClock(clock)
        """Stamps rows, if there is a clock."""

    def running_clock(self) -> Clock:
        """Return the clock; raise if the engine has none."""
        if self._clock is None:
            raise InputError(
                "the engine has no clock",
                hint="Make it without clock=None, or pass a function of the time",
            )
        return self._clock

    def run(self, script: str) -> list[str]:
        """Run the statements of a script, and return the names of the queries that it created."""
        actions = Actions(
            self.add_stream, self._load_table, self.add_query, self.replace_query, self._run_drop
        )
        return run_script(script, self._declared, actions)

    def add_stream(self, stream: Stream) -> None:
        """Add a stream."""
        error = needs_spark(stream)
        if error is not None:
            raise error
        if stream.arrival:
            self.running_clock()  # before anything changes
        self.declare(self._declared.add_stream(stream))

    def declare(self, stream: Stream) -> None:
        """Declare a stream of the catalog to the dataflow."""
        if stream.arrival:
            self.running_clock()
        self._dataflow.declare(stream, None if self._clock is None else self._clock())

    def _load_table(self, table: Table) -> None:
        self.add_table(table, load_table(table, self._declared.allowed))

    def add_table(self, table: Table, rows: pa.Table) -> None:
        """Add a stored table with its rows."""
        self._declared.add_table(table)
        try:
            self.fill_table(table, rows.combine_chunks())
        except InputError:
            self._declared.drop_relation("table", table.name)
            raise

    def fill_table(self, table: Table, rows: pa.Table) -> None:
        """Give the dataflow the rows of a table of the catalog."""
        tables = self._dataflow.tables
        if table.key:
            tables.changing[table.name] = KeyedTable(
                table.name, table.key, rows, self._dataflow.duck
            )
        else:
            tables[table.name] = rows

    def changing_table(self, name: str) -> Table:
        """Return a table that can change; raise if there is none of that name."""
        check_name(name, "the name of a table")
        table = self._declared.catalog.find(name)
        if not isinstance(table, Table):
            known = ", ".join(each.name for each in self._declared.catalog.tables())
            raise CatalogError(f"there is no table {name!r}", hint=f"There are {known or 'none'}")
        if not table.key:
            raise CatalogError(
                f"table {table.name} has no key, so its rows cannot change",
                hint="Declare it with engine.table(name, rows, key='column')",
            )
        return table

    def upsert(self, table: Table, rows: pa.Table) -> None:
        """Put rows into a table in the place of those with their keys."""
        self._change(table, self._dataflow.tables.changing[table.name].upsert(rows))

    def delete(self, table: Table, keys: pa.ChunkedArray) -> None:
        """Remove the rows with some keys from a table."""
        self._change(table, self._dataflow.tables.changing[table.name].delete(keys))

    def _change(self, table: Table, changed: tuple[pa.Table, pa.Table]) -> None:
        self._finish()
        change = TableChange.of(table.name, *changed)
        self._registry.take(self._dataflow.change_table(change))

    def add_query(self, query: Query) -> str:
        """Plan and run a query, and return its name; if that fails, nothing has changed."""
        self._declared.check_query(query)
        settings, plan = self._declared.planned(query)
        self._finish()
        planned = PlannedQuery(query, plan, settings, self._declared.knowledge())
        self._registry.add(query, settings, self._dataflow.add(planned))
        self._declared.add_query(query)
        return query.name

    def replace_query(self, query: Query) -> str:
        """Drop the query of the same name, if there is one, and add this one in its place.

        All that can be wrong with it is found before that. Results that were not polled are gone.
        """
        if self._declared.check_replaceable(query):
            self.drop("query", query.name)
        return self.add_query(query)

    def _run_drop(self, drop: DropStatement) -> None:
        self.drop(drop.kind, drop.name, if_exists=drop.if_exists)

    def drop(self, kind: str, name: str, *, if_exists: bool = False) -> None:
        """Drop a query, or what no query reads or calls."""
        if kind == "query":
            dropped = self._declared.drop_query(name, if_exists=if_exists)
            if dropped is not None:
                self._finish()
                if self._registry.remove(dropped.name).suspended is None:
                    self._dataflow.drop(dropped.name)
            return
        if kind == "view":
            self._declared.drop_view(name, if_exists=if_exists)
            return
        if kind == "function":
            self._declared.drop_function(name, if_exists=if_exists)
            return
        relation = self._declared.drop_relation(kind, name, if_exists=if_exists)
        if relation is None:
            return
        if isinstance(relation, Stream):
            self._registry.forget_stream(relation.name)
            self._dataflow.remove(relation.name)
        self._dataflow.tables.pop(relation.name, None)
