"""The program of an engine on Spark: what was declared, in a form that travels to buckets and outlives the process.

A *scheme* is a way to spread streams over buckets; queries with the same one share the rows that are sent, and in each bucket
an engine. Changes made while the engine runs are numbered; the program of an *epoch* has the first so many of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from muntin.model.catalog import Catalog, Stream, Table
from muntin.plan.query import Query
from muntin.planner.distribution import Distribution, Route, distribute
from muntin.sql.script import read_query


@dataclass(frozen=True)
class Registered:
    """A query: its name, its text, and the settings in force when it was registered."""

    name: str
    sql: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Change:
    """A query added or dropped while running; in force from a batch on."""

    batch: int
    added: Registered | None = None
    dropped: str | None = None


@dataclass(frozen=True)
class Scheme:
    """Routes of some streams, by stream."""

    routes: tuple[Route, ...]

    def route(self, stream: str) -> Route | None:
        """The route of a stream, if the scheme has one."""
        return next((route for route in self.routes if route.stream == stream), None)


@dataclass(frozen=True)
class Program:
    """Streams, tables and queries; ``changes`` in the order in which they come into force."""

    streams: tuple[Stream, ...]
    tables: Mapping[str, bytes] = field(default_factory=dict)
    queries: tuple[Registered, ...] = ()
    changes: tuple[Change, ...] = ()
    buckets: int = 2

    def catalog(self) -> Catalog:
        """What queries can name."""
        catalog = Catalog()
        for stream in self.streams:
            catalog.add(stream)
        for name, schema in self._table_schemas().items():
            catalog.add(Table(name, schema))
        return catalog

    def _table_schemas(self) -> dict[str, pa.Schema]:
        return {name: pa.ipc.open_stream(pa.py_buffer(blob)).schema for name, blob in self.tables.items()}

    def epoch(self, batch: int) -> int:
        """How many changes are in force in a batch."""
        return sum(change.batch <= batch for change in self.changes)

    def bind(self, registered: Registered) -> Query:
        """A registered query with its names resolved."""
        return read_query(registered.sql, registered.name, self.catalog())

    def all_queries(self) -> list[Registered]:
        """Every query that ever was: schemes are numbered over all of them, so that numbers stay."""
        return [*self.queries, *(change.added for change in self.changes if change.added)]

    def schemes(self) -> list[Scheme]:
        """All schemes, in the order of the queries that need them."""
        return list(dict.fromkeys(scheme_of(self.bind(query)) for query in self.all_queries()))

    def placed(self) -> list[tuple[Registered, Query, Distribution, int]]:
        """Every query that ever was, bound, with its distribution and the number of its scheme."""
        schemes = self.schemes()
        found = []
        for registered in self.all_queries():
            query = self.bind(registered)
            found.append((registered, query, distribute(query), schemes.index(scheme_of(query))))
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


def scheme_of(query: Query) -> Scheme:
    """The scheme that a query needs."""
    return Scheme(tuple(sorted(distribute(query).routes, key=lambda route: route.stream)))
