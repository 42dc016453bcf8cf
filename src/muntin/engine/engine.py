"""The in-process engine: INTERFACE section 2.

Rows that are pushed wait in their stream's inbox until their place in the total order (time, stream,
arrival) is final, then move to the stream's log; every running query reads the logs on its own. One lock
guards all of it; subscribers are called outside.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from itertools import count
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.declarations import Actions, Declarations, run_script
from muntin.engine.deliveries import Deliveries
from muntin.engine.explain import describe_query
from muntin.engine.explain_pipeline import describe_running_pipeline
from muntin.engine.governed import Governed
from muntin.engine.input_rows import Rows, read_rows, read_times
from muntin.engine.joins import Joins
from muntin.engine.live import Live
from muntin.engine.measures import ResponseTimes
from muntin.engine.plan_tree import Node, draw, to_dict
from muntin.engine.running_join import RunningJoin, Shared
from muntin.engine.running_pipeline import RunningLeaf, RunningPipeline
from muntin.engine.running_query import RunningQuery
from muntin.engine.standing_query import StandingQuery, Subscriber
from muntin.engine.stream_state import StreamState, least_watermark
from muntin.engine.subplans import SubPlans
from muntin.engine.subscription import Subscription
from muntin.engine.table_files import load_table
from muntin.engine.turns import Turns
from muntin.errors import CatalogError, InputError
from muntin.expressions.duck import Duck
from muntin.kernels.compiling import prepare, prepare_part
from muntin.model.catalog import Stream, Table
from muntin.model.clock import AFTER_ALL, BEFORE_ALL, Instant, format_instant, parse_instant, parse_interval
from muntin.model.settings import Settings
from muntin.operators.pipeline import Drive
from muntin.operators.scheduled_join import Pace
from muntin.operators.workspace import Workspace
from muntin.plan.join import JoinPlan
from muntin.plan.pipeline import Pipeline
from muntin.plan.query import Emit, Query
from muntin.plan.statement import Drop
from muntin.planner.strategies import drive_strategy
from muntin.sql.streams import make_stream, make_table
from muntin.sql.types import build_schema
from muntin.state.batch import Batch

Value = TypeVar("Value")
OnRelease: TypeAlias = Callable[[str, pa.Table], None]
"""Called with the name of a query and results of it, in the middle of the engine's work: it must be quick, and leave the engine alone."""


def _read_slack(stream: str, slack: object) -> int:
    """The slack in microseconds, from an interval or a number of them."""
    if isinstance(slack, str):
        return parse_interval(slack)
    if isinstance(slack, bool) or not isinstance(slack, int) or slack >= AFTER_ALL:
        raise InputError(f"the slack of stream {stream} cannot be {slack!r}", hint="Give an interval such as '2 seconds', or microseconds")
    return slack


def _kept_positions(keepers: list[tuple[RunningJoin, int]]) -> npt.NDArray[np.int64]:
    """The positions that partitioned windows keep."""
    return np.concatenate([join.kept(source) for join, source in keepers])


_EVERY_STREAM = 1 << 62


