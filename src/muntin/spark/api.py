"""The engine on Spark: INTERFACE section 3.

Declarations are kept until the engine starts; then they are one streaming query. A query that is added or dropped while it
runs is announced by a control row. When the batch that has it is done, the change is written into the checkpoint with the number
of the next batch, from which on it is in force. So changes are durable and ordered with the data, and nothing stops for them.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import ceil
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from muntin.engine.declaration_checks import SinkOptions, confined
from muntin.engine.declarations import Actions, Declarations, run_script
from muntin.engine.explain_pipeline import describe_any, describe_tree
from muntin.engine.input_rows import read_rows
from muntin.engine.subscription import Subscription
from muntin.engine.table_files import load_table
from muntin.errors import CatalogError, InputError, RunError, SettingError
from muntin.kernels.jit import prepare, prepare_part
from muntin.model.allowed_paths import AllowedPaths
from muntin.model.arguments import check_name
from muntin.model.catalog import Stream, Table
from muntin.model.clock import BEFORE_ALL, Instant, parse_instant, parse_interval
from muntin.model.settings import Settings, Strategy
from muntin.plan.description import Fact, Node, draw
from muntin.plan.join import JoinPlan
from muntin.plan.pipeline import Pipeline, PipelinePlan
from muntin.plan.query import Query
from muntin.planner.join_planner import plan_join
from muntin.planner.pipeline_distribution import PipelineDistribution, distribution_of
from muntin.runtime.stalled_stream import describe_waiting
from muntin.spark.deployment import DeployedQuery, Deployment
from muntin.spark.driver.checkpoint import Checkpoint
from muntin.spark.driver.failures import fact_of
from muntin.spark.driver.listener import PATIENCE, OnProgress, Run, RunListener
from muntin.spark.driver.load_controller import LoadController
from muntin.spark.driver.metrics import STATS
from muntin.spark.driver.output_writer import Found, OutputWriter, RegisteredQuery
from muntin.spark.driver.query_changes import (
    PendingChange,
    exports,
    forget_brought,
    forget_unknown,
    settled,
)
from muntin.spark.driver.resume_plan import in_force, meaning_of
from muntin.spark.driver.shutdown import (
    BatchInterrupted,
    after_query,
    end_query,
    end_residents,
    wait_for,
)
from muntin.spark.driver.sink_ownership import SinkOwner, occupied
from muntin.spark.driver.streaming_query import StreamingInputs, build
from muntin.spark.driver.subscriptions import Subscriber, Subscriptions
from muntin.spark.exchange.controls import CONTROLS, ControlLog, Heartbeat
from muntin.spark.exchange.messages import to_blob
from muntin.spark.partition.offline_state import held_at_rest
from muntin.spark.partition.push_channel import Address, Reception
from muntin.spark.partition.spool import Spool
from muntin.spark.session import STREAMING, driver_host, java_log, local_session, polling_less
from muntin.spark.sinks import (
    FileSink,
    MemorySink,
    Sink,
    SinkChoice,
    SinkMaker,
    identity_of,
    read_batches,
)
from muntin.spark.sources import Source, arrow_schema, check_repeatable, fitted, read_stream
from muntin.spark.standing_query import SparkQuery
from muntin.spark.temp_files import HeldFolder, sweep
from muntin.sql.streams import make_stream, make_table, read_slack

_log = logging.getLogger("muntin.spark")

_GLANCE = 0.05
"""Seconds between looks at whether the streaming query still runs."""
_CHANGE = 300.0
"""Seconds within which a batch has to take in a query that is added or dropped, besides two trigger intervals."""
_SETTLE = 600.0
_STOP = 60.0


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
        The name of ``partitions`` in version 0.1; it will be removed in 0.3.
    partitions : int, optional
        Into how many shares the work is cut; None: one for each core.
    heartbeat : str, optional
        In live runs, how far behind the clock time moves on although no row comes, e.g. "10 seconds"; None: only rows move it.
    on_progress : callable, optional
        Called after every batch with what :attr:`progress` gives, in a thread of its own; what it raises is logged.
    allowed_paths : list of str or Path, optional
        The folders that scripts are confined to, and URLs that Spark can reach: statements that name a path elsewhere, or
        a format that reaches more than files, are refused. None: no confinement. Give it when you run scripts of others.
    replace : bool
        Whether a query may delete output that is in its way: batches of other runs or of other queries in the folder of
        its sink, and its own from before it was changed. False: that is an error.
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
        replace: bool = False,
        **settings: object,
    ) -> None:
        self._declared = Declarations(allowed=AllowedPaths.of(allowed_paths), connected=True)
        for name, value in settings.items():
            self._declared.set(name, value)
        if buckets is not None:
            warnings.warn(
                "SparkEngine(buckets=...) is now SparkEngine(partitions=...)",
                FutureWarning,
                stacklevel=2,
            )
            partitions = buckets if partitions is None else partitions
        if partitions is not None and (type(partitions) is not int or partitions < 1):
            raise SettingError(
                f"partitions cannot be {partitions!r}", hint="Give a whole number of at least 1"
            )
        self.spark = spark or local_session(partitions or 2)
        self.partitions = partitions or max(self.spark.sparkContext.defaultParallelism, 1)
        for key, value in STREAMING.items():
            self.spark.conf.set(key, value)
        sweep()
        self._checkpoint = Checkpoint(
            _local_folder(checkpoint if checkpoint is not None else self._temporary_folder())
        )
        self._trigger = f"{parse_interval(trigger) // 1000} milliseconds"
        self._controls = ControlLog(self._checkpoint.folder / "muntin" / "controls")
        self._governor = LoadController(
            self.partitions, parse_interval(trigger) / 1e6, self._controls.send
        )
        weakref.finalize(self, self._governor.close)
        self._delay = parse_interval(heartbeat) if heartbeat else None
        self._heartbeat: Heartbeat | None = None
        self._on_progress = on_progress
        self._may_replace = replace
        self._anew: set[str] = set()
        """Queries that were dropped since the engine ran last: under the same name they start anew."""
        self._listener: RunListener | None = None
        self._live = False
        self._stopping = False
        self._stuck: threading.Thread | None = None
        """Waits for a streaming query that did not stop in time, and then releases the checkpoint."""
        self._patience = _CHANGE + 2 * parse_interval(trigger) / 1e6
        self._lock = threading.RLock()
        self._catalog = self._declared.catalog
        self._frames: dict[str, DataFrame] = {}
        self._tables: dict[str, bytes] = {}
        self._queries: dict[str, RegisteredQuery] = {}
        self._pending: dict[str, PendingChange] = {}
        """Changes that control rows announce and no batch has brought yet, by the names of the controls."""
        self._program: Deployment | None = None
        self._ran = -1
        """The last batch in which partitions had something to do, since this process began."""
        self.sinks = SinkMaker(self.spark, self._checkpoint.folder / "muntin" / "results")
        self._streaming: StreamingQuery | None = None
        self._run = ""
        self._delivery = OutputWriter(
            self._checkpoint.program_file.parent, Spool(self._checkpoint.tasks.spool)
        )
        weakref.finalize(self, self._delivery.close)
        self._subscriptions = Subscriptions()
        self._reception: Reception | None = None

    def _temporary_folder(self) -> str:
        """A folder that goes with the engine."""
        self._temporary = HeldFolder("checkpoint")
        return str(self._temporary.path)

    # -- declarations ------------------------------------------------------------------------------

    def execute(self, script: str) -> list[SparkQuery]:
        """Run the statements of a script in order and return the queries it created."""
        actions = Actions(
            lambda stream: self._add_stream(stream, None),
            lambda table: self._add_table(table, load_table(table, self._declared.allowed)),
            lambda query: self._add_query(query, None),
            lambda drop: self._drop(drop.kind, drop.name, if_exists=drop.if_exists),
        )
        try:
            with self._lock:
                return run_script(script, self._declared, actions)
        finally:
            self._await_changes()

    def stream(
        self, name: str, source: DataFrame, *, time: str | None = None, slack: str | int = 0
    ) -> None:
        """Declare a stream over a streaming DataFrame."""
        given: object = source
        if not isinstance(given, DataFrame):
            fact = f"stream {name} cannot be made from {type(given).__name__}"
            raise InputError(
                fact, hint="Pass a streaming DataFrame, as spark.readStream makes them"
            )
        if not source.isStreaming:
            raise InputError(
                f"the DataFrame of stream {name} is not streaming",
                hint="Use spark.readStream, or engine.table for stored rows",
            )
        micros = read_slack(name, slack)
        with self._lock:
            stream = make_stream(name, _plain(arrow_schema(source.schema)), time, micros)
            self._add_stream(stream, fitted(source, stream))

    def _add_stream(self, stream: Stream, frame: DataFrame | None) -> None:
        self._check_stopped(f"stream {stream.name} cannot be declared")
        added = self._declared.add_stream(stream)
        if frame is not None:
            self._frames[added.name] = frame

    def table(self, name: str, rows: DataFrame | pa.Table | Sequence[Mapping[str, object]]) -> None:
        """Declare a stored table with its rows; they are read now."""
        try:
            arrow = rows.toArrow() if isinstance(rows, DataFrame) else rows
            arrow = arrow if isinstance(arrow, pa.Table) else pa.Table.from_pylist(list(arrow))
            arrow = arrow.cast(_plain(arrow.schema))
        except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
            fact = f"cannot make table {name} from {type(rows).__name__}"
            raise InputError(
                fact, hint="Pass a DataFrame, a pyarrow Table or a list of dicts"
            ) from error
        with self._lock:
            table = make_table(name, arrow.schema)
            self._add_table(table, read_rows(arrow, table.schema, f"table {name}"))

    def _add_table(self, table: Table, rows: pa.Table) -> None:
        self._check_stopped(f"table {table.name} cannot be declared")
        self._declared.add_table(table)
        self._tables[table.name] = to_blob(rows.combine_chunks())

    def query(self, sql: str, name: str | None = None, sink: SinkChoice = None) -> SparkQuery:
        """Register a standing query, also while the engine runs: rows that come after this has returned count for it."""
        with self._lock:
            query = self._declared.read(sql, name)
            handle = self._add_query(query, sink)
        self._await_changes()
        return handle

    def _add_query(self, query: Query, sink: SinkChoice) -> SparkQuery:
        """Register a query; without a sink it has the one of its WITH."""
        self._declared.check_query(query)
        settings, plan = (
            self._declared.planned_pipeline(query)
            if isinstance(query, Pipeline)
            else self._declared.planned(query)
        )
        if settings.changes.strategy is Strategy.INPUT:
            raise SettingError(
                f"query {query.name} cannot be triggered by input alone on Spark, where an instant's results come from all partitions at once",
                hint="Take another value for the setting pipeline, or run the query in process",
            )
        settings, plan = self._limited(settings, query, plan)
        changed = settings.changed()
        changed.pop("max_advance", None)  # it belongs to the deployment
        meaning = meaning_of(query, settings)
        made = self.sinks.make(
            query, _sink_of(query, self._declared.allowed) if sink is None else sink, meaning
        )
        _check_unshared(made, self._queries.values())
        registered = DeployedQuery(
            query.name, query.text, changed, meaning, identity_of(made), uuid.uuid4().hex[:12]
        )
        if self._is_live():
            made.claim(self._owner(registered), replace=self._may_replace)
        self._queries[query.name.casefold()] = RegisteredQuery(registered, query, plan, made)
        if isinstance(plan, JoinPlan) and plan.limiting is not None:
            self._governor.add(plan, settings)
        self._declared.add_query(query)
        self._announce(PendingChange(added=registered))
        return SparkQuery(self, query.name)

    def _limited(
        self, settings: Settings, query: Query, plan: JoinPlan | PipelinePlan
    ) -> tuple[Settings, JoinPlan | PipelinePlan]:
        """The settings and the plan of a query under overload: all partitions and the driver have one tree, which stays.

        Answers of pipelines are put together from all partitions; they are never limited here.
        """
        if isinstance(plan, PipelinePlan):
            return settings.having("overload", "queue"), plan
        if plan.limiting is None or plan.tree is None:
            return settings, plan
        fixed = (
            settings.having("sharing", "off").having("replan", "off").having("tree", plan.tree.text)
        )
        return fixed, plan_join(query, fixed)

    def _is_live(self) -> bool:
        return self._live and self._streaming is not None and bool(self._streaming.isActive)

    def _owner(self, registered: DeployedQuery) -> SinkOwner:
        return SinkOwner(
            self._run, registered.name, registered.incarnation, str(self._checkpoint.folder)
        )

    def _claim_sinks(self, registered: Iterable[DeployedQuery]) -> None:
        """Take the folders of sinks for the queries of this run; none, if a single one belongs to somebody else."""
        claims = [
            (self._queries[query.name.casefold()].sink, self._owner(query)) for query in registered
        ]
        for sink, owner in claims if not self._may_replace else ():
            place = sink.place()
            obstacle = place.obstacle(owner) if place is not None else ""
            if obstacle:
                raise occupied(obstacle)
        for sink, owner in claims:
            sink.claim(owner, replace=self._may_replace)

    def _announce(self, wanted: PendingChange) -> None:
        """Send the control row of a change, if the engine runs; otherwise the next start finds it."""
        if not self._is_live():
            return
        assert self._program is not None, "it runs"
        program = reduce(
            lambda program, pending: pending.after(program), self._pending.values(), self._program
        )
        self._pending[wanted.name] = wanted
        self._controls.send(wanted.control(program))

    def _await_changes(self) -> None:
        """Wait until the changes announced are settled, or the engine does not run any more.

        The caller must not hold the lock, so that others can stop the engine meanwhile.
        """
        if self._delivery.thread == threading.get_ident():
            return  # a sink asked for them: they are settled after it
        until = time.monotonic() + self._patience
        for wanted in list(self._pending.values()):
            while (
                not wanted.done.wait(_GLANCE)
                and self._streaming is not None
                and self._streaming.isActive
            ):
                if time.monotonic() > until:
                    raise RunError(
                        f"no batch has taken in the change of {wanted.about} for {self._patience:.0f} seconds",
                        hint="It is still to come, with the next batch; look at engine.progress, or stop and start the engine",
                    )

    def drop(self, name: str) -> None:
        """Drop a query, also while the engine runs; the others notice nothing."""
        with self._lock:
            self._drop("query", name, if_exists=False)
        self._await_changes()

    def _drop(self, kind: str, name: str, *, if_exists: bool) -> None:
        if kind == "query":
            if self._declared.drop_query(name, if_exists=if_exists) is not None:
                standing = self._queries.pop(name.casefold())
                if self._program is not None and not self._is_live():
                    self._anew.add(standing.registered.name)
                self._delivery.tally.forget(name.casefold())
                self._governor.drop(standing.query.name)
                self._subscriptions.forget(name)
                self._announce(PendingChange(dropped=standing.registered.name))
                if isinstance(standing.sink, MemorySink):
                    standing.sink.forget()
            return
        self._check_stopped(f"{kind} {name} cannot be dropped")
        relation = self._declared.drop_relation(kind, name, if_exists=if_exists)
        if relation is None:
            return
        self._frames.pop(relation.name, None)
        self._tables.pop(relation.name, None)

    def _check_stopped(self, what: str) -> None:
        if self._streaming is not None and self._streaming.isActive:
            raise CatalogError(
                f"{what} while the engine runs",
                hint="Stop it first; queries can be added and dropped at any time",
            )

    # -- running -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Run until stopped: one micro-batch after the other, as the trigger says."""
        with self._lock:
            self._start(live=True)

    def process_available(self, until: Instant | None = None, timeout: float | None = None) -> None:
        """Process all input that is available now, then return.

        An engine that runs goes on running, as after Spark's ``processAllAvailable``: where input never pauses,
        this returns only after ``timeout`` seconds, with an error. An engine that does not run is started and
        stopped again, without a timeout.

        Parameters
        ----------
        until : str, datetime or int, optional
            Then advance time to that instant, see :meth:`advance`, and process what follows from it.
        timeout : float, optional
            Seconds to wait for an engine that runs; None: as long as it takes.
        """
        moment = None if until is None else parse_instant(until)
        if self._live and self._streaming is not None and self._streaming.isActive:
            self._caught_up(self._streaming, timeout)
            if moment is not None:
                self.advance(moment)
                self._caught_up(self._streaming, timeout)
            return
        self._process(more=moment is not None)
        if moment is not None:
            try:
                self.advance(moment)
                self._process()
            except BaseException:  # also when it could not be started again
                self._end_residents()
                raise

    def _caught_up(self, streaming: StreamingQuery, timeout: float | None) -> None:
        """Wait until a trigger of a running query has found no new input."""
        try:
            wait_for(streaming.processAllAvailable, timeout, "processing the available input")
        except StreamingQueryException as error:
            raise self._explained(error) from error

    def _process(self, *, more: bool = False) -> None:
        """Process what there is; where ``more`` follows at once, the processes of the partitions go on."""
        with self._lock:
            self._start(live=False)
            streaming = self._streaming
        assert streaming is not None, "it was started"
        done = False
        try:
            streaming.awaitTermination()
            done = True
        except StreamingQueryException as error:
            raise self._explained(error) from error
        finally:
            self._heard()
            if not (done and more):
                self._end_residents()
            self._subscriptions.drain(PATIENCE)

    def settle(self, timeout: float | None = _SETTLE) -> None:
        """Start the engine if it does not run, then wait until all input that is available now is processed.

        Raises
        ------
        RunError
            When that takes longer than ``timeout`` seconds, for example because input never pauses.
        """
        with self._lock:
            if self._streaming is None or not self._streaming.isActive:
                self._start(live=True)
            streaming = self._streaming
        assert streaming is not None, "it was started"
        self._caught_up(streaming, timeout)

    def advance(self, to: Instant) -> None:
        """Promise that nothing earlier will come on any stream; in force from the next batch on, and durable.

        Rows of that batch are taken first, so let all rows up to there be processed before.
        """
        self._controls.tell(parse_instant(to))

    def _start(self, *, live: bool) -> None:
        if self._streaming is not None and self._streaming.isActive:
            raise CatalogError("the engine is running", hint="Stop it first")
        if self._stuck is not None and self._stuck.is_alive():
            raise RunError(
                f"the last run has not ended: {self._delivery.at_work or 'Spark'} is stuck",
                hint="Start again when it has returned, or in another process after this one has ended",
            )
        self._stopping = False
        prepare()
        if any(isinstance(standing.query, Pipeline) for standing in self._queries.values()):
            prepare_part("changes")  # here, once: the processes of partitions find them compiled
            prepare_part("pipelines")
        self._delivery.failure = None
        if live:
            self._governor.check_pace()
        else:
            self._governor.release()
        wanted = self._wanted()
        sources = {stream.name: self._source(stream) for stream in self._catalog.streams()}
        check_repeatable(sources, begun=self._checkpoint.begun(), live=live)
        self._checkpoint.acquire()
        try:
            self._begin(wanted, sources, live=live)
        except BaseException:
            self._checkpoint.release()
            raise
        if live and self._delay is not None:
            self._heartbeat = Heartbeat(
                self._controls, self._delay, lambda: self._delivery.tally.due
            )

    def _begin(self, wanted: Deployment, sources: Mapping[str, Source], *, live: bool) -> None:
        program = self._program = self._resumed(wanted)
        self._checkpoint.check_planned()
        self._delivery.begin(program, self._checkpoint.last_batch() + 1)
        self._delivery.tally.due = BEFORE_ALL
        self._delivery.spool.clear()
        forget_unknown(program, self._checkpoint.tasks.carried)
        self.sinks.forget_others(standing.sink for standing in self._queries.values())
        # State is in as many partitions as there are partitions, from the first start on.
        self.spark.conf.set("spark.sql.shuffle.partitions", str(self.partitions))
        plumbing = StreamingInputs(
            self._checkpoint.tasks, sources, self._controls, self._run, self._received()
        )
        outputs = build(self.spark, program, plumbing)
        writer = (
            outputs.writeStream.outputMode("append")
            .option("checkpointLocation", str(self._checkpoint.spark))
            .foreachBatch(self._write)
        )
        writer = (
            writer.trigger(processingTime=self._trigger)
            if live
            else writer.trigger(availableNow=True)
        )
        self._streaming = self._listened(writer)
        self._live = live

    def _received(self) -> Address:
        """Where partitions find this process, which from now on takes what they release."""
        self._close_reception()
        reception = self._reception = Reception(*driver_host(self.spark), self._subscriptions.take)
        weakref.finalize(self, reception.close)
        self._subscriptions.begin(self._checkpoint.tasks.subscribed)
        return reception.address

    def _close_reception(self) -> None:
        if self._reception is not None:
            self._reception.close()
            self._reception = None
            self._subscriptions.end()

    def _resumed(self, wanted: Deployment) -> Deployment:
        """The program to go on with: the one of the checkpoint, with what was added and dropped since in force from the next batch on."""
        resumed = self._checkpoint.resume(
            wanted, frozenset(self._anew), may_replace=self._may_replace
        )
        self._checkpoint.check_logs()
        self._run, program = resumed.run, resumed.deployment
        self._claim_sinks(
            [
                *(query for query in in_force(program) if query.name not in resumed.dropped),
                *resumed.added,
            ]
        )
        self._pending.clear()  # announced or not, what is declared now counts
        changes = [PendingChange(dropped=name) for name in resumed.dropped] + [
            PendingChange(added=query) for query in resumed.added
        ]
        last = self._checkpoint.last_batch()
        for change in changes:
            needed = exports(program, change.added) if change.added else ()
            held = (
                held_at_rest(self.spark, self._checkpoint.spark, program, needed)
                if needed and last >= 0
                else {}
            )
            program = settled(program, change, last + 1, held, self._checkpoint.tasks.carried)
        self._checkpoint.write(self._run, program)
        self._anew.clear()
        return program

    def _listened(self, writer: DataStreamWriter) -> StreamingQuery:
        """Start the streaming query, with a listener that goes when it ends."""
        queries = ", ".join(standing.query.name for standing in self._queries.values()) or "none"
        partitions = f"{self.partitions} {'partition' if self.partitions == 1 else 'partitions'}"
        about = f"queries {queries}; {partitions}; checkpoint {self._checkpoint.folder}, from batch {self._checkpoint.last_batch() + 1}"
        run = Run(
            f"muntin-{uuid.uuid4().hex[:12]}",
            about,
            lambda batch: self._delivery.tally.noted(batch) or self._counts(),
            self._reason,
        )
        self._listener = RunListener(self.spark, run, self._on_progress)
        self._listener.attach()
        try:
            with polling_less(self.spark):
                return writer.queryName(run.name).start()
        except BaseException:
            self._listener.detach()
            raise

    def _heard(self) -> None:
        """Wait until the listener has told of all batches of a streaming query that has ended."""
        if self._listener is not None:
            self._listener.wait()

    def _halt(self, seconds: float) -> bool:
        """End the streaming query, if one runs; return whether it has ended within ``seconds``."""
        self._stopping = True
        if self._heartbeat is not None:
            self._heartbeat.stop(min(seconds, PATIENCE))
            self._heartbeat = None
        if self._streaming is None:
            return True
        if not end_query(self.spark, self._streaming, seconds):
            return False
        self._heard()
        return True

    def _source(self, stream: Stream) -> Source:
        frame = self._frames.get(stream.name)
        if frame is not None:
            return Source(frame)
        options = confined(
            stream.options, self._declared.allowed, patterns=True
        )  # as the folders are now
        return read_stream(self.spark, replace(stream, options=options))

    def _wanted(self) -> Deployment:
        """The program as it was declared."""
        queries = tuple(standing.registered for standing in self._queries.values())
        if not queries:
            raise InputError(
                "there is no query to run", hint="Register one with engine.query or CREATE QUERY"
            )
        return Deployment(
            tuple(self._catalog.streams()),
            dict(self._tables),
            queries,
            (),
            self.partitions,
            self._declared.settings.engine.max_advance,
        )

    def stop(self, timeout: float = _STOP) -> None:
        """Stop; a batch that is not complete is done again at the next start.

        Processes of partitions that do not answer are killed. A sink that does not return cannot be: then the
        checkpoint stays locked until it has returned or this process ends, so that it never writes beside
        another run.

        Raises
        ------
        RunError
            When a sink, or Spark, has not returned within ``timeout`` seconds; the error names it.
        """
        until = time.monotonic() + timeout
        if not self._lock.acquire(timeout=timeout):
            raise RunError(
                f"the engine has been starting for {timeout:g} seconds", hint="Stop it again later"
            )
        try:
            self._stop_before(until)
        finally:
            self._lock.release()
        self._subscriptions.drain(PATIENCE)

    def _stop_before(self, until: float) -> None:
        if self._halt(max(until - time.monotonic(), _GLANCE)):
            self._end_residents(max(until - time.monotonic(), 1.0))
            return
        streaming, at_work = self._streaming, self._delivery.at_work
        assert streaming is not None, "it did not end"
        end_residents(self._run, self.partitions, 1.0)
        self._close_reception()
        self._stuck = after_query(streaming, self._checkpoint.release)
        fact = (
            f"{at_work} has not returned" if at_work else "Spark has not ended the batch under way"
        )
        error = RunError(
            f"the engine did not stop in time: {fact}",
            hint="The checkpoint stays locked until that is over or this process ends; the batch will be done again",
        )
        _log.warning("%s", error)
        raise error

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the engine stops, at most so many seconds; whether it has. Raises what made it fail."""
        if self._streaming is None:
            return True
        try:
            done = (
                self._streaming.awaitTermination(ceil(timeout))
                if timeout is not None
                else self._streaming.awaitTermination()
            )
        except StreamingQueryException as error:
            raise self._explained(error) from error
        return bool(done) if done is not None else True

    def _end_residents(self, seconds: float = PATIENCE) -> None:
        """End the processes of the partitions, and let others have the checkpoint."""
        if self._run:
            end_residents(self._run, self.partitions, seconds)
        self._close_reception()
        self._checkpoint.release()

    def _explained(self, error: StreamingQueryException) -> RunError:
        """What went wrong, without Java's part of the story."""
        self._end_residents()
        if self._delivery.failure is not None:
            return self._delivery.failure
        fact, text, keep = self._reason(str(error)), str(error), java_log.keep()
        if (
            "CANNOT_LOAD_STATE_STORE" in text
            or f"Checksum error: file:{self._checkpoint.folder}" in text
        ):
            hint = f"Restore the folder as a whole from a copy, or begin a new checkpoint{keep}"
            return RunError(
                f"the checkpoint {self._checkpoint.folder} is damaged: {fact}", hint=hint
            )
        return RunError(
            f"the run failed: {fact}",
            hint=f"Nothing is lost: repair it and start again from the checkpoint{keep}",
        )

    def _reason(self, text: str) -> str:
        """What went wrong, out of all that Java says about it."""
        return fact_of(text) if self._delivery.failure is None else self._delivery.failure.fact

    # -- output ------------------------------------------------------------------------------------

    def _write(self, outputs: DataFrame, batch: int) -> None:
        """Deliver the outputs of a batch; then settle the changes that came with it."""
        try:
            self._write_batch(outputs, batch)
        except Exception:
            if self._stopping:
                raise BatchInterrupted from None
            raise

    def _write_batch(self, outputs: DataFrame, batch: int) -> None:
        began = time.monotonic()
        found = self._delivery.collected(outputs)
        self._delivery.deliver(found, batch, self._queries, self._catalog.streams())
        for name in self._delivery.suspended:
            self._subscriptions.forget(
                name
            )  # partitions where it still runs must not release results
        self._govern(found, batch, time.monotonic() - began)
        self._delivery.tally.note(batch, self._counts())
        self._settle_changes(found, batch)
        self._delivery.spool.clear()
        self._clear_carried(batch, ran=(STATS, "") in found)

    def _govern(self, found: Found, batch: int, seconds: float) -> None:
        """Let limits follow how a batch went, in live runs; ``seconds`` is how long it took."""
        if self._live:
            self._governor.observe(
                batch, seconds, [json.loads(row["blob"]) for row in found.get((STATS, ""), ())]
            )

    def _clear_carried(self, batch: int, *, ran: bool) -> None:
        """Remove rows that lanes began with in an earlier batch, which is complete since this one came."""
        assert self._program is not None, "it runs"
        forget_brought(self._program, self._ran, self._checkpoint.tasks.carried)
        if ran:
            self._ran = batch

    def _settle_changes(self, found: Found, batch: int) -> None:
        """Write the changes whose controls came with a batch into the checkpoint: in force from the next one on."""
        came = [wanted for name, wanted in self._pending.items() if (CONTROLS, name) in found]
        if not came:
            return
        held = self._delivery.held(found)
        assert self._program is not None, "it runs"
        for wanted in came:
            self._program = settled(
                self._program,
                wanted,
                batch + 1,
                held.get(wanted.name, {}),
                self._checkpoint.tasks.carried,
            )
        self._checkpoint.write(self._run, self._program)
        self._delivery.follow(self._program)
        self._delivery.tally.due = (
            BEFORE_ALL  # partitions have yet to say what is due with the new queries
        )
        for wanted in came:
            del self._pending[wanted.name]
            wanted.done.set()

    def late(self, stream: str) -> pa.Table:
        """The late rows of a stream so far."""
        check_name(stream, "the name of a stream")
        relation = self._catalog.find(stream)
        if not isinstance(relation, Stream):
            raise CatalogError(f"there is no stream {stream}", hint="Check the name")
        return read_batches(self._delivery.late_sink(relation).folder, relation.schema)

    def results(self, name: str) -> pa.Table:
        """All changes of a query so far, if its sink is memory."""
        check_name(name, "the name of a query")
        standing = self._queries.get(name.casefold())
        if standing is None or not isinstance(standing.sink, MemorySink):
            raise InputError(
                f"query {name} has no results in memory", hint="Register it with sink='memory'"
            )
        return standing.sink.table()

    @property
    def streaming(self) -> StreamingQuery | None:
        """Spark's streaming query, running or ended; None before the first start."""
        return self._streaming

    @property
    def progress(self) -> dict[str, Any] | None:
        """What Spark tells of the last batch, with our counts under ``muntin``."""
        # As one text: PySpark asks Java for every number of a progress by itself, an eighth of a second each time.
        last = None if self._streaming is None else self._streaming._jsq.lastProgress()  # noqa: SLF001
        if last is None:
            return None
        told: dict[str, Any] = json.loads(last.json())
        told["muntin"] = self._counts()
        return told

    @property
    def last_batch(self) -> int:
        """The number of the last batch that is complete in the checkpoint, or -1."""
        return self._checkpoint.last_batch()

    def _counts(self) -> dict[str, Any]:
        """What we count, for progress."""
        queries = {key: standing.query.name for key, standing in list(self._queries.items())}
        told = self._delivery.tally.told(
            [stream.name for stream in self._catalog.streams()], queries
        )
        above, limited = self._delivery.stages.rows(), self._governor.told()
        suspended = self._delivery.suspended
        for name, query in told["queries"].items():  # every kind of query has the same keys
            query["last_stage_rows"] = above.get(name, 0)
            query["overload"] = limited.get(name, {"mode": "queue"})
            query["subscribers"] = [
                subscription.stats() for subscription in self._subscriptions.of(name)
            ]
            query["suspended"] = suspended.get(name)
        return told

    def _subscribe(self, name: str, callback: Subscriber, buffer: int) -> Subscription:
        query = self._standing(name).query
        if isinstance(query, Pipeline):
            fact = f"query {query.name} has DISTINCT, GROUP BY, aggregates, set operators, sub-selects or EMIT SNAPSHOT"
            hint = "Give it a sink that is a function, which is called after every batch, or subscribe in process with muntin.Engine"
            raise InputError(f"{fact}, whose results are complete only with their batch", hint=hint)
        return self._subscriptions.add(query.name, callback, buffer)

    def _query_stats(self, name: str) -> dict[str, Any]:
        found = self._standing(name).query.name
        told = self._counts()
        results = told["results"][found]
        return {"query": found, "results": results, "rows_out": results, **told["queries"][found]}

    def _standing(self, name: str) -> RegisteredQuery:
        check_name(name, "the name of a query")
        standing = self._queries.get(name.casefold())
        if standing is None:
            raise self._declared.unknown_query(name)
        return standing

    def explain(self, query: str | None = None) -> str:
        """The plans of all queries, or of one, and how their streams are spread over the partitions."""
        chosen = list(self._queries.values()) if query is None else [self._standing(query)]
        return (
            "\n\n".join(draw(self._described(standing.query, standing.plan)) for standing in chosen)
            or "no queries"
        )

    def _described(self, query: Query, plan: JoinPlan | PipelinePlan) -> Node:
        how = distribution_of(query)
        facts = [Fact(route.stream, str(route), str(route)) for route in how.routes]
        if isinstance(how, PipelineDistribution):
            where = [describe_tree(part.root) for part in how.local]
            facts.append(Fact("partitions", where, f"partitions compute {' and '.join(where)}"))
            above = describe_tree(how.last.root) if how.last else None
            facts.append(
                Fact(
                    "last_stage",
                    above,
                    f"the last stage computes {above}"
                    if above
                    else "partitions' results are put together as they are",
                )
            )
        spread = Node("spread", f"spread over {self.partitions} partitions", tuple(facts))
        node = describe_any(plan)
        waiting = self._delivery.tally.waiting(query.name.casefold())
        waits = () if waiting is None else (describe_waiting(waiting),)
        reason = self._delivery.suspended.get(query.name)
        suspended = (Fact("suspended", reason, f"suspended: {reason}"),) if reason else ()
        return replace(
            node, facts=(*node.facts, *suspended), children=(spread, *node.children, *waits)
        )


