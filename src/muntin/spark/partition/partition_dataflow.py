"""A dataflow in one partition: the queries that read the same streams, partitioned the same way."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

import pyarrow as pa

from muntin.engine.declaration_checks import SINK_OPTIONS
from muntin.errors import MuntinError, QuerySuspendedError
from muntin.model.catalog import Catalog, Stream
from muntin.model.settings import Settings
from muntin.model.statistics import known_statistics
from muntin.operators.join.schedule import TurnPace
from muntin.planner.draft import Knowledge
from muntin.planner.partitioning import OWN, marked
from muntin.runtime.dataflow import Dataflow, Frontier
from muntin.runtime.holdings import table_held
from muntin.runtime.planned_query import PlannedQuery, plan_checked
from muntin.runtime.query_group import Output, reason_of
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.runtime.snapshot import GroupSnapshot, QuerySnapshot, Snapshot
from muntin.spark.exchange.deployment import Deployment, Place, PlacedQuery
from muntin.spark.exchange.messages import from_blob
from muntin.state.batch import Batch, batch_of, times_of

_log = logging.getLogger("muntin")


class PartitionDataflow:
    """Drives a dataflow with the rows of one partitioning.

    ``final`` is the place up to which all is final for its queries, ``floor`` that place before the
    batch that is applied. Streams in ``broadcast`` come in full to every partition; each of their
    rows is marked in the partition that owns it.
    """

    def __init__(
        self,
        placed: PlacedQuery,
        deployment: Deployment,
        final: Place,
        positions: Mapping[str, int],
    ) -> None:
        self.name = placed.dataflow
        self.partitioning = placed.partitioning_number
        self.streams = frozenset(placed.streams)
        routes = placed.partitioning.routes
        self.broadcast = frozenset(route.stream for route in routes if route.everywhere)
        self.final = self.floor = final
        self.dataflow = Dataflow(partition=True)
        self.settings: dict[str, Settings] = {}
        """The settings of its queries."""
        self.suspended: dict[str, str] = {}
        """The parts of queries that failed, and the reasons."""
        catalog = Catalog()
        for stream in deployment.streams:
            added = catalog.add(_as_sent(stream, self.broadcast))
            assert isinstance(added, Stream), "a stream was added"
            self.dataflow.declare(added, position=positions.get(stream.name, 0))
        self._known = Knowledge(declared=known_statistics(catalog))

    # -- queries -----------------------------------------------------------------------------------

    def add(self, placed: PlacedQuery, deployment: Deployment) -> list[Output]:
        """Run the parts of a query, or none if one cannot be; return their initial results."""
        tables, known = self.dataflow.tables, self.dataflow.queries.keys()
        for source in placed.query.sources:
            if source.stored and source.relation not in tables:
                tables[source.relation] = from_blob(deployment.tables[source.relation])
        initial: list[Output] = []
        given = Settings.of(**placed.registered.settings)
        self.settings[placed.query.name] = given.of_query(placed.query.options, SINK_OPTIONS)
        try:
            for part in placed.parts:
                own = given.of_query(part.options, SINK_OPTIONS)
                plan = plan_checked(part, own, self._known)
                tables_of = self.dataflow.add(
                    PlannedQuery(part, plan, own, self._known, cohort=None)
                )
                initial += [(part.name, table) for table in tables_of]
        except Exception:
            for part in placed.parts:
                if part.name in known:
                    self.dataflow.drop(part.name)
            raise
        return initial

    def drop(self, placed: PlacedQuery) -> None:
        """End the parts of a query that run."""
        for part in placed.parts:
            if self.suspended.pop(part.name, None) is None and part.name in self.dataflow.queries:
                self.dataflow.drop(part.name)

    def is_empty(self) -> bool:
        """Return whether it has no query, running or suspended."""
        return not (self.dataflow.queries or self.suspended)

    def _suspend_failed(self) -> None:
        while failed := self.dataflow.take_failed():
            for running in failed:
                failure = running.failure
                assert failure is not None, "it failed"
                name, reason = running.query.name, reason_of(failure)
                self.suspended[name] = reason
                expected = isinstance(failure, MuntinError)
                error = QuerySuspendedError(name, reason)
                _log.warning("%s", error, exc_info=None if expected else failure)
                self.dataflow.drop(name)

    def pipeline(self, part: str) -> RunningPipeline:
        """Return a part of a query that goes through a global stage."""
        running = self.dataflow.queries[part]
        assert isinstance(running, RunningPipeline), "global stages are above pipelines"
        return running

    # -- rows and time -----------------------------------------------------------------------------

    def step(
        self,
        rows: Mapping[str, pa.Table],
        moment: int | None,
        arrival: float,
        pace: TurnPace | None = None,
    ) -> Iterator[Output]:
        """Process rows up to ``final``, then all up to a moment; yield results."""
        batches = self._batches(rows, arrival)
        yield from self.dataflow.step(batches, Frontier(final=self.final), pace)
        if moment is not None:
            yield from self.dataflow.step(frontier=Frontier(advanced=moment), pace=pace)
        self._suspend_failed()

    def late(self) -> dict[str, pa.Table]:
        """Return the late rows of each stream since the last call."""
        return {name: state.take_late() for name, state in self.dataflow.streams.items()}

    def replay(self, rows: Mapping[str, pa.Table], moment: int | None) -> None:
        """Process rows whose results are known."""
        self.dataflow.replay(self._batches(rows, 0.0), Frontier(final=self.final))
        if moment is not None:
            self.dataflow.replay({}, Frontier(advanced=moment))
        self._suspend_failed()

    def fill(self, rows: Mapping[str, pa.Table], moment: int) -> None:
        """Begin with rows that other dataflows hold, for the query that is added next."""
        self.dataflow.fill(self._batches(rows, 0.0), Frontier(final=self.final, advanced=moment))

    def restore(
        self,
        rows: Mapping[str, pa.Table],
        queries: Mapping[str, QuerySnapshot],
        moment: int,
        *,
        emit: bool = False,
    ) -> list[Output]:
        """Continue from the rows of a snapshot; its queries run, and no row has come yet.

        With ``emit``, return results that add up to those that the queries have had so far.
        """
        group = GroupSnapshot(rows, self.final, moment)
        outputs = self.dataflow.restore(Snapshot((group,), queries), emit=emit)
        self._suspend_failed()
        return outputs

    def _batches(self, rows: Mapping[str, pa.Table], arrival: float) -> dict[str, Batch]:
        streams = self.dataflow.streams
        return {
            name: batch_of(table, times_of(table, streams[name].stream.time), arrival)
            for name, table in rows.items()
        }

    # -- rows that it owns -------------------------------------------------------------------------

    def held(self, stream: str) -> pa.Table:
        """Return the rows of a stream that windows reach or that wait, and that it owns."""
        return self.owned(stream, table_held(self.dataflow, stream))

    def owned(self, stream: str, rows: pa.Table) -> pa.Table:
        """Return the rows that this partition owns: over all partitions every row counts once."""
        if stream not in self.broadcast:
            return rows
        return rows.filter(rows.column(OWN)).drop_columns([OWN])


def _as_sent(stream: Stream, broadcast: frozenset[str]) -> Stream:
    if stream.name not in broadcast:
        return stream
    return Stream(stream.name, marked(stream.schema), stream.time, stream.slack, stream.options)
