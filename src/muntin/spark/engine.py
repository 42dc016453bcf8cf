"""The engine on Spark: INTERFACE section 3.

Declarations are kept until the engine starts; then they are one streaming query. A query that is added or dropped while it
runs takes effect at a batch: the streaming query is stopped, the change is written into the checkpoint with the number of the
batch it is in force from, and the streaming query goes on from where it was. So changes are durable and ordered with the data.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from muntin.engine.explain import describe_plan
from muntin.engine.input_rows import read_rows
from muntin.engine.plan_tree import Fact, Node, draw
from muntin.engine.table_files import load_table
from muntin.errors import CatalogError, InputError, RunError, SettingError, SqlError
from muntin.expressions.duck import Duck
from muntin.kernels.compiling import prepare
from muntin.model.catalog import Catalog, Stream, Table
from muntin.model.clock import Instant, parse_instant, parse_interval
from muntin.model.settings import Settings
from muntin.model.statistics import declared_statistics, known_statistics
from muntin.plan.join import JoinPlan
from muntin.plan.query import Query
from muntin.plan.statement import CreateQuery, CreateStream, CreateTable, Drop, Set, Statement
from muntin.planner.distribution import distribute
from muntin.planner.join_planner import Knowledge, plan_join
from muntin.spark.bucket import LATE, RESULTS
from muntin.spark.checkpoint import Checkpoint
from muntin.spark.failures import fact_of
from muntin.spark.gathering import gathered
from muntin.spark.messages import from_blob, to_blob
from muntin.spark.moments import Heartbeat, Moments
from muntin.spark.pipeline import build
from muntin.spark.program import Program, Registered
from muntin.spark.resident import Resident
from muntin.spark.session import STREAMING, java_log, local_session
from muntin.spark.sinks import FileSink, MemorySink, Sink, SinkChoice, SinkError, SinkMaker, read_batches
from muntin.spark.sources import Source, fitted, read_stream
from muntin.spark.tally import STATS, Tally
from muntin.sql.script import read_query, read_script
from muntin.sql.streams import make_stream, make_table

_DEFAULT = Settings()


class SparkQuery:
    """The handle of a standing query on Spark."""

    def __init__(self, engine: SparkEngine, name: str) -> None:
        self._engine = engine
        self.name = name

    @property
    def progress(self) -> dict[str, Any] | None:
        """What Spark tells of the last batch, and under ``muntin`` what we do; None before the first."""
        return self._engine.progress

    def results(self) -> pa.Table:
        """All changes so far, for a query whose sink is memory."""
        return self._engine.results(self.name)

    def __repr__(self) -> str:
        return f"SparkQuery({self.name!r})"


class SparkEngine:
    """Continuous queries over streams that Spark reads.

    Parameters
    ----------
    spark : SparkSession, optional
        The session to run in; None makes a local one.
    checkpoint : str or Path, optional
        The folder from which a restart goes on; None: a temporary one.
    trigger : str
        How often a micro-batch begins; "0 seconds": as soon as the last one is done.
    buckets : int, optional
        Into how many shares the work is cut; None: one for each core.
    heartbeat : str, optional
        In live runs, how far behind the clock time moves on although no row comes, e.g. "10 seconds"; None: only rows move it.
    **settings
        Any setting of :class:`muntin.model.settings.Settings`.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        checkpoint: str | Path | None = None,
        trigger: str = "0 seconds",
        buckets: int | None = None,
        heartbeat: str | None = None,
        **settings: object,
    ) -> None:
        self._settings = Settings()
        for name, value in settings.items():
            self._settings = self._settings.having(name, value)
        if buckets is not None and (type(buckets) is not int or buckets < 1):
            raise SettingError(f"buckets cannot be {buckets!r}", hint="Give a whole number of at least 1")
        self.spark = spark or local_session(buckets or 2)
        self.buckets = buckets or max(self.spark.sparkContext.defaultParallelism, 1)
        for key, value in STREAMING.items():
            self.spark.conf.set(key, value)
        self._checkpoint = Checkpoint(_local_folder(checkpoint if checkpoint is not None else self._temporary_folder()))
        self._trigger = f"{parse_interval(trigger) // 1000} milliseconds"
        self._moments = Moments(self._checkpoint.folder / "muntin" / "moments")
        self._delay = parse_interval(heartbeat) if heartbeat else None
        self._heartbeat: Heartbeat | None = None
        self._live = False
        self._lock = threading.RLock()
        self._catalog = Catalog()
        self._frames: dict[str, DataFrame] = {}
        self._tables: dict[str, bytes] = {}
        self._queries: dict[str, tuple[Registered, Query, JoinPlan]] = {}
        self._sinks: dict[str, Sink] = {}
        self.sinks = SinkMaker(self.spark, self._checkpoint.folder / "muntin" / "results")
        self._streaming: StreamingQuery | None = None
        self._run = ""
        self._failure: RunError | None = None
        self._tally = Tally()
        self._ducks = [Duck()]
        weakref.finalize(self, self._ducks.clear)  # also at exit: DuckDB complains of connections that outlive it

    def _temporary_folder(self) -> str:
        """A folder that goes with the engine."""
        folder = tempfile.mkdtemp(prefix="muntin-checkpoint-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    # -- declarations ------------------------------------------------------------------------------

    def execute(self, script: str) -> list[SparkQuery]:
        """Run the statements of a script in order and return the queries it created."""
        created = []
        with self._lock:
            for statement in read_script(script, self._catalog):
                handle = self._apply(statement)
                if handle is not None:
                    created.append(handle)
        return created

    def _apply(self, statement: Statement) -> SparkQuery | None:
        try:
            if isinstance(statement, CreateStream):
                declared_statistics(statement.stream.options)
                self._add_stream(statement.stream, None)
            elif isinstance(statement, CreateTable):
                self._add_table(statement.table, load_table(statement.table))
            elif isinstance(statement, CreateQuery):
                return self._add_query(statement.query, _sink_of(statement.query))
            elif isinstance(statement, Drop):
                self._drop(statement.kind, statement.name, if_exists=statement.if_exists)
            else:
                assert isinstance(statement, Set), "the statements are these five"
                self._settings = self._settings.having(statement.name, statement.value)
        except (CatalogError, InputError, SettingError) as error:
            raise SqlError(error.fact, place=statement.place, hint=error.hint) from error
        return None

    def stream(self, name: str, source: DataFrame, *, time: str | None = None, slack: str | int = 0) -> None:
        """Declare a stream over a streaming DataFrame."""
        if not source.isStreaming:
            raise InputError(
                f"the DataFrame of stream {name} is not streaming", hint="Use spark.readStream, or engine.table for stored rows"
            )
        micros = parse_interval(slack) if isinstance(slack, str) else slack
        with self._lock:
            stream = make_stream(name, _plain(to_arrow_schema(source.schema)), time, micros)
            self._add_stream(stream, fitted(source, stream))

    def _add_stream(self, stream: Stream, frame: DataFrame | None) -> None:
        self._check_stopped(f"stream {stream.name} cannot be declared")
        self._check_free(stream.name)
        added = self._catalog.add(stream)
        if frame is not None:
            self._frames[added.name] = frame

    def table(self, name: str, rows: DataFrame | pa.Table | Sequence[Mapping[str, object]]) -> None:
        """Declare a stored table with its rows; they are read now."""
        arrow = rows.toArrow() if isinstance(rows, DataFrame) else rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows))
        arrow = arrow.cast(_plain(arrow.schema))
        with self._lock:
            table = make_table(name, arrow.schema)
            self._add_table(table, read_rows(arrow, table.schema, f"table {name}"))

    def _add_table(self, table: Table, rows: pa.Table) -> None:
        self._check_stopped(f"table {table.name} cannot be declared")
        self._check_free(table.name)
        self._catalog.add(table)
        self._tables[table.name] = to_blob(rows.combine_chunks())

    def query(self, sql: str, name: str | None = None, sink: SinkChoice = None) -> SparkQuery:
        """Register a standing query, also while the engine runs; it then answers from the next batch on."""
        with self._lock:
            taken = {query.casefold() for query in self._queries}
            chosen = name or next(f"q{number}" for number in range(1, 10**9) if f"q{number}" not in taken)
            query = read_query(sql, chosen, self._catalog)
            return self._add_query(query, sink if sink is not None else _sink_of(query))

    def _add_query(self, query: Query, sink: SinkChoice) -> SparkQuery:
        key = query.name.casefold()
        if key in self._queries or self._catalog.find(query.name):
            raise CatalogError(f"the name {query.name} is taken", hint="Choose another name, or drop what has it first")
        settings = self._settings.of_query(query.options)
        plan = plan_join(query, settings, Knowledge(declared=known_statistics(self._catalog)))
        changed = {name: str(value) for name, value in asdict(settings).items() if value != getattr(_DEFAULT, name)}
        made = self.sinks.make(query, sink)
        _check_unshared(made, self._sinks)
        with self._paused():
            self._queries[key] = (Registered(query.name, query.text, changed), query, plan)
            self._sinks[key] = made
        return SparkQuery(self, query.name)

    def drop(self, name: str) -> None:
        """Drop a query, also while the engine runs; the others notice nothing."""
        with self._lock:
            self._drop("query", name, if_exists=False)

    def _drop(self, kind: str, name: str, *, if_exists: bool) -> None:
        key = name.casefold()
        if kind == "query":
            if key not in self._queries:
                if if_exists:
                    return
                raise CatalogError(f"there is no query {name}", hint=f"There are {', '.join(self._queries) or 'none'}")
            with self._paused():
                del self._queries[key]
                sink = self._sinks.pop(key)
                self._tally.results.pop(key, None)
            if isinstance(sink, MemorySink):
                sink.forget()
            return
        relation = self._catalog.find(name)
        if relation is None or isinstance(relation, Stream) != (kind == "stream"):
            if if_exists:
                return
            raise CatalogError(f"there is no {kind} {name}", hint="Check the name")
        self._check_stopped(f"{kind} {name} cannot be dropped")
        users = [query.name for _, query, _ in self._queries.values() if any(s.relation == relation.name for s in query.sources)]
        if users:
            raise CatalogError(f"{kind} {relation.name} is read by query {', '.join(users)}", hint="Drop those queries first")
        self._catalog.remove(name)
        self._frames.pop(relation.name, None)
        self._tables.pop(relation.name, None)

    def _check_free(self, name: str) -> None:
        if name.casefold() in self._queries:
            raise CatalogError(f"there is already a query {name}", hint="Choose another name, or drop it first")

    def _check_stopped(self, what: str) -> None:
        if self._streaming is not None and self._streaming.isActive:
            raise CatalogError(f"{what} while the engine runs", hint="Stop it first; queries can be added and dropped at any time")

    # -- running -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Run until stopped: one micro-batch after the other, as the trigger says."""
        with self._lock:
            self._start(live=True)

    def process_available(self, until: Instant | None = None) -> None:
        """Process all input there is now, then return; ``until`` then moves time on to that instant, see :meth:`advance`."""
        self._process()
        if until is not None:
            self.advance(until)
            self._process()

    def _process(self) -> None:
        with self._lock:
            self._start(live=False)
            streaming = self._streaming
        while streaming is not None:
            try:
                streaming.awaitTermination()
            except StreamingQueryException as error:
                raise self._explained(error) from error
            with self._lock:  # a query added or dropped meanwhile goes on in another one
                streaming = self._streaming if self._streaming is not streaming else None
        self._end_residents()

    def settle(self) -> None:
        """Wait, while the engine runs, until all input there is now is processed; starts it if it does not run.

        For tests and demonstrations: where input never ends, this need not either.
        """
        with self._lock:
            if self._streaming is None or not self._streaming.isActive:
                self._start(live=True)
            streaming = self._streaming
        assert streaming is not None, "it was started"
        try:
            streaming.processAllAvailable()
        except StreamingQueryException as error:
            raise self._explained(error) from error

    def advance(self, to: Instant) -> None:
        """Promise that nothing earlier will come on any stream; in force from the next batch on, and durable.

        Rows of that batch are taken first, so let all rows up to there be processed before.
        """
        self._moments.tell(parse_instant(to))

    def _start(self, *, live: bool, again: bool = False) -> None:
        if self._streaming is not None and self._streaming.isActive:
            raise CatalogError("the engine is running", hint="Stop it first")
        prepare()
        self._failure = None
        wanted = self._program(empty=again)
        sources = {stream.name: self._source(stream) for stream in self._catalog.streams()}
        self._checkpoint.acquire()
        try:
            self._begin(wanted, sources, live=live)
        except BaseException:
            self._checkpoint.release()
            raise
        if live and self._delay is not None:
            self._heartbeat = Heartbeat(self._moments, self._delay)

    def _begin(self, wanted: Program, sources: Mapping[str, Source], *, live: bool) -> None:
        self._run, program = self._checkpoint.resume(wanted)
        self._checkpoint.check_logs()
        self._checkpoint.check_planned()
        self.sinks.forget_others(self._sinks.values())
        # State is in as many partitions as there are buckets, from the first start on.
        self.spark.conf.set("spark.sql.shuffle.partitions", str(self.buckets))
        outputs = build(self.spark, program, sources, self._run, self._moments)
        writer = (
            outputs.writeStream.outputMode("append").option("checkpointLocation", str(self._checkpoint.spark)).foreachBatch(self._write)
        )
        writer = writer.trigger(processingTime=self._trigger) if live else writer.trigger(availableNow=True)
        self._streaming = writer.start()
        self._live = live

    def _halt(self) -> None:
        """End the streaming query, if one runs."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None
        if self._streaming is not None:
            self._streaming.stop()

    def _source(self, stream: Stream) -> Source:
        frame = self._frames.get(stream.name)
        return read_stream(self.spark, stream) if frame is None else Source(frame)

    def _program(self, *, empty: bool) -> Program:
        """What was declared; only an engine that goes on may be left without queries."""
        queries = tuple(registered for registered, _, _ in self._queries.values())
        if not queries and not empty:
            raise InputError("there is no query to run", hint="Register one with engine.query or CREATE QUERY")
        return Program(tuple(self._catalog.streams()), dict(self._tables), queries, (), self.buckets)

    def _paused(self) -> _Paused:
        return _Paused(self)

    def stop(self) -> None:
        """Stop after what is being done; a batch that is not complete is done again at the next start."""
        with self._lock:
            self._halt()
            self._end_residents()

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the engine stops, at most so many seconds; whether it has. Raises what made it fail."""
        if self._streaming is None:
            return True
        try:
            done = self._streaming.awaitTermination(ceil(timeout)) if timeout is not None else self._streaming.awaitTermination()
        except StreamingQueryException as error:
            raise self._explained(error) from error
        return bool(done) if done is not None else True

    def _end_residents(self) -> None:
        """End the processes of the buckets, and let others have the checkpoint."""
        if self._run:
            for number in range(self.buckets):
                Resident(self._run, number, 0).stop()
        self._checkpoint.release()

    def _explained(self, error: StreamingQueryException) -> RunError:
        """What went wrong, without Java's part of the story."""
        self._end_residents()
        if self._failure is not None:
            return self._failure
        fact = fact_of(str(error))
        if "CANNOT_LOAD_STATE_STORE" in str(error) or f"Checksum error: file:{self._checkpoint.folder}" in str(error):
            return RunError(
                f"the checkpoint {self._checkpoint.folder} is damaged: {fact}",
                hint=f"Restore the folder as a whole from a copy, or begin a new checkpoint{java_log.keep()}",
            )
        return RunError(f"the run failed: {fact}", hint=f"Nothing is lost: repair it and start again from the checkpoint{java_log.keep()}")

    # -- output ------------------------------------------------------------------------------------

    def _write(self, outputs: DataFrame, batch: int) -> None:
        """Hand the outputs of a batch to their sinks."""
        found: dict[tuple[str, str], list[Row]] = {}
        for row in outputs.collect():
            found.setdefault((row["kind"], row["name"]), []).append(row)
        told = [json.loads(bytes(row["blob"])) for row in found.pop((STATS, ""), [])]
        tables = {name: [from_blob(bytes(row["blob"])) for row in rows] for name, rows in found.items()}
        results, late = {}, {}
        for key, (_, query, _) in list(self._queries.items()):
            own = tables.get((RESULTS, query.name), [])
            results[key] = sum(len(table) for table in own)
            with self._named(f"the sink of query {query.name}", batch):
                self._sinks[key].write(gathered(query, own, self._ducks[0]), batch)
        for stream in self._catalog.streams():
            own = tables.get((LATE, stream.name), [])
            if own:
                late[stream.name] = sum(len(table) for table in own)
                with self._named(f"the file of late rows of stream {stream.name}", batch):
                    self._late_sink(stream).write(pa.concat_tables(own), batch)
        self._tally.add(batch, told, results, late)

    @contextmanager
    def _named(self, what: str, batch: int) -> Iterator[None]:
        """Say which sink it was that failed."""
        try:
            yield
        except Exception as error:
            self._failure = SinkError(
                f"{what} failed in batch {batch}: {type(error).__name__}: {error}",
                hint="Repair it and start again: the batch is done again, other sinks keep what they have once",
            )
            raise self._failure from error

    def _late_sink(self, stream: Stream) -> FileSink:
        return FileSink(self._checkpoint.folder / "muntin" / "late" / quote(stream.name, safe="").replace(".", "%2E"), "parquet")

    def late(self, stream: str) -> pa.Table:
        """The late rows of a stream so far."""
        relation = self._catalog.find(stream)
        if not isinstance(relation, Stream):
            raise CatalogError(f"there is no stream {stream}", hint="Check the name")
        return read_batches(self._late_sink(relation).folder, relation.schema)

    def results(self, name: str) -> pa.Table:
        """All changes of a query so far, if its sink is memory."""
        sink = self._sinks.get(name.casefold())
        if not isinstance(sink, MemorySink):
            raise InputError(f"query {name} has no results in memory", hint="Register it with sink='memory'")
        return sink.table()

    @property
    def streaming(self) -> StreamingQuery | None:
        """Spark's streaming query, running or ended; None before the first start."""
        return self._streaming

    @property
    def progress(self) -> dict[str, Any] | None:
        """What Spark tells of the last batch, with our counts under ``muntin``."""
        if self._streaming is None or self._streaming.lastProgress is None:
            return None
        last = self._streaming.lastProgress
        told: dict[str, Any] = json.loads(last.json)
        told["muntin"] = self._tally.told([stream.name for stream in self._catalog.streams()], {
            key: query.name for key, (_, query, _) in self._queries.items()
        })  # fmt: skip
        return told

    def explain(self) -> str:
        """The plans of all queries, and how their streams are spread over the buckets."""
        return "\n\n".join(draw(self._described(query, plan)) for _, query, plan in self._queries.values()) or "no queries"

    def _described(self, query: Query, plan: JoinPlan) -> Node:
        routes = distribute(query).routes
        spread = Node("spread", f"spread over {self.buckets} buckets", tuple(Fact(r.stream, str(r), str(r)) for r in routes))
        node = describe_plan(plan)
        return replace(node, children=(spread, *node.children))