def _sink_of(query: Query, allowed: AllowedPaths | None) -> SinkChoice:
    """The sink that a query's WITH names, None if it names none."""
    sink = SinkOptions.of(confined(query.options, allowed, patterns=False))
    if sink.kind in {None, "memory", "console"}:
        return sink.kind
    return {"format": sink.kind, **({"path": sink.path} if sink.path is not None else {})}


def _check_unshared(sink: Sink, others: Iterable[RegisteredQuery]) -> None:
    """Raise when the folder of a sink is that of another: their batches have the same names."""
    for other in others:
        if (
            isinstance(sink, FileSink)
            and isinstance(other.sink, FileSink)
            and sink.folder.absolute() == other.sink.folder.absolute()
        ):
            raise SettingError(
                f"{sink.folder} is where query {other.query.name} writes to",
                hint="Give every query a folder of its own",
            )


def _plain(schema: pa.Schema) -> pa.Schema:
    """Times without a zone: Spark's are UTC, as ours."""
    fields = [
        pa.field(f.name, pa.timestamp("us"))
        if pa.types.is_timestamp(f.type)
        else pa.field(f.name, f.type)
        for f in schema
    ]
    return pa.schema(fields)


def _local_folder(path: str | Path | None) -> Path:
    text = str(path).removeprefix("file://")
    if "://" in text:
        raise InputError(
            f"the checkpoint {path} is not a folder that this process can reach",
            hint="Give a local or mounted folder",
        )
    if any(sign in text for sign in "*?[]{}\\"):
        raise InputError(
            f"the checkpoint {path} has signs in its name that Spark takes for a pattern",
            hint="Leave out * ? [ ] { } and \\",
        )
    return Path(text).absolute()
