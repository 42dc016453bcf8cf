"""The in-process engine: INTERFACE section 2.

Rows that are pushed go to every group of queries that reads their stream (:mod:`muntin.runtime.query_groups`). There they
wait until their place in the total order (time, stream, arrival) is final for the group, then move to its log; every
running query reads the logs on its own. One lock guards all of it; subscribers are called outside.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import count
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.background import Live
from muntin.engine.declarations import Actions, Declarations, run_script
from muntin.engine.delivery import Deliveries
from muntin.engine.explain import describe_query
from muntin.engine.explain_pipeline import describe_running_pipeline
from muntin.engine.fair_lock import Turns
from muntin.engine.input_rows import Rows, read_rows, read_times
from muntin.engine.standing_query import StandingQuery, Subscriber
from muntin.engine.subscription import Subscription
from muntin.engine.table_files import load_table
from muntin.errors import CatalogError, InputError, MuntinError
from muntin.expressions.duck import Duck
from muntin.kernels.jit import prepare, prepare_part
from muntin.model.allowed_paths import AllowedPaths
from muntin.model.arguments import check_name, read_timeout
from muntin.model.catalog import Stream, Table
from muntin.model.clock import BEFORE_ALL, Instant, format_instant, parse_instant
from muntin.model.settings import Settings
from muntin.operators.join.schedule import TurnPace
from muntin.operators.workspace import Workspace
from muntin.plan.description import Description, draw, to_dict
from muntin.plan.query import Emit, Query
from muntin.plan.query_plan import QueryPlan
from muntin.plan.statement import DropStatement
from muntin.runtime.external_quota import Governed
from muntin.runtime.metrics import ResponseTimes
from muntin.runtime.query_group import QueryGroup, Running
from muntin.runtime.query_groups import QueryGroups
from muntin.runtime.running_join import RunningJoin, Shared
from muntin.runtime.running_pipeline import RunningLeaf, RunningPipeline
from muntin.runtime.stalled_stream import Waiting, describe_waiting
from muntin.runtime.stream_clock import StreamState
from muntin.runtime.suspended_query import SuspendedQuery
from muntin.sql.streams import make_stream, make_table, read_slack
from muntin.sql.types import build_schema
from muntin.state.batch import Batch

Value = TypeVar("Value")
AnyQuery: TypeAlias = Running | SuspendedQuery
OnRelease: TypeAlias = Callable[[str, pa.Table], None]
"""Called with the name of a query and results of it, in the middle of the engine's work: it must be quick, and leave the engine alone."""


def _arrived(table: pa.Table, times: npt.NDArray[np.int64], arrival: float) -> Batch:
    """Rows that all came at one moment."""
    return Batch(table, times, np.broadcast_to(np.float64(arrival), len(times)))


def _instant(micros: int) -> str | None:
    return None if micros <= BEFORE_ALL else format_instant(micros)


@dataclass(frozen=True)
class _Member:
    """Where a query runs, since when by the clock, and how many rows had been late for its group before."""

    group: QueryGroup
    since: float
    late_before: int


_log = logging.getLogger("muntin")


