"""Dataflows for tests: queries and settings as text, rows as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from muntin.engine.declarations import Declarations
from muntin.model.catalog import Stream, Table
from muntin.runtime.dataflow import Dataflow
from muntin.runtime.planned_query import PlannedQuery
from muntin.state.batch import Batch, batch_of, times_of


def dataflow_of(
    streams: Iterable[Stream],
    queries: Mapping[str, str],
    *,
    tables: Mapping[str, pa.Table] | None = None,
    partition: bool = False,
    **settings: object,
) -> Dataflow:
    """Return a dataflow with streams, stored tables and queries, which are given by name."""
    declared = Declarations()
    for name, value in settings.items():
        declared.set(name, value)
    dataflow = Dataflow(partition=partition)
    for stream in streams:
        dataflow.declare(declared.add_stream(stream))
    for name, rows in (tables or {}).items():
        declared.add_table(Table(name, rows.schema))
        dataflow.tables[name] = rows
    for name, sql in queries.items():
        query = declared.read(sql, name)
        own, plan = declared.planned(query)
        cohort = None if partition else ""
        dataflow.add(PlannedQuery(query, plan, own, declared.knowledge(), cohort))
    return dataflow


def batches_of(
    dataflow: Dataflow, rows: Mapping[str, pa.Table], arrival: float = 0.0
) -> dict[str, Batch]:
    """Return rows by stream as batches that arrived at one moment."""
    return {
        name: batch_of(table, times_of(table, dataflow.streams[name].stream.time), arrival)
        for name, table in rows.items()
    }
