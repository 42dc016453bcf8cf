"""The engine on Spark, as users see it.

Declarations are collected until the engine starts and then become one streaming query. The work is
done by the parts in :mod:`muntin.spark.driver`: declarations, the run, changes of queries while it
runs, and reports.

This file is longer than others, and its class has more methods, because both are what users see:
most lines are their documentation.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from muntin.console.opening import open_console
from muntin.console.source import TextPage
from muntin.engine.declarations import Actions, Declarations, run_script
from muntin.engine.input_rows import read_rows
from muntin.engine.table_files import load_table
from muntin.errors import InputError, RunError, SettingError
from muntin.expressions.python_functions import Vectorized
from muntin.metrics import CONTENT_TYPE, prometheus_text
from muntin.model.allowed_paths import AllowedPaths
from muntin.model.clock import Instant, parse_instant, parse_interval
from muntin.plan.explanation import Explanation
from muntin.plan.query import Query
from muntin.spark.console_source import SparkSource
from muntin.spark.driver.checkpoint import Checkpoint
from muntin.spark.driver.engine_parts import EngineParts
from muntin.spark.driver.engine_run import EngineRun, RunConfig
from muntin.spark.driver.listener import OnProgress
from muntin.spark.driver.live_declarations import LiveDeclarations
from muntin.spark.driver.start_plan import StartPlan, plan_start
from muntin.spark.fixed_tables import FixedTables, tables_stay
from muntin.spark.replacement import Replacement
from muntin.spark.session import hadoop_settings, local_session, warn_of_slow_settings
from muntin.spark.sinks import SinkChoice, SinkMaker
from muntin.spark.sources import arrow_schema, fitted
from muntin.spark.standing_query import SparkQuery
from muntin.spark.storage import checkpoint_place, storage_at
from muntin.spark.temp_files import HeldFolder, sweep
from muntin.sql.python_functions import make_function
from muntin.sql.streams import make_stream, make_table, read_slack

if TYPE_CHECKING:
    from muntin.console.server import Console

_SETTLE = 600.0
_STOP = 60.0


class SparkEngine(FixedTables):
    """Continuous queries over streams that Spark reads.

    Parameters
    ----------
    spark : SparkSession, optional
        The session to run in; None starts a local one.
    checkpoint : str or Path, optional
        The folder from which a restart resumes: a local path, or a URL of a store that Spark and
        Arrow reach (``s3a``, ``gs``, ``abfss``, ``hdfs``). None uses a temporary one.
    trigger : str
        The interval between micro-batches; "0 seconds" starts one as soon as the last is done.
    buckets : int, optional
        The name of ``partitions`` in version 0.1; it will be removed in 0.3.
    partitions : int, optional
        The number of partitions of the work; None uses one per core.
    heartbeat : str, optional
        In live runs, how far event time may lag behind the clock when no rows arrive, for example
        "10 seconds"; None advances time with rows only.
    on_progress : callable, optional
        Called after every batch with the value of :attr:`progress`, in a separate thread; its
        exceptions are logged.
    allowed_paths : list of str or Path, optional
        The folders, and URLs that Spark can reach, to which scripts are confined: statements that
        name a path elsewhere, or a format that reaches more than files, are refused. None confines
        nothing. Use it to run scripts that others wrote.
    replace : list of str or bool
        The queries that the first start replaces: each starts again, as if it were registered then,
        and deletes its earlier output and other batches in the folder of its sink. All other
        queries continue. True lets every query delete output that is in its way, and start again if
        it has changed. A query that has changed and may not be replaced is an error.
    **settings
        Any setting of :class:`muntin.model.settings.Settings`.
    """

    def __init__(  # noqa: PLR0913 (all but the session by name)
        self,
        spark: SparkSession | None = None,
        *,
        checkpoint: str | Path | None = None,
        trigger: str = "0 seconds",
        partitions: int | None = None,
        buckets: int | None = None,
        heartbeat: str | None = None,
        on_progress: OnProgress | None = None,
        allowed_paths: Sequence[str | Path] | str | Path | None = None,
        replace: bool | str | Sequence[str] | Replacement = False,
        **settings: object,
    ) -> None:
        declared = Declarations(allowed=AllowedPaths.of(allowed_paths), connected=True)
        replacement = Replacement.of(replace)
        for name, value in settings.items():
            declared.set(name, value)
        partitions = _checked_partitions(partitions, buckets)
        self.spark = spark or local_session(partitions or 2)
        warn_of_slow_settings(self.spark)
        self.partitions = partitions or max(self.spark.sparkContext.defaultParallelism, 1)
        sweep()
        temporary = HeldFolder("checkpoint") if checkpoint is None else None
        place = checkpoint_place(
            temporary.path if checkpoint is None and temporary is not None else checkpoint or "",
            partial(hadoop_settings, self.spark),
        )
        interval = parse_interval(trigger)
        stored = Checkpoint(storage_at(place), temporary)
        self.sinks = SinkMaker(self.spark, stored.shared.below("results"))
        self._parts = EngineParts.make(
            declared, stored, self.sinks, partitions=self.partitions, interval=interval / 1e6
        )
        options = RunConfig(
            self.partitions,
            interval,
            parse_interval(heartbeat) if heartbeat else None,
            on_progress,
        )
        self._parts.state.replacement = replacement
        self._declarations = LiveDeclarations(self._parts)
        self._run = EngineRun(self.spark, options, self._parts)
        self.figures = self._parts.reports.figures
        """Returns the figures after the last batch; :mod:`muntin.metrics` exports them."""

    # -- declarations ----------------------------------------------------------------------------

    def execute(self, script: str) -> list[SparkQuery]:
        """Run the statements of a script in order and return the queries it created."""
        declared = self._parts.registry.declared
        actions = Actions(
            self._declarations.add_stream,
            lambda table: self._declarations.add_table(table, load_table(table, declared.allowed)),
            lambda query: self._add_query(query, None),
            self._create_or_replace,
            lambda drop: self._declarations.drop(drop.kind, drop.name, if_exists=drop.if_exists),
        )
        try:
            with self._run.lock:
                return run_script(script, declared, actions)
        finally:
            self._parts.changes.wait()

    def stream(
        self, name: str, source: DataFrame, *, time: str | None = None, slack: str | int = 0
    ) -> None:
        """Declare a stream over a streaming DataFrame."""
        given: object = source
        if not isinstance(given, DataFrame):
            raise InputError(
                f"stream {name} cannot be made from {type(given).__name__}",
                hint="Pass a streaming DataFrame, as spark.readStream makes them",
            )
        if not source.isStreaming:
            raise InputError(
                f"the DataFrame of stream {name} is not streaming",
                hint="Use spark.readStream, or engine.table for stored rows",
            )
        micros = read_slack(name, slack)
        with self._run.lock:
            stream = make_stream(name, _without_zones(arrow_schema(source.schema)), time, micros)
            self._declarations.add_stream(stream, fitted(source, stream))

    def table(
        self,
        name: str,
        rows: DataFrame | pa.Table | Sequence[Mapping[str, object]],
        *,
        key: str | None = None,
    ) -> None:
        """Declare a stored table with its rows, read now; a ``key`` is refused: it stays."""
        if key is not None:
            raise tables_stay(name)
        try:
            arrow = rows.toArrow() if isinstance(rows, DataFrame) else rows
            arrow = arrow if isinstance(arrow, pa.Table) else pa.Table.from_pylist(list(arrow))
            arrow = arrow.cast(_without_zones(arrow.schema))
        except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"cannot make table {name} from {type(rows).__name__}",
                hint="Pass a DataFrame, a pyarrow Table or a list of dicts",
            ) from error
        with self._run.lock:
            table = make_table(name, arrow.schema)
            self._declarations.add_table(table, read_rows(arrow, table.schema, f"table {name}"))

    def function(
        self, name: str, code: Vectorized, parameters: Mapping[str, str], result: str
    ) -> None:
        """Declare a Python function for expressions, as :meth:`muntin.Engine.function` does.

        Executors get it in the closure of Spark's jobs, so modules that it imports must be there.
        The checkpoint has its declaration only: declare it again before each start.
        """
        with self._run.lock:
            self._declarations.add_function(make_function(name, code, parameters, result))

    def query(
        self,
        sql: str,
        name: str | None = None,
        sink: SinkChoice = None,
        *,
        weight: float | None = None,
    ) -> SparkQuery:
        """Register a standing query, also while the engine runs.

        Rows that arrive after this has returned count for it. ``weight`` is the setting of that
        name.
        """
        with self._run.lock:
            handle = self._add_query(self._parts.registry.declared.read(sql, name, weight), sink)
        self._parts.changes.wait()
        return handle

    def _add_query(self, query: Query, sink: SinkChoice) -> SparkQuery:
        name = self._declarations.add_query(query, sink)
        return SparkQuery(self, self._parts.reports, self._parts.reports.state_of(name))

    def _create_or_replace(self, query: Query) -> SparkQuery:
        if query.name.casefold() in self._parts.registry.declared.queries:
            raise InputError(
                f"query {query.name} is there, and a query is not replaced while others run",
                hint=f"Start again with replace=[{query.name!r}], or drop the query first",
            )
        return self._add_query(query, None)

    def drop(self, name: str) -> None:
        """Drop a query, also while the engine runs; the other queries are not affected."""
        with self._run.lock:
            self._declarations.drop("query", name, if_exists=False)
        self._parts.changes.wait()

    # -- running ---------------------------------------------------------------------------------

    def plan_start(self) -> StartPlan:
        """Return what a start would keep, start again, drop or refuse in the checkpoint, and why.

        Nothing is changed, and another engine may be using the checkpoint. Only queries whose sink
        is memory have a file with their columns there since they were declared.
        """
        with self._run.lock:
            return plan_start(self._parts, self.partitions)

    def start(self) -> None:
        """Run until stopped: one micro-batch per trigger interval."""
        self._run.start(live=True)

    def process_available(self, until: Instant | None = None, timeout: float | None = None) -> None:
        """Process all input that is available now, then return.

        A running engine continues to run, as after Spark's ``processAllAvailable``: where input
        never pauses, this returns only after ``timeout`` seconds, with an error. An engine that
        does not run is started and stopped again, without a timeout.

        Parameters
        ----------
        until : str, datetime or int, optional
            Then advance time to that instant, see :meth:`advance`, and process the consequences.
        timeout : float, optional
            Seconds to wait for a running engine; None waits without a limit.
        """
        moment = None if until is None else parse_instant(until)
        if self._parts.state.takes_changes:
            self._run.catch_up(timeout)
            if moment is not None:
                self.advance(moment)
                self._run.catch_up(timeout)
            return
        self._run.process_once(more=moment is not None)
        if moment is not None:
            try:
                self.advance(moment)
                self._run.process_once()
            except BaseException:  # also when it could not be started again
                self._run.release()
                raise

    def settle(self, timeout: float | None = _SETTLE) -> None:
        """Start the engine if it does not run, then wait until the available input is processed.

        Raises
        ------
        RunError
            When that takes longer than ``timeout`` seconds, for example because input never pauses.
        """
        with self._run.lock:
            if not self._parts.state.is_active:
                self._run.start(live=True)
        self._run.catch_up(timeout)

    def advance(self, to: Instant) -> None:
        """Promise that no earlier row will arrive on any stream; in force in the next batch.

        The rows of that batch are taken first, so process all rows up to the instant before.
        """
        self._parts.controls.advance(parse_instant(to))

    def stop(self, timeout: float = _STOP) -> None:
        """Stop; an incomplete batch runs again at the next start.

        State servers that do not answer are killed. A sink that does not return cannot be: then the
        checkpoint stays locked until it has returned or this process ends, so that it never writes
        at the same time as another run.

        Raises
        ------
        RunError
            When a sink, or Spark, has not returned within ``timeout`` seconds; the error names it.
        """
        self._run.stop(timeout)

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds until the engine stops; return whether it has.

        Raises the error that ended the run, if it failed.
        """
        return self._run.await_termination(timeout)

    def exception(self) -> RunError | None:
        """Return the error that ended the last run; None if it runs, was stopped or never began."""
        return self._run.failure()

    # -- output ----------------------------------------------------------------------------------

    def late(self, stream: str) -> pa.Table:
        """Return the late rows of a stream so far."""
        return self._parts.reports.late(stream)

    def results(self, name: str) -> pa.Table:
        """Return all changes of a query so far, if its sink is memory."""
        return self._parts.reports.results(name)

    def explain(self, query: str | None = None) -> Explanation:
        """Return the plan of one query or of all, and how their streams are partitioned."""
        return self._parts.reports.explain(query, self.partitions)

    def console(self, address: str | None = None, *, read_only: bool = False) -> Console:
        """Open a web console, see :meth:`muntin.Engine.console`; also before the engine starts.

        While a browser shows the results of a query, it is a subscriber of that query.
        """
        source = SparkSource(self, self._parts, self._run.lock)
        pages = {"/metrics": TextPage(CONTENT_TYPE, lambda: prometheus_text(self))}
        return open_console(source, address, read_only=read_only, pages=pages)

    def _repr_html_(self) -> str:
        return self.explain().svg()

    @property
    def streaming(self) -> StreamingQuery | None:
        """Spark's streaming query, running or ended; None before the first start."""
        return self._parts.state.streaming

    @property
    def progress(self) -> dict[str, Any] | None:
        """Spark's progress of the last batch, with our counts under ``muntin``."""
        return self._parts.reports.progress()

    @property
    def last_batch(self) -> int:
        """Return the number of the last complete batch in the checkpoint, or -1."""
        return self._parts.checkpoint.last_batch()


def _checked_partitions(partitions: int | None, buckets: int | None) -> int | None:
    if buckets is not None:
        warnings.warn(
            "SparkEngine(buckets=...) is now SparkEngine(partitions=...)",
            FutureWarning,
            stacklevel=3,
        )
        partitions = buckets if partitions is None else partitions
    if partitions is not None and (type(partitions) is not int or partitions < 1):
        raise SettingError(
            f"partitions cannot be {partitions!r}", hint="Give a whole number of at least 1"
        )
    return partitions


def _without_zones(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose times have no zone: Spark's are in UTC, as ours."""
    return pa.schema(
        [
            pa.field(
                field.name,
                pa.timestamp("us") if pa.types.is_timestamp(field.type) else field.type,
            )
            for field in schema
        ]
    )
