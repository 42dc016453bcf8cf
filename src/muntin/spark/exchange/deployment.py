"""The deployment of an engine on Spark: everything declared, in a form that survives the process.

Partitions and packing tasks compute from a deployment alone, so all of them decide alike. A
*partitioning* spreads streams over partitions; queries with equal partitionings share the rows that
are sent. A *dataflow* runs the queries of one partitioning inside a partition; usually there is one
per partitioning.

Invariant: changes made while the engine runs are only appended, each with the batch from which it
is in force. *Epoch* n is the deployment with its first n changes. A batch that runs again after a
failure therefore has the epoch it had the first time, and the numbers of partitionings never move.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import TypeAlias

import pyarrow as pa

from muntin.model.catalog import Catalog, Stream, Table
from muntin.model.clock import BEFORE_ALL
from muntin.model.functions import FunctionSignature
from muntin.model.settings import Settings
from muntin.plan.query import Emit, Query
from muntin.planner.distribution import Distribution, distribution_of
from muntin.planner.partitioning import Partitioning
from muntin.spark.exchange.merge_results import inserts
from muntin.sql.script import read_query

Place: TypeAlias = tuple[int, int]
"""A place in the total order of all rows: time, then the position of the stream's declaration."""


@dataclass(frozen=True)
class DeployedQuery:
    """A query: its name, its text, and the settings in force when it was registered.

    ``meaning`` identifies its results: it is equal for texts and settings that give equal results.
    ``sink`` names the destination of the results. ``incarnation`` is new each time a query is
    registered and stays the same when a run resumes it.
    """

    name: str
    sql: str
    settings: Mapping[str, str]
    meaning: str = ""
    sink: str = ""
    incarnation: str = ""


@dataclass(frozen=True)
class QueryChange:
    """A query added or dropped while the engine runs; in force from ``batch`` on.

    An added query joins ``dataflow`` or opens it. With ``carried``, the dataflow starts with the
    rows that were set aside under its name.
    """

    batch: int
    added: DeployedQuery | None = None
    dropped: str | None = None
    dataflow: str = ""
    carried: bool = False


@dataclass(frozen=True)
class QueryPartitioning:
    """How the streams of a query are spread over the partitions, one entry per stream."""

    routes: tuple[Partitioning, ...]

    def route(self, stream: str) -> Partitioning | None:
        """Return the entry of a stream; None if no query of this partitioning reads it."""
        return next((route for route in self.routes if route.stream == stream), None)


