"""Declarations of an engine that may be running.

Queries can be added and dropped at any time: while the engine runs, a control row announces the
change, and the caller waits for the batch that applies it. Streams and tables are fixed while it
runs, because Spark's checkpoint has a fixed set of sources, and functions, because the closure of
its jobs has them.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from muntin.errors import CatalogError
from muntin.expressions.python_functions import PythonFunction
from muntin.model.catalog import Stream, Table
from muntin.plan.query import Query
from muntin.spark.driver.engine_parts import EngineParts
from muntin.spark.driver.query_changes import PendingChange
from muntin.spark.driver.resume import owner_of
from muntin.spark.sinks import MemorySink, SinkChoice


class LiveDeclarations:
    """Adds and drops streams, tables and queries; the caller holds the engine's lock."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts

    def add_stream(self, stream: Stream, frame: DataFrame | None = None) -> None:
        """Declare a stream, over a DataFrame or over the source of its options."""
        self._check_stopped(f"stream {stream.name} cannot be declared")
        self._parts.registry.add_stream(stream, frame)

    def add_table(self, table: Table, rows: pa.Table) -> None:
        """Declare a stored table."""
        self._check_stopped(f"table {table.name} cannot be declared")
        self._parts.registry.add_table(table, rows)

    def add_function(self, function: PythonFunction) -> None:
        """Declare a function, or replace one that no query calls."""
        self._check_stopped(f"function {function.signature.name} cannot be declared")
        self._parts.registry.declared.add_function(function)

    def add_query(self, query: Query, sink: SinkChoice = None) -> str:
        """Register a query and announce it; return its name."""
        parts = self._parts
        registered, settings = parts.registry.plan(query, sink)
        if parts.state.takes_changes:
            owner = owner_of(parts, parts.state.run, registered.deployed)
            registered.sink.claim(owner, replace=parts.state.replacement.allows(query.name))
        parts.registry.add(registered)
        parts.load.add(query.name, registered.limited, settings)
        parts.changes.announce(PendingChange(added=registered.deployed))
        return query.name

    def drop(self, kind: str, name: str, *, if_exists: bool) -> None:
        """Drop a query, or what no query reads or calls."""
        if kind == "query":
            self._drop_query(name, if_exists=if_exists)
            return
        if kind == "view":
            self._parts.registry.declared.drop_view(name, if_exists=if_exists)
            return
        self._check_stopped(f"{kind} {name} cannot be dropped")
        if kind == "function":
            self._parts.registry.declared.drop_function(name, if_exists=if_exists)
            return
        self._parts.registry.drop_relation(kind, name, if_exists=if_exists)

    def _drop_query(self, name: str, *, if_exists: bool) -> None:
        parts = self._parts
        dropped = parts.registry.drop(name, if_exists=if_exists)
        if dropped is None:
            return
        if parts.state.deployment is not None and not parts.state.takes_changes:
            parts.state.dropped.add(dropped.deployed.name)
        parts.writer.metrics.forget(name.casefold())
        parts.load.drop(dropped.query.name)
        parts.subscriptions.forget(name)
        parts.changes.announce(PendingChange(dropped=dropped.deployed.name))
        if isinstance(dropped.sink, MemorySink):
            dropped.sink.forget()

    def _check_stopped(self, fact: str) -> None:
        if self._parts.state.is_active:
            raise CatalogError(
                f"{fact} while the engine runs",
                hint="Stop it first; queries can be added and dropped at any time",
            )
