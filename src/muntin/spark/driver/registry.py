"""The declarations of an engine on Spark: streams, tables and queries with their plans and sinks.

Nothing here depends on a run. Declarations are collected until the engine starts and then become
one :class:`~muntin.spark.exchange.deployment.Deployment`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from muntin.engine.declaration_checks import SINK_OPTIONS, SinkOptions, confined
from muntin.engine.declarations import Declarations
from muntin.errors import InputError, SettingError
from muntin.model.allowed_paths import AllowedPaths, folder_identity
from muntin.model.arguments import check_name
from muntin.model.catalog import Stream, Table
from muntin.model.kafka import KAFKA
from muntin.model.settings import Settings, Strategy
from muntin.plan.join import JoinPlan
from muntin.plan.query import Query
from muntin.plan.query_plan import QueryPlan
from muntin.spark.driver.limited_joins import limits_of
from muntin.spark.driver.query_meaning import meaning_of
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import to_blob
from muntin.spark.sinks import Sink, SinkChoice, SinkMaker, identity_of
from muntin.spark.sources import SparkSource, read_stream


@dataclass(frozen=True)
class RegisteredQuery:
    """A registered query: as it is deployed, bound, planned, and with its sink.

    ``given`` are its settings as the user gave them; it may be deployed with others. ``limited``
    are the joins that are limited under overload, as partitions plan them; if none is although that
    was asked for, ``unlimited`` has the reason.
    """

    deployed: DeployedQuery
    query: Query
    plan: JoinPlan | QueryPlan
    sink: Sink
    given: Settings = field(default_factory=Settings)
    limited: tuple[JoinPlan, ...] = ()
    unlimited: str = ""


class SparkRegistry:
    """The streams, tables and queries of an engine; ``queries`` is keyed by case-folded name."""

    def __init__(self, declared: Declarations, sinks: SinkMaker) -> None:
        self.declared = declared
        self.sinks = sinks
        self.queries: dict[str, RegisteredQuery] = {}
        self._frames: dict[str, DataFrame] = {}
        self._tables: dict[str, bytes] = {}

    def add_stream(self, stream: Stream, frame: DataFrame | None) -> None:
        """Declare a stream over a DataFrame, or over the source in its options."""
        added = self.declared.add_stream(stream)
        if frame is not None:
            self._frames[added.name] = frame

    def add_table(self, table: Table, rows: pa.Table) -> None:
        """Declare a stored table with its rows."""
        self.declared.add_table(table)
        self._tables[table.name] = to_blob(rows.combine_chunks())

    def drop_relation(self, kind: str, name: str, *, if_exists: bool) -> None:
        """Drop a stream or a table."""
        relation = self.declared.drop_relation(kind, name, if_exists=if_exists)
        if relation is not None:
            self._frames.pop(relation.name, None)
            self._tables.pop(relation.name, None)

    def plan(self, query: Query, sink: SinkChoice) -> tuple[RegisteredQuery, Settings]:
        """Plan a query and make its sink; return both without registering anything.

        A query without a sink takes the one of its WITH.
        """
        self.declared.check_query(query)
        given, plan = self.declared.planned(query)
        if given.changes.strategy is Strategy.INPUT:
            raise SettingError(
                f"query {query.name} cannot be triggered by input alone on Spark, where the "
                "results of an instant come from all partitions at once",
                hint="Use pipeline = 'probing', which gives the same changes on time, or run the "
                "query in process",
            )
        limits = limits_of(query, given, plan, self.declared.knowledge())
        settings, plan = limits.settings, limits.plan
        meaning = meaning_of(query, settings, self.declared.catalog.functions)
        chosen = _sink_of(query, self.declared.allowed) if sink is None else sink
        made = self.sinks.make(query, chosen, meaning)
        _check_unshared(made, self.queries.values())
        deployed = DeployedQuery(
            query.name,
            query.text,
            _changed(settings),
            meaning,
            identity_of(made),
            uuid.uuid4().hex[:12],
        )
        return RegisteredQuery(
            deployed, query, plan, made, given, limits.joins, limits.obstacle
        ), settings

    def add(self, registered: RegisteredQuery) -> None:
        """Register a planned query."""
        self.queries[registered.query.name.casefold()] = registered
        self.declared.add_query(registered.query)

    def drop(self, name: str, *, if_exists: bool) -> RegisteredQuery | None:
        """Drop a query and return it; None if it does not exist and need not."""
        if self.declared.drop_query(name, if_exists=if_exists) is None:
            return None
        return self.queries.pop(name.casefold())

    def find(self, name: str) -> RegisteredQuery:
        """Return a query by name; raise if there is none."""
        check_name(name, "the name of a query")
        registered = self.queries.get(name.casefold())
        if registered is None:
            raise self.declared.unknown_query(name)
        return registered

    def streams(self) -> list[Stream]:
        """Return the declared streams."""
        return list(self.declared.catalog.streams())

    def deployment(self, partitions: int) -> Deployment:
        """Return the deployment as it is declared now."""
        if not self.queries:
            raise InputError(
                "there is no query to run", hint="Register one with engine.query or CREATE QUERY"
            )
        return Deployment(
            tuple(self.streams()),
            dict(self._tables),
            tuple(registered.deployed for registered in self.queries.values()),
            (),
            partitions,
            self.declared.settings.engine.max_advance,
            tuple(self.declared.catalog.functions.values()),
        )

    def sources(self, spark: SparkSession) -> dict[str, SparkSource]:
        """Return the source of each stream."""
        return {stream.name: self._source(spark, stream) for stream in self.streams()}

    def _source(self, spark: SparkSession, stream: Stream) -> SparkSource:
        frame = self._frames.get(stream.name)
        if frame is not None:
            return SparkSource(frame)
        # Checked again now: since the declaration, a folder may have become a link out of bounds.
        options = confined(stream.options, self.declared.allowed, patterns=True)
        return read_stream(spark, replace(stream, options=options))


def _changed(settings: Settings) -> dict[str, str]:
    """Return the settings of a query that differ from the defaults."""
    changed = settings.changed()
    changed.pop("max_advance", None)  # it belongs to the deployment
    changed.pop("memory_limit", None)  # without effect here
    return changed


def _sink_of(query: Query, allowed: AllowedPaths | None) -> SinkChoice:
    """Return the sink that the WITH of a query names; None if it names none."""
    sink = SinkOptions.of(confined(query.options, allowed, patterns=False))
    if sink.kind in {None, "memory", "console"}:
        return sink.kind
    if sink.kind == KAFKA:
        own = ((name.lower(), value) for name, value in query.options)
        return {
            **{name: value for name, value in own if name in SINK_OPTIONS and name != "sink"},
            "format": sink.kind,
        }
    return {"format": sink.kind, **({"path": sink.path} if sink.path is not None else {})}


def _check_unshared(sink: Sink, others: Iterable[RegisteredQuery]) -> None:
    """Raise if another query writes to the folder of a sink: their batches have equal names."""
    place = sink.place()
    if place is None:
        return
    for other in others:
        theirs = other.sink.place()
        if theirs is not None and folder_identity(theirs.name) == folder_identity(place.name):
            raise SettingError(
                f"query {other.query.name} already writes to {place.name}",
                hint="Give each query a separate folder",
            )