class Engine:
    """Continuous queries over streams that this process pushes.

    Parameters
    ----------
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

    def __init__(self, **settings: object) -> None:
        self._declared = Declarations()
        for name, value in settings.items():
            self._declared.set(name, value)
        self._lock = Turns()
        self._deliveries = Deliveries(self._lock)
        self._catalog = self._declared.catalog
        self._streams: dict[str, StreamState] = {}
        self._tables: dict[str, pa.Table] = {}
        self._queries: dict[str, RunningQuery | RunningPipeline] = {}
        self._numbers = count(1)
        self._duck = Duck()
        self._joins = Joins(self._duck)
        self._subplans = SubPlans()
        self._turns = count()
        self._live = Live(self._lock, self._joins, self._deliveries, self._trim)
        self._workspace = Workspace()
        self._final = (BEFORE_ALL, -1)
        self._frontier = self._final
        self._advanced = BEFORE_ALL
        self._is_governed = False

    @classmethod
    def governed_from_outside(cls) -> Engine:
        """An engine whose limited joins do what :meth:`governed` is told, and do not adapt by themselves."""
        engine = cls()
        engine._is_governed = True
        return engine

    # -- declarations ------------------------------------------------------------------------------

    def execute(self, script: str) -> list[StandingQuery]:
        """Run the statements of a script in order and return the queries it created.

        A statement that fails raises, and those before it stay in force.
        """
        with self._lock:
            load = lambda table: self._add_table(table, load_table(table))  # noqa: E731 (said where it is used)
            return run_script(script, self._declared, Actions(self._add_stream, load, self._add_query, self._carry_out))

    def _carry_out(self, drop: Drop) -> None:
        self._drop(drop.kind, drop.name, if_exists=drop.if_exists)

    def stream(self, name: str, columns: Mapping[str, str] | pa.Schema, *, time: str | None = None, slack: str | int = 0) -> None:
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
        micros = _read_slack(name, slack)
        with self._lock:
            self._add_stream(make_stream(name, schema, time, micros))

    def declare(self, stream: Stream) -> None:
        """Declare a stream that is described already."""
        with self._lock:
            self._add_stream(stream)

    def _add_stream(self, stream: Stream) -> None:
        added = self._declared.add_stream(stream)
        self._streams[added.name] = StreamState(added)

    def table(self, name: str, rows: Rows, columns: Mapping[str, str] | None = None) -> None:
        """Declare a stored table with its rows; ``columns`` gives SQL types where the rows do not carry them."""
        if columns is not None:
            rows = read_rows(rows, build_schema(columns), f"table {name}")
        elif not isinstance(rows, pa.Table):
            try:
                rows = pa.Table.from_pylist(rows) if isinstance(rows, list) else pa.table(rows)
            except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
                raise InputError(
                    f"cannot make table {name} from {type(rows).__name__}", hint="Pass a pyarrow Table, a DataFrame or a list of dicts"
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
        running: RunningQuery | RunningPipeline
        if isinstance(query, Pipeline):
            running = self._run_pipeline(query, settings)
        else:
            own, plan = self._declared.planned(query, settings)
            self._prepare()
            if query.emit is Emit.CHANGES:
                prepare_part("changes")
            running = self._joins.add(query, own, partial(self._make_join, plan, own), RunningQuery)
        self._queries[query.name.casefold()] = running
        self._declared.add_query(query)
        return StandingQuery(self, query.name)

    def _prepare(self) -> None:
        """Make ready for a query that is to be added."""
        prepare()
        self._live.finish()
        # What a new query finds must not depend on how rows were cut into pushes, nor on whether the thread has let go of old ones yet.
        if self._queries or self._deliveries.live:
            self._trim(exactly=bool(self._queries))

    def _make_join(self, plan: JoinPlan, settings: Settings) -> RunningJoin:
        streams = {source.relation: self._streams[source.relation] for source in plan.query.sources if not source.stored}
        shared = Shared(self._duck, self._workspace, settings, self._declared.knowledge(), self._deliveries.live, self._is_governed)
        join = RunningJoin(plan, list(streams.values()), self._tables, shared)
        join.begin(self._frontier[0])
        return join

    def _run_pipeline(self, query: Pipeline, settings: Settings | None) -> RunningPipeline:
        """Run a pipeline over its leaves."""
        own, plan = self._declared.planned_pipeline(query, settings)
        self._prepare()
        prepare_part("changes")
        prepare_part("pipelines")
        leaves, alone = [], settings is not None
        for leaf in plan.leaves:
            make = partial(self._joins.add, leaf.query, own, partial(self._make_join, leaf, own), RunningLeaf)
            leaves.append(self._subplans.leaf(leaf.query, own, make, alone=alone))
        steps = None if alone else self._subplans.steps
        return RunningPipeline(query, leaves, self._tables, self._duck, Drive(drive_strategy(own), steps, leaves))

    def handle(self, name: str) -> StandingQuery:
        """The handle of a registered query."""
        with self._lock:
            if name.casefold() not in self._queries:
                raise self._declared.unknown_query(name)
            return StandingQuery(self, self._queries[name.casefold()].query.name)

    def rows_held(self) -> int:
        """Rows in the logs of all streams and waiting for their turn."""
        with self._lock:
            counts = [state.stats() for state in self._streams.values()]
            return sum(count["rows_waiting"] + count["rows_logged"] for count in counts)

    def snapshot(self) -> tuple[dict[str, pa.Table], dict[str, dict[str, int]]]:
        """The rows that are held of each stream, and for each query how many of them came before it.

        An engine with the same queries that is told so by :meth:`let_come_before` and then fed these rows is as this one is.
        """
        with self._lock:
            tables = {name: table for name, state in self._streams.items() if len(table := state.held())}
            return tables, {query.query.name: query.came_before() for query in self._queries.values()}

    def let_come_before(self, query: str, counts: Mapping[str, int]) -> None:
        """Let the next so many rows of each stream count as older than a query: no results are made or taken back for them alone."""
        with self._lock:
            self._running(query, lambda running: running.let_come_before(counts))

    def begun(self, query: str) -> int | None:
        """When the first row came that counts in a pipeline, if one has."""
        with self._lock:
            running = self._queries[query.casefold()]
            assert isinstance(running, RunningPipeline), "asked of pipelines"
            return running.begun

    def bytes_held(self) -> int:
        """Bytes of the columns in the logs of all streams and of the windows' state in all queries."""
        with self._lock:
            logs = sum(state.log.nbytes() for state in self._streams.values())
            above = sum(pipeline.nbytes() for pipeline in self._queries.values() if isinstance(pipeline, RunningPipeline))
            return logs + above + sum(join.nbytes() for join in self._joins.running)

    def drop(self, name: str) -> None:
        """Drop a query; the others notice nothing."""
        with self._lock:
            self._drop("query", name, if_exists=False)

    def _drop(self, kind: str, name: str, *, if_exists: bool) -> None:
        if kind == "query":
            if self._declared.drop_query(name, if_exists=if_exists) is not None:
                self._live.finish()
                running = self._queries.pop(name.casefold())
                for each in self._subplans.drop(running) if isinstance(running, RunningPipeline) else (running,):
                    self._joins.drop(each)
                self._deliveries.forget(name)
                self._trim()
            return
        relation = self._declared.drop_relation(kind, name, if_exists=if_exists)
        if relation is None:
            return
        self._streams.pop(relation.name, None)
        self._tables.pop(relation.name, None)

    # -- rows and time -----------------------------------------------------------------------------

    def push(self, stream: str, rows: Rows) -> None:
        """Take rows of a stream, all of them or, when one does not fit, none; then process what is final.

        Late rows (older than the watermark) are counted and kept, see :meth:`late`.
        """
        arrival = time.monotonic()
        with self._lock:
            state = self._state(stream)
            where = f"stream {state.stream.name}"
            table = read_rows(rows, state.stream.schema, where)
            times = read_times(table, state.stream.time, where)
            others = [other for other in self._followed() if other is not state]
            waits = least_watermark(others) if others else (AFTER_ALL, 0)
            # Rows of exactly the instant that `advance` reached are still taken: only earlier ones were excluded.
            floor = max(self._final, (self._advanced, -1))
            state.take(Batch(table, times, np.broadcast_to(np.float64(arrival), len(times))), waits, floor)
            self._pump()
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
            floor = max(self._final, (self._advanced, -1))
            late = {}
            for name, table in rows.items():
                state = self._state(name)
                times = read_times(table, state.stream.time, f"stream {state.stream.name}")
                late[name] = state.take_final(Batch(table, times, np.broadcast_to(np.float64(arrival), len(times))), floor)
            self._pump(final, on_release, silent=silent)
        self._deliveries.deliver()
        return late

    def positions(self) -> dict[str, int]:
        """For each stream how many rows of it have come that were not late: the position of the next one, if it is the newest."""
        with self._lock:
            return {name: state.accepted for name, state in self._streams.items()}

    def begin_at(self, positions: Mapping[str, int]) -> None:
        """Count the rows of streams from these positions on; for new engines only."""
        with self._lock:
            for name, position in positions.items():
                self._state(name).log.next = position

    def held(self, stream: str) -> pa.Table:
        """The rows of a stream that the windows of queries reach or that wait, in order."""
        with self._lock:
            self._trim(exactly=True)
            return self._state(stream).held()

    def restore(self, rows: Mapping[str, pa.Table], final: tuple[int, int], advanced: int) -> None:
        """Begin where another engine is: with rows that it holds, for the query that is registered next; for new engines only."""
        with self._lock:
            self._advanced = advanced
            for name, table in rows.items():
                state = self._state(name)
                times = read_times(table, state.stream.time, f"stream {state.stream.name}")
                state.take_final(Batch(table, times, np.zeros(len(times))), (BEFORE_ALL, -1))
            self._release(final)

    def advance(self, to: Instant, *, on_release: OnRelease | None = None, silent: bool = False) -> None:
        """Promise that nothing earlier will come on any stream; processes all up to there, that instant included.

        ``on_release`` gets results as soon as they are made. ``silent``: the results are known, so none are made.
        """
        instant = parse_instant(to)
        with self._lock:
            self._advanced = max(self._advanced, instant)
            self._pump(None, on_release, silent=silent)
        self._deliveries.deliver()

    def _followed(self) -> list[StreamState]:
        """The streams whose progress counts: those that queries read, or all while there is no query."""
        read = [state for state in self._streams.values() if any(join.reads(state) for join in self._joins.running)]
        return read or list(self._streams.values())

    def _pump(self, final: tuple[int, int] | None = None, on_release: OnRelease | None = None, *, silent: bool = False) -> None:
        """Release what is final, let every query process it, and let go of what none needs any more."""
        self._release(least_watermark(self._followed()) if final is None else final)
        instant, order = self._frontier
        closed = instant if order == _EVERY_STREAM else instant - 1
        if self._live.offer(instant, closed):
            self._catch_up_pipelines(closed, silent=False)
            return
        for join in self._joins.running:
            if silent:
                self._take_silently(join, instant, closed)
                continue
            for running, table in join.catch_up(instant, closed, Pace() if on_release is not None else None):
                name = running.query.name
                if on_release is not None:
                    on_release(name, table)
                self._deliveries.hand(name, table)
        self._catch_up_pipelines(closed, silent=silent)
        self._trim()

    def _take_silently(self, join: RunningJoin, instant: int, closed: int) -> None:
        """Let a join take all that is final, without results for it; they are made where what is kept depends on them."""
        if not any(member.remembers for member in join.members):
            join.remember(instant, closed)
            return
        for running, table in join.catch_up(instant, closed):
            running.take_back(table)

    def _catch_up_pipelines(self, closed: int, *, silent: bool) -> None:
        """Let the operators above joins take what those have found."""
        turn = next(self._turns)
        for pipeline in self._queries.values():
            if isinstance(pipeline, RunningPipeline):
                tables = pipeline.catch_up(closed, turn)
                if silent:  # what it keeps depends on every row, so only the results are left out
                    pipeline.take_back(list(tables))
                    continue
                for table in tables:
                    self._deliveries.hand(pipeline.query.name, table)

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
        if self._live.stop(timeout):
            with self._lock:
                self._choose_keepers()

    def settle(self, timeout: float | None = None) -> bool:
        """Wait, while it runs by itself, until all that was pushed is processed and subscribers were called; whether that is so now."""
        return self._live.settle(timeout)

    def _choose_keepers(self) -> None:
        """Results are kept for poll unless somebody is called with them live."""
        for running in self._queries.values():
            running.keeps = not (self._deliveries.live and self._deliveries.of(running.query.name))

    def _release(self, final: tuple[int, int]) -> None:
        """Move the frontier on, and rows that are final into the logs."""
        self._final = max(self._final, final)
        self._frontier = max(self._final, (self._advanced, _EVERY_STREAM))
        instant, order = self._frontier
        for state in self._streams.values():
            state.release(instant if state.stream.order <= order else instant - 1)

    def _trim(self, *, exactly: bool = False) -> None:
        """Let go of rows that no window reaches any more: sooner or later, or ``exactly`` now."""
        for state in self._streams.values():
            readers = [join for join in self._joins.running if join.reads(state)]
            first = min((join.needs(state) for join in readers), default=state.log.next)
            keepers = [(join, source) for join in readers for source in join.keeps(state)]
            state.log.trim(first, partial(_kept_positions, keepers) if keepers else None, exactly=exactly)

    # -- looking -----------------------------------------------------------------------------------

    def late(self, stream: str) -> pa.Table:
        """All rows of a stream that came too late so far."""
        with self._lock:
            return self._state(stream).late()

    def explain(self, query: str | None = None) -> str:
        """The plans of all queries, or of one, as trees for people; after a run with what was measured."""
        with self._lock:
            return "\n\n".join(draw(self._described(running)) for running in self._chosen(query)) or "no queries"

    def plans(self, query: str | None = None) -> list[dict[str, object]]:
        """What :meth:`explain` tells, for machines: a dict for each query, with numbers as numbers, ready for JSON."""
        with self._lock:
            return [to_dict(self._described(running)) for running in self._chosen(query)]

    def _described(self, running: RunningQuery | RunningPipeline) -> Node:
        """The plan of a query; where it is the only one, there is nothing to say about sharing."""
        if isinstance(running, RunningPipeline):
            return describe_running_pipeline(running, self._joins.why)
        return describe_query(running, self._joins.why(running) if len(self._queries) > 1 else "")

    def _chosen(self, query: str | None) -> list[RunningQuery | RunningPipeline]:
        """One query, or all."""
        return list(self._queries.values()) if query is None else [self._running(query, lambda running: running)]

    def stats(self) -> dict[str, object]:
        """Counts of all streams and queries, and how far time has come."""
        with self._lock:
            return {
                "watermark": None if self._frontier[0] <= BEFORE_ALL else format_instant(self._frontier[0]),
                "streams": {state.stream.name: state.stats() for state in self._streams.values()},
                "queries": {running.query.name: self._stats(running) for running in self._queries.values()},
            }

    def take_measures(self) -> dict[str, tuple[ResponseTimes, dict[str, int]]]:
        """For each query its response times since the last call, and its buffers; for those who add up response times themselves."""
        with self._lock:
            return {running.query.name: (running.take_response_times(), running.buffers()) for running in self._queries.values()}

    def _stats(self, running: RunningQuery | RunningPipeline) -> dict[str, object]:
        """What a query counts, with its subscribers."""
        return {**running.stats(), "subscribers": [each.stats() for each in self._deliveries.of(running.query.name)]}

    def state_rows(self) -> dict[str, int]:
        """For each stream, the most of its rows that a query holds inside a window."""
        with self._lock:
            rows = dict.fromkeys(self._streams, 0)
            for join in self._joins.running:
                held = join.state_rows()
                for source in join.query.sources:
                    if not source.stored:
                        rows[source.relation] = max(rows[source.relation], held[source.alias])
            return rows

    def governed(self) -> dict[str, Governed]:
        """The limited joins that are governed from outside, by the names of their queries."""
        with self._lock:
            joins = {join.query.name: join.overload for join in self._joins.running}
            return {name: overload for name, overload in joins.items() if isinstance(overload, Governed)}

    def queries(self) -> list[StandingQuery]:
        """The standing queries in the order they were registered."""
        with self._lock:
            return [StandingQuery(self, running.query.name) for running in self._queries.values()]

    # -- for handles -------------------------------------------------------------------------------

    def _state(self, stream: str) -> StreamState:
        relation = self._catalog.find(str(stream))
        if isinstance(relation, Stream):
            return self._streams[relation.name]
        near = get_close_matches(str(stream), list(self._streams), 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(self._streams) or 'no streams yet'}"
        raise CatalogError(f"there is no stream {stream!r}", hint=hint)

    def _running(self, name: str, use: Callable[[RunningQuery | RunningPipeline], Value]) -> Value:
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