class Engine:
    """Continuous queries over streams that this process pushes.

    Parameters
    ----------
    allowed_paths : list of str or Path, optional
        The folders that scripts are confined to: statements that name a path elsewhere are refused. None: scripts may
        read any file that this process may. Give it when you run scripts of others.
    **settings
        Any setting of :class:`muntin.model.settings.Settings`, for example ``expiry="lazy"``.

    Examples
    --------
    >>> import muntin
    >>> engine = muntin.Engine()
    >>> engine.stream("A", {"k": "bigint", "ts": "timestamp"}, time="ts")
    >>> engine.stream("B", {"k": "bigint", "ts": "timestamp"}, time="ts")
    >>> q = engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 MINUTE", name="pairs")
    >>> engine.push("A", [(1, "2026-01-01 00:00:00"), (2, "2026-01-01 00:00:01")])
    >>> engine.push("B", [(2, "2026-01-01 00:00:30")])
    >>> engine.advance("2026-01-01 00:00:30")
    >>> q.poll().column("k").to_pylist()
    [2]
    """

    def __init__(self, *, allowed_paths: object = None, **settings: object) -> None:
        self._declared = Declarations(allowed=AllowedPaths.of(allowed_paths))
        for name, value in settings.items():
            self._declared.set(name, value)
        self._lock = Turns()
        self._deliveries = Deliveries(self._lock)
        self._catalog = self._declared.catalog
        self._tables: dict[str, pa.Table] = {}
        self._queries: dict[str, AnyQuery] = {}
        self._members: dict[str, _Member] = {}
        self._numbers = count(1)
        self._duck = Duck()
        self._groups = QueryGroups(self._duck, self._tables)
        self._live = Live(
            self._lock, self._groups, self._deliveries, self._trim, self._suspend_failed
        )
        self._workspace = Workspace()
        self.clock: int | None = time.time_ns() // 1000
        """The time now, in microseconds since 1970: the log warns of streams that begin decades away from it. None: it does not."""

    @classmethod
    def governed_from_outside(cls) -> Engine:
        """An engine that is told how far time has come and what limited joins may do; all its queries are one group.

        Limited joins do what :meth:`governed` is told, and do not adapt by themselves.
        """
        engine = cls()
        engine._groups.single = True
        return engine

    # -- declarations ------------------------------------------------------------------------------

    def execute(self, script: str) -> list[StandingQuery]:
        """Run the statements of a script in order and return the queries it created.

        A statement that fails raises, and those before it stay in force.
        """
        with self._lock:
            load = lambda table: self._add_table(table, load_table(table, self._declared.allowed))  # noqa: E731 (said where it is used)
            return run_script(
                script,
                self._declared,
                Actions(self._add_stream, load, self._add_query, self._carry_out),
            )

    def _carry_out(self, drop: DropStatement) -> None:
        self._drop(drop.kind, drop.name, if_exists=drop.if_exists)

    def stream(
        self,
        name: str,
        columns: Mapping[str, str] | pa.Schema,
        *,
        time: str | None = None,
        slack: str | int = 0,
    ) -> None:
        """Declare a stream.

        Parameters
        ----------
        name : str
            Its name in queries.
        columns : mapping of str to str, or pyarrow.Schema
            Column names and SQL types.
        time : str, optional
            The column that holds the time; not needed when only one column is a timestamp.
        slack : str or int
            How late rows may come, as an interval (``"2 seconds"``) or in microseconds.
        """
        schema = columns if isinstance(columns, pa.Schema) else build_schema(columns)
        micros = read_slack(name, slack)
        with self._lock:
            self._add_stream(make_stream(name, schema, time, micros))

    def declare(self, stream: Stream) -> None:
        """Declare a stream that is described already."""
        with self._lock:
            self._add_stream(stream)

    def _add_stream(self, stream: Stream) -> None:
        self._groups.declare(self._declared.add_stream(stream), self.clock)

    def table(self, name: str, rows: Rows, columns: Mapping[str, str] | None = None) -> None:
        """Declare a stored table with its rows; ``columns`` gives SQL types where the rows do not carry them."""
        if columns is not None:
            rows = read_rows(rows, build_schema(columns), f"table {name}")
        elif not isinstance(rows, pa.Table):
            try:
                rows = pa.Table.from_pylist(rows) if isinstance(rows, list) else pa.table(rows)
            except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
                raise InputError(
                    f"cannot make table {name} from {type(rows).__name__}",
                    hint="Pass a pyarrow Table, a DataFrame or a list of dicts",
                ) from error
        with self._lock:
            table = make_table(name, rows.schema)
            self._add_table(table, read_rows(rows, table.schema, f"table {name}"))

    def _add_table(self, table: Table, rows: pa.Table) -> None:
        self._declared.add_table(table)
        self._tables[table.name] = rows.combine_chunks()

    def query(self, sql: str, name: str | None = None) -> StandingQuery:
        """Register a standing query, also while rows flow; it answers for rows that come from now on.

        It sees the rows still inside its windows as far as the engine holds them, which is as far as the windows
        of the queries registered before it reach.
        """
        with self._lock:
            return self._add_query(self._declared.read(sql, name))

    def register(self, query: Query, settings: Mapping[str, str]) -> StandingQuery:
        """Register a query that is bound already, under settings of its own; for those who rewrite queries."""
        with self._lock:
            own = self._declared.settings
            for name, value in settings.items():
                own = own.having(name, value)
            return self._add_query(query, own)

    def _add_query(self, query: Query, settings: Settings | None = None) -> StandingQuery:
        """Run a query. One with settings of its own may be told later which rows came before it, so it has no part in others."""
        self._declared.check_query(query)
        own, plan = self._declared.planned(query, settings)
        self._prepare()
        if query.emit is Emit.CHANGES or isinstance(plan, QueryPlan):
            prepare_part("changes")
        if isinstance(plan, QueryPlan):
            prepare_part("pipelines")
        group = self._groups.place(query)
        shared = Shared(
            self._duck,
            self._workspace,
            own,
            self._declared.knowledge(),
            self._deliveries.live,
            self._groups.single,
        )
        try:
            running = group.add(plan, shared, alone=settings is not None)
        except BaseException:
            self._groups.tidy()
            raise
        self._queries[query.name.casefold()] = running
        self._members[query.name.casefold()] = _Member(group, time.monotonic(), group.rows_late())
        self._declared.add_query(query)
        return StandingQuery(self, query.name)

    def _prepare(self) -> None:
        """Make ready for a query that is to be added."""
        prepare()
        self._live.finish()
        # What a new query finds must not depend on how rows were cut into pushes, nor on whether the thread has let go of old ones yet.
        if self._queries or self._deliveries.live:
            self._trim(exactly=bool(self._queries))

    def handle(self, name: str) -> StandingQuery:
        """The handle of a registered query."""
        check_name(name, "the name of a query")
        with self._lock:
            if name.casefold() not in self._queries:
                raise self._declared.unknown_query(name)
            return StandingQuery(self, self._queries[name.casefold()].query.name)

    def rows_held(self) -> int:
        """Rows in the logs of all streams and waiting for their turn."""
        with self._lock:
            return sum(
                max(each.held_after() for each in self._groups.inputs(name))
                for name in self._groups.streams
            )

    def rows_waiting(self) -> dict[str, int]:
        """For each stream how many rows wait for their turn."""
        with self._lock:
            return {
                name: max(each.waiting() for each in self._groups.inputs(name))
                for name in self._groups.streams
            }

    def closed(self) -> int:
        """Return the last instant at which no further row can count for any query."""
        with self._lock:
            return min(
                (group.closed for group in self._groups.active or self._groups), default=BEFORE_ALL
            )

    def oldest_waiting(self) -> int | None:
        """Return the time of the oldest row that is not final yet, or None."""
        with self._lock:
            inputs = [each for group in self._groups for each in group.inputs.values()]
            times = [time for each in inputs if (time := each.oldest_waiting()) is not None]
            return min(times, default=None)

    def oldest_logged(self, stream: str, since: int) -> int | None:
        """Return the time of the oldest row of a stream at or after ``since`` that is held, or None."""
        with self._lock:
            logs = [each.log for each in self._groups.inputs(self._state(stream).stream.name)]
            found = [(log, log.position_after(since - 1)) for log in logs]
            times = [log.time_at(position) for log, position in found if position < log.next]
            return min(times, default=None)

    def snapshot(self) -> tuple[dict[str, pa.Table], dict[str, dict[str, int]]]:
        """The rows that are held of each stream, and for each query how many of them came before it.

        An engine with the same queries that is told so by :meth:`let_come_before` and then fed these rows is as this one is.
        """
        with self._lock:
            inputs = self._groups.all_streams.inputs
            tables = {name: table for name, each in inputs.items() if len(table := each.held())}
            return tables, {
                query.query.name: query.came_before() for query in self._queries.values()
            }

    def let_come_before(self, query: str, counts: Mapping[str, int]) -> None:
        """Let the next so many rows of each stream count as older than a query: no results are made or taken back for them alone."""
        with self._lock:
            self._running(query, lambda running: running.let_come_before(counts))

    def begun(self, query: str) -> int | None:
        """When the first row came that counts in a pipeline, if one has."""
        return self._pipeline(query).begun

    def seen(self, query: str) -> int | None:
        """Return the first instant since a pipeline was registered: of a row of its streams, or of ``advance``."""
        return self._pipeline(query).seen

    def _pipeline(self, query: str) -> RunningPipeline:
        with self._lock:
            running = self._queries[query.casefold()]
            assert isinstance(running, RunningPipeline), "asked of pipelines"
            return running

    def bytes_held(self) -> int:
        """Bytes of the columns in the logs of all streams and of the windows' state in all queries."""
        with self._lock:
            logs = sum(
                each.log.nbytes() for group in self._groups for each in group.inputs.values()
            )
            above = sum(pipeline.nbytes() for group in self._groups for pipeline in group.pipelines)
            return logs + above + sum(join.nbytes() for join in self._joins())

    def drop(self, name: str) -> None:
        """Drop a query; the others notice nothing."""
        with self._lock:
            self._drop("query", name, if_exists=False)

    def _drop(self, kind: str, name: str, *, if_exists: bool) -> None:
        if kind == "query":
            if self._declared.drop_query(name, if_exists=if_exists) is not None:
                self._live.finish()
                running = self._queries.pop(name.casefold())
                if not isinstance(running, SuspendedQuery):
                    self._members.pop(name.casefold()).group.drop(running)
                    self._groups.tidy()
                self._deliveries.forget(name)
                self._trim()
            return
        relation = self._declared.drop_relation(kind, name, if_exists=if_exists)
        if relation is None:
            return
        if kind == "stream":
            self._groups.remove(relation.name)
        self._tables.pop(relation.name, None)

    def _suspend_failed(self) -> None:
        """Suspend the queries that failed: streams, joins and time go on as if they had been dropped."""
        for group in self._groups:
            while failed := group.guard.take():
                for running in failed:
                    # All pipelines above a leaf fail with it.
                    above = [
                        one
                        for one in group.pipelines
                        if running in one.leaves and one.failure is None
                    ]
                    for pipeline in above:
                        pipeline.failure = running.failure
                    for each in above if isinstance(running, RunningLeaf) else [running]:
                        self._suspend(each, group)
        self._groups.tidy()

    def _suspend(self, running: Running, group: QueryGroup) -> None:
        name = running.query.name.casefold()
        suspended = SuspendedQuery(running, self._described(running), self._stats(running))
        self._queries[name] = suspended
        del self._members[name]
        expected = isinstance(running.failure, MuntinError)
        _log.warning("%s", suspended.error, exc_info=None if expected else running.failure)
        group.abandon(running)

    # -- rows and time -----------------------------------------------------------------------------

    def push(self, stream: str, rows: Rows) -> None:
        """Take rows of a stream, all of them or, when one does not fit, none; then process what is final.

        Late rows (older than the watermark) are counted and kept, see :meth:`late`; so are rows further
        ahead of their stream than the setting ``max_advance`` allows.
        """
        arrival = time.monotonic()
        with self._lock:
            state = self._state(stream)
            where = f"stream {state.stream.name}"
            table = read_rows(rows, state.stream.schema, where)
            times = read_times(table, state.stream.time, where)
            if len(times):
                state.last_row = arrival
            limit = self._declared.settings.engine.max_advance
            batch = state.set_aside(_arrived(table, times, arrival), limit, self._groups.advanced)
            for group in self._groups.take(state, batch):
                group.move()
                self._step(group)
            self._suspend_failed()
        self._deliveries.deliver()

    def feed(
        self,
        rows: Mapping[str, pa.Table],
        final: tuple[int, int],
        *,
        arrival: float | None = None,
        on_release: OnRelease | None = None,
        silent: bool = False,
    ) -> dict[str, pa.Table]:
        """Take rows of several streams at once and process all up to ``final``; for those who watch the streams themselves.

        ``final`` is a place in the total order, (time, order of declaration of a stream): nothing up to there will come any
        more. Returns the late rows of each stream, which are not kept. ``arrival`` is when the rows came, by ``time.monotonic``, if
        not now. ``on_release`` gets results as soon as they are made. ``silent``: their results are known, so none are made.
        """
        arrival = time.monotonic() if arrival is None else arrival
        with self._lock:
            late = {}
            for name, table in rows.items():
                state = self._state(name)
                times = read_times(table, state.stream.time, f"stream {state.stream.name}")
                late[name] = self._groups.take_final(state, _arrived(table, times, arrival))
            self._groups.move(final)
            for group in self._groups:
                self._step(group, on_release, silent=silent)
            self._suspend_failed()
        self._deliveries.deliver()
        return late

    def positions(self) -> dict[str, int]:
        """For each stream how many rows of it have come that were not late: the position of the next one, if it is the newest."""
        with self._lock:
            return {name: each.accepted for name, each in self._groups.all_streams.inputs.items()}

    def begin_at(self, positions: Mapping[str, int]) -> None:
        """Count the rows of streams from these positions on; for new engines only."""
        with self._lock:
            for name, position in positions.items():
                self._groups.all_streams.inputs[name].log.next = position

    def held(self, stream: str) -> pa.Table:
        """The rows of a stream that the windows of queries reach or that wait, in order."""
        with self._lock:
            self._trim(exactly=True)
            return self._groups.all_streams.inputs[stream].held()

    def restore(self, rows: Mapping[str, pa.Table], final: tuple[int, int], advanced: int) -> None:
        """Begin where another engine is: with rows that it holds, for the query that is registered next; for new engines only."""
        with self._lock:
            for name, table in rows.items():
                state = self._state(name)
                times = read_times(table, state.stream.time, f"stream {state.stream.name}")
                self._groups.take_final(state, _arrived(table, times, 0.0))
            self._groups.advance(advanced)
            self._groups.move(final)

    def advance(
        self, to: Instant, *, on_release: OnRelease | None = None, silent: bool = False
    ) -> None:
        """Promise that nothing earlier will come on any stream; processes all up to there, that instant included.

        ``on_release`` gets results as soon as they are made. ``silent``: the results are known, so none are made.
        """
        instant = parse_instant(to)
        with self._lock:
            self._groups.advance(instant)
            for group in self._groups:
                group.move()
                self._step(group, on_release, silent=silent)
            self._suspend_failed()
        self._deliveries.deliver()

    def _step(
        self, group: QueryGroup, on_release: OnRelease | None = None, *, silent: bool = False
    ) -> None:
        """Let the queries of a group process what is final, and let go of what none needs any more."""
        live = self._live.offer(group)
        if not live:
            for running, table in group.step_joins(
                TurnPace() if on_release is not None else None, silent=silent
            ):
                if on_release is not None:
                    on_release(running.query.name, table)
                self._deliveries.hand(running.query.name, table)
        for pipeline, table in group.step_pipelines(silent=silent and not live):
            self._deliveries.hand(pipeline.query.name, table)
        if not live:
            group.trim()
        elif group.guard.failed:
            self._live.finish()

    # -- running by itself ---------------------------------------------------------------------------

    def start(self) -> None:
        """Run by itself: from now on ``push`` only takes rows, and a thread joins them and calls subscribers.

        Work is cut into turns of about a millisecond, so rows are scheduled as they come, and the queries that share a join get
        their results in the order of the setting ``scheduler``: those with small windows need not wait for those with large ones.
        Results of a query with subscribers go to them and are not kept for ``poll``; a subscriber has a thread of its own.

        Examples
        --------
        >>> import muntin
        >>> engine = muntin.Engine()
        >>> engine.stream("A", {"k": "bigint", "ts": "timestamp"}, time="ts")
        >>> q = engine.query("SELECT k FROM A WINDOW 1 MINUTE")
        >>> found = []
        >>> subscription = q.subscribe(found.append)
        >>> engine.start()
        >>> engine.push("A", [(1, "2026-01-01")])
        >>> engine.stop()
        >>> [batch.num_rows for batch in found]
        [1]
        """
        with self._lock:
            prepare()
            self._live.start()
            self._choose_keepers()

    def stop(self, timeout: float = 60.0) -> None:
        """Finish what there is to do, wait for subscribers at most so many seconds, and run by itself no more; nothing if it does not."""
        wait = read_timeout(timeout)
        if self._live.stop(threading.TIMEOUT_MAX if wait is None else wait):
            with self._lock:
                self._choose_keepers()

    def settle(self, timeout: float | None = None) -> bool:
        """Wait, while it runs by itself, until all that was pushed is processed and subscribers were called; whether that is so now."""
        return self._live.settle(read_timeout(timeout))

    def _choose_keepers(self) -> None:
        """Results are kept for poll unless somebody is called with them live."""
        for running in self._queries.values():
            running.keeps = not (self._deliveries.live and self._deliveries.of(running.query.name))

    def _trim(self, *, exactly: bool = False) -> None:
        """Let go of rows that no window reaches any more: sooner or later, or ``exactly`` now."""
        self._groups.trim(exactly=exactly)

    def _joins(self) -> list[RunningJoin]:
        return [join for group in self._groups for join in group.joins.running]

    # -- looking -----------------------------------------------------------------------------------

    def late(self, stream: str) -> pa.Table:
        """All rows of a stream so far that came too late, or were too far ahead."""
        with self._lock:
            return self._state(stream).late()

    def explain(self, query: str | None = None) -> str:
        """The plans of all queries, or of one, as trees for people; after a run with what was measured."""
        with self._lock:
            return (
                "\n\n".join(draw(self._described(running)) for running in self._chosen(query))
                or "no queries"
            )

    def plans(self, query: str | None = None) -> list[dict[str, object]]:
        """What :meth:`explain` tells, for machines: a dict for each query, with numbers as numbers, ready for JSON."""
        with self._lock:
            return [to_dict(self._described(running)) for running in self._chosen(query)]

    def _described(self, running: AnyQuery) -> Description:
        """The plan of a query, and the stream it waits for; where it is the only one, there is nothing to say about sharing."""
        if isinstance(running, SuspendedQuery):
            return running.described
        joins = self._members[running.query.name.casefold()].group.joins
        if isinstance(running, RunningPipeline):
            node = describe_running_pipeline(running, joins.why)
        else:
            node = describe_query(running, joins.why(running) if len(self._queries) > 1 else "")
        waiting = self._waiting(running)
        return (
            node
            if waiting is None
            else replace(node, children=(*node.children, describe_waiting(waiting)))
        )

    def _waiting(self, running: Running) -> Waiting | None:
        """The stream that a query waits for, and since when."""
        member = self._members[running.query.name.casefold()]
        stream = member.group.waits_for()
        if stream is None:
            return None
        since = member.since if stream.last_row is None else stream.last_row
        return Waiting(stream.stream.name, stream.newest, time.monotonic() - since)

    def _chosen(self, query: str | None) -> list[AnyQuery]:
        """One query, or all."""
        return (
            list(self._queries.values())
            if query is None
            else [self._running(query, lambda running: running)]
        )

    def stats(self) -> dict[str, object]:
        """Counts of all streams and queries, and how far time has come."""
        with self._lock:
            return {
                "watermark": _instant(self._groups.frontier()[0]),
                "streams": {
                    name: self._stream_stats(state) for name, state in self._groups.streams.items()
                },
                "queries": {
                    running.query.name: self._stats(running) for running in self._queries.values()
                },
            }

    def take_measures(self) -> dict[str, tuple[ResponseTimes, dict[str, int]]]:
        """For each query its response times since the last call, and its buffers; for those who add up response times themselves."""
        with self._lock:
            return {
                running.query.name: (running.take_response_times(), running.buffers())
                for running in self._queries.values()
            }

    def _stream_stats(self, state: StreamState) -> dict[str, int]:
        """Counts of a stream; of the rows that several groups hold, those of the group that holds the most."""
        inputs = self._groups.inputs(state.stream.name)
        return {
            "rows_in": state.rows_in,
            "rows_late": state.rows_late,
            "rows_ahead": state.rows_ahead,
            "rows_waiting": max(each.waiting() for each in inputs),
            "rows_logged": max(each.log.held() for each in inputs),
            "log_bytes": max(each.log.nbytes() for each in inputs),
        }

    def _stats(self, running: AnyQuery) -> dict[str, object]:
        """What a query counts, how far time has come for it, why it is suspended if it is, and its subscribers."""
        subscribers = [each.stats() for each in self._deliveries.of(running.query.name)]
        if isinstance(running, SuspendedQuery):
            return {**running.stats(), "subscribers": subscribers}
        member, waiting = self._members[running.query.name.casefold()], self._waiting(running)
        return {
            **running.stats(),
            "watermark": _instant(member.group.frontier[0]),
            "waiting_for": None if waiting is None else waiting.to_dict(),
            "rows_late": member.group.rows_late() - member.late_before,
            "suspended": None,
            "subscribers": subscribers,
        }

    def state_rows(self) -> dict[str, int]:
        """For each stream, the most of its rows that a query holds inside a window."""
        with self._lock:
            rows = dict.fromkeys(self._groups.streams, 0)
            for join in self._joins():
                held = join.state_rows()
                for source in join.query.sources:
                    if not source.stored:
                        rows[source.relation] = max(rows[source.relation], held[source.alias])
            return rows

    def suspended(self) -> dict[str, str]:
        """Return the queries that are suspended, and why."""
        with self._lock:
            return {
                one.query.name: one.reason
                for one in self._queries.values()
                if isinstance(one, SuspendedQuery)
            }

    def governed(self) -> dict[str, Governed]:
        """The limited joins that are governed from outside, by the names of their queries."""
        with self._lock:
            joins = {join.query.name: join.overload for join in self._joins()}
            return {
                name: overload for name, overload in joins.items() if isinstance(overload, Governed)
            }

    def queries(self) -> list[StandingQuery]:
        """The standing queries in the order they were registered."""
        with self._lock:
            return [StandingQuery(self, running.query.name) for running in self._queries.values()]

    # -- for handles -------------------------------------------------------------------------------

    def _state(self, stream: str) -> StreamState:
        check_name(stream, "the name of a stream")
        relation = self._catalog.find(stream)
        if isinstance(relation, Stream):
            return self._groups.streams[relation.name]
        streams = list(self._groups.streams)
        near = get_close_matches(stream, streams, 1)
        hint = (
            f"Did you mean {near[0]!r}?"
            if near
            else f"There are {', '.join(streams) or 'no streams yet'}"
        )
        raise CatalogError(f"there is no stream {stream!r}", hint=hint)

    def _running(self, name: str, use: Callable[[AnyQuery], Value]) -> Value:
        check_name(name, "the name of a query")
        with self._lock:
            running = self._queries.get(name.casefold())
            if running is None:
                raise self._declared.unknown_query(name)
            return use(running)

    def _poll(self, name: str) -> pa.Table:
        """Take the results of a query; after an interrupt they are still there for the next call."""
        taken: list[pa.Table] = []
        try:
            self._running(name, lambda running: taken.append(running.poll()))
            return taken[0]
        except KeyboardInterrupt:
            if taken and len(taken[0]):
                self._running(name, lambda running: running.put_back(taken[0]))
            raise

    def _subscribe(self, name: str, callback: Subscriber, buffer: int) -> Subscription:
        with self._lock:
            self._running(name, lambda _: None)
            subscription = self._deliveries.subscribe(name, callback, buffer)
            self._choose_keepers()
            return subscription
