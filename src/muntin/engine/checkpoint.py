"""Checkpoints of an engine in process: its declarations, the state of its dataflow, and results.

Everything is captured under the engine's lock between two steps, without copying columns, and
written afterwards (:mod:`muntin.engine.checkpoint_files`), so that the engine continues meanwhile.
Rows are stored, and operators are not: a restored engine replays the rows that windows reach, see
:mod:`muntin.runtime.snapshot`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from muntin.engine.checkpoint_files import (
    CheckpointWriter,
    RowChunks,
    read_all,
    read_rows,
    read_state,
)
from muntin.engine.function_checks import restored_functions
from muntin.engine.query_registry import QueryEntry, QueryRegistry
from muntin.engine.registrar import Registrar
from muntin.engine.suspended_query import SuspendedQuery
from muntin.errors import InputError
from muntin.expressions.python_functions import Vectorized
from muntin.metrics.figures import QueryCounts
from muntin.model.catalog import Catalog, Stream, Table, View
from muntin.model.clock import BEFORE_ALL
from muntin.model.functions import FunctionSignature
from muntin.model.settings import Settings
from muntin.plan.description import Description, Fact
from muntin.runtime.dataflow import Dataflow
from muntin.runtime.planned_query import PlannedQuery, plan_checked
from muntin.runtime.snapshot import (
    GroupSnapshot,
    LogSnapshot,
    QuerySnapshot,
    Snapshot,
    StreamSnapshot,
)
from muntin.runtime.stream_input import Place
from muntin.sql.script import read_query

if TYPE_CHECKING:
    from muntin.engine.declarations import Declarations


@dataclass(frozen=True)
class StoredQuery:
    """A registered query: its text and settings, undelivered results, and its running state.

    Without a snapshot it is suspended, for a ``reason``.
    """

    name: str
    sql: str
    settings: Mapping[str, str]
    late_before: int
    results: pa.Table
    snapshot: QuerySnapshot | None = None
    reason: str = ""
    stats: Any = None


@dataclass(frozen=True)
class StoredLog:
    """The rows of a stream that a group holds: those in its log, and those that wait."""

    rows: RowChunks
    waiting: pa.Table
    next: int
    late: int


@dataclass(frozen=True)
class StoredGroup:
    """A group of queries: its frontier and its logs."""

    final: Place
    advanced: int
    logs: Mapping[str, StoredLog]
    queries: tuple[str, ...]


@dataclass(frozen=True)
class EngineState:
    """The state of an engine, except for rows in chunks.

    ``declared`` streams were declared so far; ``stamp`` is the last time of an arrival.
    """

    streams: tuple[Stream, ...]
    tables: tuple[Table, ...]
    views: tuple[View, ...]
    declared: int
    stamp: int
    settings: Mapping[str, str]
    queries: tuple[StoredQuery, ...]
    groups: tuple[StoredGroup, ...]
    counts: Mapping[str, StreamSnapshot]
    late: Mapping[str, RowChunks]
    contents: Mapping[str, RowChunks]
    advanced: int
    fed: Place
    functions: tuple[FunctionSignature, ...] = ()


@dataclass(frozen=True)
class Captured:
    """What is written after the lock was released."""

    state: EngineState
    snapshot: Snapshot
    tables: Mapping[str, pa.Table]


@dataclass
class _StoredTables:
    """Numbers for the contents of tables, so that a table is written again only if it changed."""

    last: dict[str, tuple[int, pa.Table]] = field(default_factory=dict)

    def key(self, name: str, rows: pa.Table) -> str:
        number, known = self.last.get(name, (0, rows))
        self.last[name] = number if known is rows else number + 1, rows
        return f"table {name} {self.last[name][0]}"


class EngineCheckpoint:
    """Captures an engine, writes it to folders, and restores another one from them."""

    def __init__(
        self,
        declared: Declarations,
        dataflow: Dataflow,
        registry: QueryRegistry,
        registrar: Registrar,
    ) -> None:
        self._declared = declared
        self._dataflow = dataflow
        self._registry = registry
        self._registrar = registrar
        self.turn = threading.Lock()
        """Held from a capture until it is written, so that an older one never replaces a newer."""
        self._writer: CheckpointWriter | None = None
        self._contents = _StoredTables()

    # -- writing -----------------------------------------------------------------------------------

    def capture(self) -> Captured:
        """Return the state of the engine; called under its lock, while no work is deferred."""
        snapshot = self._dataflow.snapshot()
        catalog, arrivals = self._declared.catalog, self._registrar.arrivals
        queries = self._declared.queries
        empty = {
            name: replace(each, late=each.late.slice(0, 0))
            for name, each in snapshot.streams.items()
        }
        state = EngineState(
            tuple(catalog.streams()),
            tuple(catalog.tables()),
            tuple(view for view in catalog.views() if view.name.casefold() not in queries),
            catalog.declared,
            BEFORE_ALL if arrivals is None else arrivals.last,
            self._declared.settings.changed(),
            tuple(self._query(entry, snapshot) for entry in self._registry.entries()),
            (),
            empty,
            {},
            {},
            snapshot.advanced,
            snapshot.fed,
            tuple(catalog.functions.values()),
        )
        return Captured(state, snapshot, dict(self._dataflow.tables))

    def _query(self, entry: QueryEntry, snapshot: Snapshot) -> StoredQuery:
        query, suspended = entry.query, entry.suspended
        schema = query.output_schema
        results = pa.concat_tables(self._undelivered(entry) or [schema.empty_table()])
        settings = entry.settings.changed()
        stored = StoredQuery(query.name, query.text, settings, entry.late_before, results)
        if suspended is None:
            return replace(stored, snapshot=snapshot.queries[query.name])
        return replace(stored, reason=suspended.reason, stats=suspended.stats)

    def _undelivered(self, entry: QueryEntry) -> list[pa.Table]:
        """Return results for poll, or those for which a subscriber in the background waits."""
        waiting: list[list[pa.RecordBatch]] = [
            each.undelivered() for each in self._registry.deliveries.of(entry.query.name)
        ]
        longest = max(waiting, key=lambda batches: sum(map(len, batches)), default=[])
        return [*entry.results, *(pa.Table.from_batches([batch]) for batch in longest)]

    def write(self, captured: Captured, folder: Path) -> None:
        """Write what was captured in this turn; then the checkpoint counts and survives a crash."""
        writer = self._writer
        if writer is None or writer.folder != folder:
            writer = self._writer = CheckpointWriter(folder)
        with writer.checkpoint():
            late = {
                name: writer.store(f"late {each.order}", np.arange(len(rows)), rows)
                for each in captured.state.streams
                for name, rows in [(each.name, captured.snapshot.streams[each.name].late)]
            }
            contents = {
                name: writer.store(self._contents.key(name, rows), np.arange(len(rows)), rows)
                for name, rows in captured.tables.items()
            }
            schemas = {each.name: each.schema for each in captured.state.streams}
            groups = tuple(
                _stored_group(writer, each, schemas) for each in captured.snapshot.groups
            )
            writer.publish(replace(captured.state, late=late, contents=contents, groups=groups))

    # -- reading -----------------------------------------------------------------------------------

    def restore(self, folder: Path, functions: Mapping[str, Vectorized]) -> None:
        """Continue where the engine was that wrote the checkpoint; this one is new."""
        state = read_state(folder, EngineState)
        declared = restored_functions(state.functions, functions)
        self._declared.catalog = Catalog.restored(
            [*state.streams, *state.tables], state.views, state.declared
        )
        for function in declared:
            self._declared.add_function(function)
        for name, value in state.settings.items():
            self._declared.set(name, value)
        schemas = {each.name: each.schema for each in state.streams}
        schemas |= {each.name: each.schema for each in state.tables}
        contents = read_all(folder, state.contents, schemas)
        for table in state.tables:
            self._registrar.fill_table(table, contents[table.name])
        for stream in state.streams:
            self._registrar.declare(stream)
        if self._registrar.arrivals is not None:
            self._registrar.arrivals.last = state.stamp
        self._dataflow.restore(_snapshot(folder, state, schemas), self._planned(state.queries))
        for stored in state.queries:
            self._registry.put(self._entry(stored))

    def _planned(self, queries: Iterable[StoredQuery]) -> list[PlannedQuery]:
        """Return the running queries; those that were registered at one place are a cohort."""
        known, planned = self._declared.knowledge(), []
        for stored in queries:
            query = read_query(stored.sql, stored.name, self._declared.catalog)
            self._declared.add_query(query)
            if stored.snapshot is not None:
                settings = Settings.of(**stored.settings)
                cohort = repr(sorted(stored.snapshot.came_before.items()))
                plan = plan_checked(query, settings, known)
                planned.append(PlannedQuery(query, plan, settings, known, cohort))
        return planned

    def _entry(self, stored: StoredQuery) -> QueryEntry:
        query = self._declared.queries[stored.name.casefold()]
        settings = Settings.of(**stored.settings)
        results = [stored.results] if len(stored.results) else []
        entry = QueryEntry(query, settings, time.monotonic(), stored.late_before, results)
        if stored.snapshot is None:
            reason = stored.reason
            fact = Fact("suspended", reason, f"suspended: {reason}")
            described = Description("query", f"query {query.name}", (fact,))
            assert isinstance(stored.stats, dict), "stored with the reason"
            counts = QueryCounts(stored.stats["rows_out"], stored.stats["rows_late"])
            entry.suspended = SuspendedQuery(query.name, reason, described, stored.stats, counts)
        return entry


def _stored_group(
    writer: CheckpointWriter, group: GroupSnapshot, schemas: Mapping[str, pa.Schema]
) -> StoredGroup:
    logs = {}
    for name, log in group.logs.items():
        rows, count = group.rows.get(name, schemas[name].empty_table()), len(log.positions)
        stored = writer.store(f"log {log.number}", log.positions, rows.slice(0, count))
        logs[name] = StoredLog(stored, rows.slice(count), log.next, log.late)
    return StoredGroup(group.final, group.advanced, logs, group.queries)


def _snapshot(folder: Path, state: EngineState, schemas: Mapping[str, pa.Schema]) -> Snapshot:
    """Return the state of the dataflow, with the rows of all chunks."""
    groups = []
    for stored in state.groups:
        rows, logs = {}, {}
        for name, log in stored.logs.items():
            positions, logged = read_rows(folder, log.rows, schemas[name])
            logs[name] = LogSnapshot(0, positions, log.next, log.late)
            rows[name] = pa.concat_tables([logged, log.waiting])
        groups.append(GroupSnapshot(rows, stored.final, stored.advanced, logs, stored.queries))
    late = read_all(folder, state.late, schemas)
    streams = {name: replace(each, late=late[name]) for name, each in state.counts.items()}
    queries = {each.name: each.snapshot for each in state.queries if each.snapshot is not None}
    return Snapshot(tuple(groups), queries, streams, state.advanced, state.fed, time.monotonic())


def read_folder(folder: object) -> Path:
    """Return the folder of a checkpoint that a user gives."""
    text = str(folder) if isinstance(folder, str | Path) else ""
    if not text.strip() or not text.isprintable():
        raise InputError(
            f"the folder of a checkpoint cannot be {folder!r}", hint="Pass the path of a folder"
        )
    return Path(text).absolute()
