"""The in-process engine: a thread-safe driver of one dataflow.

Pushed rows go into the dataflow (:mod:`muntin.runtime.dataflow`), and its outputs to polls and
subscribers. One lock guards all of it; subscribers are called outside of the lock.

This file is longer than others, and its class has more methods, because both are what users see:
most lines are their documentation.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.console.opening import open_console
from muntin.console.source import TextPage
from muntin.engine.background import Live
from muntin.engine.checkpoint import EngineCheckpoint, read_folder
from muntin.engine.console_source import EngineParts, EngineSource
from muntin.engine.declarations import Declarations, unknown_stream
from muntin.engine.fair_lock import FairLock
from muntin.engine.heartbeat import EventClock, read_heartbeat
from muntin.engine.input_rows import Rows, read_rows, read_times
from muntin.engine.inspector import Inspector
from muntin.engine.query_registry import QueryRegistry, StandingQuery
from muntin.engine.registrar import Registrar, read_clock
from muntin.engine.suspended_query import Suspender
from muntin.engine.table_calls import TableCalls
from muntin.expressions.python_functions import Vectorized
from muntin.kernels.jit import prepare
from muntin.metrics import CONTENT_TYPE, prometheus_text
from muntin.model.allowed_paths import AllowedPaths
from muntin.model.arguments import check_name, read_timeout
from muntin.model.catalog import Stream
from muntin.model.clock import Instant, parse_instant
from muntin.plan.explanation import Explanation
from muntin.runtime.dataflow import Dataflow, Frontier
from muntin.runtime.memory_limit import check_memory
from muntin.runtime.stream_input import StreamState
from muntin.sql.python_functions import make_function
from muntin.sql.streams import make_stream, read_slack
from muntin.sql.types import build_schema
from muntin.state.batch import Batch, batch_of

if TYPE_CHECKING:
    from muntin.console.server import Console


def _system_clock() -> int:
    return time.time_ns() // 1000


class Engine(TableCalls):
    """Continuous queries over streams that this process pushes.

    Parameters
    ----------
    allowed_paths : list of str or Path, optional
        The folders to which scripts are confined: statements that name a path elsewhere are
        refused. None: scripts may read any file that this process may. Set it when you run scripts
        of others.
    clock : callable, optional
        Returns the time now in microseconds since 1970; the heartbeat of :meth:`start` follows it.
        The log warns of streams that begin decades away from it. None: there is neither.
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

    def __init__(
        self,
        *,
        allowed_paths: object = None,
        clock: object = _system_clock,
        **settings: object,
    ) -> None:
        self._declared = Declarations(allowed=AllowedPaths.of(allowed_paths))
        for name, value in settings.items():
            self._declared.set(name, value)
        self._lock = FairLock()
        self.dataflow = Dataflow()
        """The dataflow that the engine drives; to be read only, while nothing runs."""
        self._registry = QueryRegistry(self._lock, self.dataflow, self._declared)
        self._inspector = Inspector(self._lock, self.dataflow, self._registry)
        self.figures = self._inspector.figures
        """Returns the figures of the engine; :mod:`muntin.metrics` exports them."""
        self._suspender = Suspender(self.dataflow, self._registry, self._inspector)
        self._live = Live(self._lock, self.dataflow, self._registry, self._suspender.run)
        self._registrar = Registrar(
            self._declared, self.dataflow, self._registry, self._live.finish, read_clock(clock)
        )
        self._checkpoint = EngineCheckpoint(
            self._declared, self.dataflow, self._registry, self._registrar
        )

    # -- declarations ------------------------------------------------------------------------------

    def execute(self, script: str) -> list[StandingQuery]:
        """Run the statements of a script in order and return the queries it created.

        A statement that fails raises, and those before it stay in force.
        """
        with self._lock:
            names = self._registrar.run(script)
            return [StandingQuery(name, self._registry, self._inspector) for name in names]

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
            ``"arrival"``: rows get the time at which they are pushed, in a column ``_arrival`` that
            is added to the stream.
        slack : str or int
            How late rows may come, as an interval (``"2 seconds"``) or in microseconds.
        """
        schema = columns if isinstance(columns, pa.Schema) else build_schema(columns)
        micros = read_slack(name, slack)
        with self._lock:
            self._registrar.add_stream(make_stream(name, schema, time, micros))

    def function(
        self, name: str, code: Vectorized, parameters: Mapping[str, str], result: str
    ) -> None:
        """Declare a Python function for expressions, or replace one that no query calls.

        Parameters
        ----------
        code : callable
            Takes one ``pyarrow.Array`` per parameter, without the rows on which an argument is
            NULL, and returns one with as many values, which depend on nothing else. A query in
            which it fails is suspended.
        parameters, result
            Names and SQL types; a SQL type.

        Examples
        --------
        >>> import muntin, pyarrow.compute as pc
        >>> engine = muntin.Engine()
        >>> engine.stream("A", {"x": "double", "ts": "timestamp"})
        >>> engine.function("twice", lambda x: pc.multiply(x, 2.0), {"x": "double"}, "double")
        >>> q = engine.query("SELECT twice(x) AS y FROM A WHERE twice(x) > 3 WINDOW 1 MINUTE")
        >>> engine.push("A", [(1.0, "2026-01-01"), (2.0, "2026-01-01")])
        >>> q.poll().column("y").to_pylist()
        [4.0]
        """
        with self._lock:
            self._declared.add_function(make_function(name, code, parameters, result))

    def query(
        self, sql: str, name: str | None = None, *, weight: float | None = None
    ) -> StandingQuery:
        """Register a standing query, also while rows flow; its results start with the next rows.

        It finds the rows inside its windows that the engine holds: those that the windows of
        queries registered before it reach. ``weight`` is the setting of that name.
        """
        with self._lock:
            return self.handle(self._registrar.add_query(self._declared.read(sql, name, weight)))

    def handle(self, name: str) -> StandingQuery:
        """Return the handle of a registered query."""
        known = self._registry.find(name).query.name
        return StandingQuery(known, self._registry, self._inspector)

    def queries(self) -> list[StandingQuery]:
        """Return the standing queries in the order in which they were registered."""
        with self._lock:
            return [self.handle(entry.query.name) for entry in self._registry.entries()]

    def drop(self, name: str) -> None:
        """Drop a query; the others are not affected."""
        with self._lock:
            self._registrar.drop("query", name)

    # -- rows and time -----------------------------------------------------------------------------

    def push(self, stream: str, rows: Rows) -> None:
        """Take rows of a stream, all or, if one does not fit, none; process those that are final.

        Late rows (older than the watermark) are counted and kept, see :meth:`late`; so are rows
        further ahead of their stream than the setting ``max_advance`` allows. Rows for which the
        setting ``memory_limit`` leaves no room raise :class:`muntin.MemoryLimitError`.
        """
        arrival = time.monotonic()
        with self._lock:
            state = self._state(stream)
            where = f"stream {state.stream.name}"
            table = read_rows(rows, state.stream.given, where)
            settings, frontier = self._declared.settings.engine, Frontier()
            check_memory(self.dataflow, settings.memory_limit, state.stream.name, table.nbytes)
            if state.stream.arrival:
                table, frontier = self._stamp(state.stream, table)
            times = read_times(table, state.stream.time, where)
            if len(times):
                state.last_row = arrival
            batch = batch_of(table, times, arrival)
            if not state.stream.arrival:
                reached = self.dataflow.groups.advanced
                batch = state.set_aside(batch, settings.max_advance, reached)
            self._step({state.stream.name: batch}, frontier)
        self._registry.deliveries.deliver()

    def _stamp(self, stream: Stream, rows: pa.Table) -> tuple[pa.Table, Frontier]:
        """Return rows with the time of their arrival, and what it says of all stamped streams."""
        arrivals, groups = self._registrar.arrivals, self.dataflow.groups
        assert arrivals is not None, "checked when the stream was declared"
        if not len(rows):
            return stream.schema.empty_table(), Frontier()
        stamp = arrivals.stamp(after=groups.advanced)
        stamped = [each.stream.name for each in groups.streams.values() if each.stream.arrival]
        return stream.stamped(rows, stamp), Frontier(low_marks=dict.fromkeys(stamped, stamp + 1))

    def advance(self, to: Instant) -> None:
        """Promise that no earlier row comes on any stream; process all up to there, inclusive."""
        instant = parse_instant(to)
        with self._lock:
            self._step({}, Frontier(advanced=instant))
        self._registry.deliveries.deliver()

    def _step(self, rows: Mapping[str, Batch], frontier: Frontier) -> None:
        if self._live.is_running():
            self._registry.take(self.dataflow.offer(rows, frontier))
            self._live.wake()
        else:
            self._registry.take(self.dataflow.step(rows, frontier))
        self._suspender.run()

    def late(self, stream: str) -> pa.Table:
        """Return all rows of a stream so far that came too late, or were too far ahead."""
        with self._lock:
            return self._state(stream).late()

    def _state(self, stream: str) -> StreamState:
        check_name(stream, "the name of a stream")
        relation = self._declared.catalog.find(stream)
        if not isinstance(relation, Stream):
            raise unknown_stream(stream, self.dataflow.streams)
        return self.dataflow.streams[relation.name]

    # -- in the background -------------------------------------------------------------------------

    def start(self, heartbeat: str | None = None) -> None:
        """Run in the background: ``push`` only takes rows; a thread joins and calls subscribers.

        Work is cut into turns of about a millisecond, so rows are scheduled as they come, and the
        queries that share a join get their results in the order of the setting ``scheduler``: those
        with small windows need not wait for those with large ones. Results of a query with
        subscribers go to them and are not kept for ``poll``; each subscriber has a thread.

        Parameters
        ----------
        heartbeat : str, optional
            Let time move by the engine's clock although nothing arrives, at this distance, such as
            ``"1 second"``: each stream is at its newest time plus the time since that row came,
            minus its slack and the distance. None: only rows and ``advance`` move time.

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
            if heartbeat is None:
                self._live.start()
                return
            distance = read_heartbeat(heartbeat)
            clock = self._registrar.running_clock()
            self._live.start(EventClock(clock, distance, self._registrar.arrivals), distance)

    def stop(self, timeout: float = 60.0) -> None:
        """Complete all work, end the background thread; wait ``timeout`` seconds for subscribers.

        Does nothing if there is no thread.
        """
        wait = read_timeout(timeout)
        self._live.stop(threading.TIMEOUT_MAX if wait is None else wait)

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until all that was pushed is processed and subscribers were called.

        Returns whether that is so within ``timeout`` seconds.
        """
        return self._live.settle(read_timeout(timeout))

    # -- checkpoints -------------------------------------------------------------------------------

    def checkpoint(self, folder: str | Path) -> None:
        """Write everything from which :meth:`restore` resumes to a folder.

        The state is that between two calls; other threads can push while it is written. When the
        call returns, the checkpoint is on disk and replaces the one before; a crash before that
        leaves the one before. Rows that the last call has written to the folder are not written
        again. After a crash, push what was pushed since the last checkpoint again. Results that
        wait for rows under ``pipeline = 'input'`` are released.

        Raises
        ------
        CheckpointError
            When the folder cannot be written to, or another engine writes to it at the moment.
        """
        where = read_folder(folder)
        with self._checkpoint.turn:
            with self._lock:
                self._live.finish()
                self._registry.take(self.dataflow.release())
                self._suspender.run()
                captured = self._checkpoint.capture()
            self._checkpoint.write(captured, where)
        self._registry.deliveries.deliver()

    @classmethod
    def restore(
        cls,
        folder: str | Path,
        *,
        functions: Mapping[str, Vectorized] | None = None,
        allowed_paths: object = None,
        clock: object = _system_clock,
    ) -> Engine:
        """Return an engine that resumes from the last checkpoint in a folder.

        It has the same streams, tables, settings, queries, windows, late rows and results that were
        not polled, and continues as if it had never stopped. Subscribers and the background thread
        are not restored. ``functions`` has the code of declared functions by name, as a checkpoint
        holds none. ``allowed_paths`` and ``clock`` are those of :class:`Engine`.

        Raises
        ------
        CheckpointError
            When there is no checkpoint, its files are damaged, missing, or of another version, or
            a function is missing or not the one that was declared.

        Examples
        --------
        >>> import muntin, tempfile
        >>> engine = muntin.Engine()
        >>> engine.stream("A", {"k": "bigint", "ts": "timestamp"}, time="ts")
        >>> q = engine.query("SELECT COUNT(*) AS n FROM A WINDOW 1 MINUTE", name="q")
        >>> engine.push("A", [(1, "2026-01-01 00:00:00"), (2, "2026-01-01 00:00:30")])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     engine.checkpoint(folder)
        ...     engine = muntin.Engine.restore(folder)
        >>> engine.advance("2026-01-01 00:01:00")
        >>> engine.handle("q").answer().to_pylist()
        [{'n': 1}]
        """
        where = read_folder(folder)
        engine = cls(allowed_paths=allowed_paths, clock=clock)
        with engine._lock:
            engine._checkpoint.restore(where, functions or {})
        return engine

    # -- looking -----------------------------------------------------------------------------------

    def explain(self, query: str | None = None) -> Explanation:
        """Return the plans of all queries, or of one, as trees; after a run with measurements.

        A notebook shows them as pictures, which ``svg()`` returns.
        :meth:`muntin.StandingQuery.plan` returns the same for machines.
        """
        return self._inspector.explain(query)

    def stats(self) -> dict[str, object]:
        """Return the counts of all streams and queries, and the watermark."""
        return self._inspector.stats()

    def console(self, address: str | None = None, *, read_only: bool = False) -> Console:
        """Open a web console: live views, and queries added and dropped in a browser.

        Needs ``muntin[console]``. It runs in a separate thread until its ``stop`` is called, also
        as ``with engine.console() as console: ...``.

        Parameters
        ----------
        address : str, optional
            ``HOST:PORT``; port 0 takes any free one. None: ``127.0.0.1:8321``, or a free port if
            that one is taken. Addresses of this machine alone are safe; at others, who reads the
            network can read the token.
        read_only : bool
            Refuse to add and drop queries.

        Returns
        -------
        Console
            Its ``url`` contains the token without which the console answers nothing.
        """
        parts = EngineParts(
            self._lock, self._declared, self.dataflow, self._registry, self._inspector
        )
        pages = {"/metrics": TextPage(CONTENT_TYPE, lambda: prometheus_text(self))}
        return open_console(EngineSource(self, parts), address, read_only=read_only, pages=pages)

    def _repr_html_(self) -> str:
        return self._inspector.engine_html()