class _Paused:
    """Between two batches: what is changed inside takes effect at the next one."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine
        self._running = False

    def __enter__(self) -> None:
        streaming = self._engine._streaming  # noqa: SLF001 (a part of the engine)
        self._running = streaming is not None and streaming.isActive
        if self._running:
            self._engine._halt()  # noqa: SLF001

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._running and kind is None:
            self._engine._start(live=self._engine._live, again=True)  # noqa: SLF001


def _sink_of(query: Query) -> SinkChoice:
    """The sink that a query's WITH names."""
    options = {name.lower(): value for name, value in query.options if name.lower() in {"sink", "format", "path"}}
    sink = options.get("sink")
    if sink in {None, "memory", "console"} and "path" not in options:
        return sink
    return {"format": options.get("format", sink or ""), **({"path": options["path"]} if "path" in options else {})}


def _check_unshared(sink: Sink, others: Mapping[str, Sink]) -> None:
    """Raise when the folder of a sink is that of another: their batches have the same names."""
    for name, other in others.items():
        if isinstance(sink, FileSink) and isinstance(other, FileSink) and sink.folder.absolute() == other.folder.absolute():
            raise SettingError(f"{sink.folder} is where query {name} writes to", hint="Give every query a folder of its own")


def _plain(schema: pa.Schema) -> pa.Schema:
    """Times without a zone: Spark's are UTC, as ours."""
    fields = [pa.field(f.name, pa.timestamp("us")) if pa.types.is_timestamp(f.type) else pa.field(f.name, f.type) for f in schema]
    return pa.schema(fields)


def _local_folder(path: str | Path | None) -> Path:
    text = str(path).removeprefix("file://")
    if "://" in text:
        raise InputError(f"the checkpoint {path} is not a folder that this process can reach", hint="Give a local or mounted folder")
    if any(sign in text for sign in "*?[]{}\\"):
        raise InputError(f"the checkpoint {path} has signs in its name that Spark takes for a pattern", hint="Leave out * ? [ ] { } and \\")
    return Path(text).absolute()
