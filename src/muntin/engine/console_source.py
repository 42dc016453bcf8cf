"""An engine in process, as the web console sees it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.console.source import Cancel, OnResults
from muntin.engine.declarations import Declarations
from muntin.engine.fair_lock import FairLock
from muntin.engine.inspector import Inspector
from muntin.engine.query_registry import QueryEntry, QueryRegistry
from muntin.model.catalog import Catalog, Stream, Table
from muntin.model.clock import BEFORE_ALL, format_instant
from muntin.model.window import TimeWindow, window_size
from muntin.plan.query import Query
from muntin.runtime.dataflow import Dataflow
from muntin.runtime.metrics import ResponseTimes

if TYPE_CHECKING:
    from muntin.engine.engine import Engine


@dataclass(frozen=True)
class EngineParts:
    """The parts of an engine that its console looks at, each under the engine's lock."""

    lock: FairLock
    declared: Declarations
    dataflow: Dataflow
    registry: QueryRegistry
    inspector: Inspector


class EngineSource:
    """Implements :class:`muntin.console.source.ConsoleSource`."""

    kind = "process"

    def __init__(self, engine: Engine, parts: EngineParts) -> None:
        self._engine = engine
        self._parts = parts
        self._noted: dict[str, ResponseTimes] = {}

    def snapshot(self) -> dict[str, Any]:
        """Return all counts; response times are those since the previous call."""
        parts = self._parts
        with parts.lock:
            stats: dict[str, Any] = parts.inspector.stats()
            streams = [
                {
                    "name": name,
                    **own,
                    "newest": _instant(parts.dataflow.streams[name].newest),
                    "watermark": _instant(parts.dataflow.streams[name].watermark),
                }
                for name, own in stats["streams"].items()
            ]
            queries = [
                {
                    "name": entry.query.name,
                    **without_leaves(stats["queries"][entry.query.name]),
                    **self._facts(entry),
                }
                for entry in parts.registry.entries()
            ]
        return {"watermark": stats["watermark"], "streams": streams, "queries": queries}

    def _facts(self, entry: QueryEntry) -> dict[str, Any]:
        name = entry.query.name
        facts: dict[str, Any] = {"windows": windows_of(entry.query), "response": None}
        if entry.suspended is None:
            times = self._parts.dataflow.queries[name].response
            facts["response"] = response_of(times.since(self._noted.get(name, ResponseTimes())))
            self._noted[name] = times.copy()
        else:
            facts["suspended"] = entry.suspended.reason
        return facts

    def plans(self) -> list[dict[str, Any]]:
        """Return the plans of all queries."""
        return [query.plan() for query in self._engine.queries()]

    def details(self, name: str) -> dict[str, Any]:
        """Return the text, columns and explanation of a query."""
        with self._parts.lock:
            query = self._parts.registry.find(name).query
            return {**details_of(query), "explain": str(self._parts.inspector.explain(name))}

    def relations(self) -> list[dict[str, Any]]:
        """Return the streams and tables."""
        with self._parts.lock:
            return relations_of(self._parts.declared.catalog)

    def check(self, sql: str, name: str | None) -> None:
        """Raise what adding a query would raise."""
        with self._parts.lock:
            check_query(self._parts.declared, sql, name)

    def add(self, sql: str, name: str | None) -> str:
        """Add a query."""
        return self._engine.query(sql, name).name

    def drop(self, name: str) -> None:
        """Drop a query."""
        self._engine.drop(name)

    def answer(self, name: str) -> pa.Table:
        """Return the answer of a query."""
        return self._parts.registry.answer(name)

    def tap(self, name: str, on_results: OnResults) -> Cancel:
        """Call a function with the results of a query, which polls still get."""
        return self._parts.registry.tap(name, on_results)


def without_leaves(stats: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of a query without those of its joins, except for their overload."""
    leaves = stats.get("leaves", ())
    limited = {
        leaf["query"]: leaf["overload"] for leaf in leaves if leaf["overload"]["mode"] == "adapt"
    }
    return {**stats, "leaves": [], "overload_of_joins": limited}


def check_query(declared: Declarations, sql: str, name: str | None) -> None:
    """Raise what adding a query to declarations would raise."""
    query = declared.read(sql, name)
    declared.check_query(query)
    declared.planned(query)


def details_of(query: Query) -> dict[str, Any]:
    """Return the text and the columns of a query."""
    return {
        "name": query.name,
        "sql": query.text,
        "emit": str(query.emit),
        "columns": _columns(query.output_schema),
        "windows": windows_of(query),
    }


def windows_of(query: Query) -> list[dict[str, Any]]:
    """Return the windows of a query; ``seconds`` where they are of that kind and end."""
    return [
        {
            "alias": source.alias,
            "relation": source.relation,
            "text": str(source.window),
            "seconds": window_size(source.window) / 1e6
            if isinstance(source.window, TimeWindow) and not source.window.is_landmark
            else None,
        }
        for source in query.sources
        if not source.stored
    ]


def relations_of(catalog: Catalog) -> list[dict[str, Any]]:
    """Return the streams and tables of a catalog, with their columns."""
    relations: list[Stream | Table] = [*catalog.streams(), *catalog.tables()]
    return [
        {
            "name": relation.name,
            "kind": "table" if isinstance(relation, Table) else "stream",
            "columns": _columns(relation.schema),
        }
        for relation in relations
    ]


def _columns(schema: Iterable[pa.Field]) -> list[dict[str, str]]:
    return [{"name": field.name, "type": str(field.type)} for field in schema]


def response_of(times: ResponseTimes) -> dict[str, Any] | None:
    """Return the percentiles of response times; None where there are none."""
    return {"count": times.count, **times.stats()} if times.count else None


def _instant(micros: int) -> str | None:
    return None if micros <= BEFORE_ALL else format_instant(micros)