@dataclass(frozen=True)
class Deployment:
    """Streams, tables and queries, with ``changes`` in the order in which they come into force.

    ``max_advance`` is the setting of that name in microseconds; None turns it off. Of the
    ``functions`` that queries call it has the declarations only, under the keys of this run.
    """

    streams: tuple[Stream, ...]
    tables: Mapping[str, bytes] = field(default_factory=dict)
    queries: tuple[DeployedQuery, ...] = ()
    changes: tuple[QueryChange, ...] = ()
    partitions: int = 2
    max_advance: int | None = Settings().engine.max_advance
    functions: tuple[FunctionSignature, ...] = ()

    def catalog(self) -> Catalog:
        """Return the streams and tables that queries can name."""
        catalog = Catalog({each.name.casefold(): each for each in self.functions})
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
        """Return the place up to which the order of some streams is final.

        It is the least newest time minus slack. It depends on nothing else, so it is the same in
        all partitions and after any restart.
        """
        places = []
        for order, stream in enumerate(self.streams):
            if stream.name in read:
                time = newest.get(stream.name, BEFORE_ALL)
                places.append((time - stream.slack if time > BEFORE_ALL else BEFORE_ALL, order))
        return min(places, default=(BEFORE_ALL, -1))

    def epoch(self, batch: int) -> int:
        """Return the number of changes in force in a batch."""
        return sum(change.batch <= batch for change in self.changes)

    def bind(self, deployed: DeployedQuery) -> Query:
        """Return a deployed query with its names resolved."""
        return read_query(deployed.sql, deployed.name, self.catalog())

    def all_queries(self) -> list[DeployedQuery]:
        """Return every query ever deployed: positions in this list and partitionings are stable."""
        return [*self.queries, *(change.added for change in self.changes if change.added)]

    def placed(self) -> list[PlacedQuery]:
        """Return every query ever deployed, bound, with its partitioning and its dataflow."""
        dataflows = [None for _ in self.queries] + [
            change.dataflow for change in self.changes if change.added
        ]
        every = list(zip(self.all_queries(), dataflows, strict=True))
        found = self._placed_before(every)
        numbers = {placed.partitioning: placed.partitioning_number for placed in found}
        for deployed, dataflow in every[len(found) :]:
            query = self.bind(deployed)
            distribution = distribution_of(query)
            partitioning = QueryPartitioning(
                tuple(sorted(distribution.routes, key=lambda route: route.stream))
            )
            number = numbers.setdefault(partitioning, len(numbers))
            found.append(
                PlacedQuery(
                    deployed,
                    query,
                    distribution,
                    partitioning,
                    number,
                    str(number) if dataflow is None else dataflow,
                )
            )
        _placed.append((self, tuple(found)))
        return found

    def _placed_before(
        self, every: Sequence[tuple[DeployedQuery, str | None]]
    ) -> list[PlacedQuery]:
        """Return the first queries as another version of this deployment has placed them.

        Binding is slow, and a version has all queries of the one before: without this, a change
        would cost as much as there were changes before it.
        """
        longest: list[PlacedQuery] = []
        for other, known in list(_placed):
            if (other.streams, other.tables, other.functions) != (
                self.streams,
                self.tables,
                self.functions,
            ):
                continue
            same = list(
                takewhile(
                    lambda pair: pair[0].is_placement_of(*pair[1]), zip(known, every, strict=False)
                )
            )
            if len(same) > len(longest):
                longest = [placed for placed, _ in same]
        return longest

    def active(self, epoch: int) -> list[int]:
        """Return the queries in force in an epoch, by position in :meth:`all_queries`."""
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

    def in_force(self) -> list[DeployedQuery]:
        """Return the queries in force after all changes."""
        every = self.all_queries()
        return [every[place] for place in self.active(len(self.changes))]


@dataclass(frozen=True)
class PlacedQuery:
    """A bound query with its distribution, partitioning and its number, and dataflow."""

    registered: DeployedQuery
    query: Query
    distribution: Distribution
    partitioning: QueryPartitioning
    partitioning_number: int
    dataflow: str

    def is_placement_of(self, deployed: DeployedQuery, dataflow: str | None) -> bool:
        """Return whether this is a query in a dataflow; None is that of its partitioning."""
        own = str(self.partitioning_number) if dataflow is None else dataflow
        return self.dataflow == own and self.registered == deployed

    @cached_property
    def parts(self) -> tuple[Query, ...]:
        """Return what partitions run: the query, or the parts that feed its global stage."""
        return self.distribution.parts

    @property
    def is_final(self) -> bool:
        """True if what a partition returns is a part of the results as it is.

        Otherwise there is a global stage, or changes may cancel out across partitions.
        """
        changes = self.query.emit is Emit.CHANGES or self._gathers
        return self.distribution.last is None and (self.distribution.apart or not changes)

    @property
    def _gathers(self) -> bool:
        """True if partitions compute changes of which the query wants only inserts."""
        return self.query.emit is Emit.INSERTS and not self.query.is_join

    def shown(self, results: pa.Table) -> pa.Table:
        """Return what the query wants of final results."""
        return inserts(results, only=self._gathers)

    @property
    def streams(self) -> list[str]:
        """Return the streams it reads."""
        return [route.stream for route in self.distribution.routes]


_placed: deque[tuple[Deployment, tuple[PlacedQuery, ...]]] = deque(maxlen=4)
"""The deployments whose queries this process placed last."""
