"""The program of an engine on Spark: what was declared, in a form that travels to partitions and outlives the process.

A *scheme* is a way to spread streams over partitions; queries with the same one share the rows that are sent. A *lane* is an
engine in each partition, fed with the rows of one scheme; mostly a scheme has one. Changes made while the engine runs are numbered;
the program of an *epoch* has the first so many of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa

from muntin.model.catalog import Catalog, Stream, Table
from muntin.model.clock import BEFORE_ALL
from muntin.model.settings import Settings
from muntin.plan.query import Query
from muntin.planner.distribution import Route
from muntin.planner.pipeline_distribution import AnyDistribution, distribution_of
from muntin.sql.script import read_query

Place: TypeAlias = tuple[int, int]
"""A place in the total order of all rows: time, then order of declaration of the stream."""


@dataclass(frozen=True)
class DeployedQuery:
    """A query: its name, its text, and the settings in force when it was registered.

    ``meaning`` says which results it has: texts and settings that differ in nothing else have the same
    one. ``sink`` says where the results go. ``incarnation`` is new each time a query is registered, and
    stays when a run resumes it.
    """

    name: str
    sql: str
    settings: Mapping[str, str]
    meaning: str = ""
    sink: str = ""
    incarnation: str = ""


@dataclass(frozen=True)
class QueryChange:
    """A query added or dropped while running; in force from a batch on.

    An added query joins a lane, or opens it; ``carried``: it then begins with the rows that were put aside under its name.
    """

    batch: int
    added: DeployedQuery | None = None
    dropped: str | None = None
    dataflow: str = ""
    carried: bool = False


@dataclass(frozen=True)
class QueryPartitioning:
    """Routes of some streams, by stream."""

    routes: tuple[Route, ...]

    def route(self, stream: str) -> Route | None:
        """The route of a stream, if the scheme has one."""
        return next((route for route in self.routes if route.stream == stream), None)


@dataclass(frozen=True)
class Deployment:
    """Streams, tables and queries; ``changes`` in the order in which they come into force.

    ``max_advance`` is that setting in microseconds, None if it is off.
    """

    streams: tuple[Stream, ...]
    tables: Mapping[str, bytes] = field(default_factory=dict)
    queries: tuple[DeployedQuery, ...] = ()
    changes: tuple[QueryChange, ...] = ()
    partitions: int = 2
    max_advance: int | None = Settings().engine.max_advance

    def catalog(self) -> Catalog:
        """What queries can name."""
        catalog = Catalog()
        for stream in self.streams:
            catalog.add(stream)
        for name, schema in self._table_schemas().items():
            catalog.add(Table(name, schema))
        return catalog

    def _table_schemas(self) -> dict[str, pa.Schema]:
        return {
            name: pa.ipc.open_stream(pa.py_buffer(blob)).schema
            for name, blob in self.tables.items()
        }

    def watermark(self, read: Collection[str], newest: Mapping[str, int]) -> Place:
        """How far the total order of some streams is final: the least of newest time minus slack.

        It depends on nothing else, so it is the same in all partitions and after any restart.
        """
        places = []
        for order, stream in enumerate(self.streams):
            if stream.name in read:
                time = newest.get(stream.name, BEFORE_ALL)
                places.append((time - stream.slack if time > BEFORE_ALL else BEFORE_ALL, order))
        return min(places, default=(BEFORE_ALL, -1))

    def epoch(self, batch: int) -> int:
        """How many changes are in force in a batch."""
        return sum(change.batch <= batch for change in self.changes)

    def bind(self, registered: DeployedQuery) -> Query:
        """A registered query with its names resolved."""
        return read_query(registered.sql, registered.name, self.catalog())

    def all_queries(self) -> list[DeployedQuery]:
        """Every query that ever was: schemes are numbered over all of them, so that numbers stay."""
        return [*self.queries, *(change.added for change in self.changes if change.added)]

    def placed(self) -> list[PlacedQuery]:
        """Every query that ever was, bound, and where it runs."""
        lanes = [None for _ in self.queries] + [
            change.dataflow for change in self.changes if change.added
        ]
        schemes: dict[QueryPartitioning, int] = {}
        found = []
        for registered, lane in zip(self.all_queries(), lanes, strict=True):
            query = self.bind(registered)
            how = distribution_of(query)
            scheme = QueryPartitioning(tuple(sorted(how.routes, key=lambda route: route.stream)))
            number = schemes.setdefault(scheme, len(schemes))
            found.append(
                PlacedQuery(
                    registered, query, how, scheme, number, str(number) if lane is None else lane
                )
            )
        return found

    def active(self, epoch: int) -> list[int]:
        """The queries in force, by their places among all that ever were."""
        places = list(range(len(self.queries)))
        every = self.all_queries()
        following = len(places)
        for change in self.changes[:epoch]:
            if change.added:
                places.append(following)
                following += 1
            else:
                places = [place for place in places if every[place].name != change.dropped]
        return places


@dataclass(frozen=True)
class PlacedQuery:
    """A query, bound, with its distribution, its scheme and the number of that, and its lane."""

    registered: DeployedQuery
    query: Query
    distribution: AnyDistribution
    partitioning: QueryPartitioning
    partitioning_number: int
    dataflow: str

    @cached_property
    def parts(self) -> tuple[Query, ...]:
        """What partitions run of it: the query itself, or parts whose changes go to its last stage."""
        return self.distribution.parts(self.query)

    @property
    def streams(self) -> list[str]:
        """The streams it reads."""
        return [route.stream for route in self.distribution.routes]
