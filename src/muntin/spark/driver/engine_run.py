"""The lifetime of an engine's streaming query: start, wait, stop, and cleanup.

Exactly once: a batch is complete with its manifest, and Spark repeats what it has not committed. A
batch that is interrupted, by a stop or a crash, has no manifest and runs again at the next start; a
micro-batch that is repeated although a manifest has it is skipped. Two engines must therefore never
write at the same time: the lease of the checkpoint is taken before the first side effect of a start
and is released only when the streaming query has really ended. A sink that does not return keeps
it.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from muntin.errors import CatalogError, RunError
from muntin.kernels.jit import prepare, prepare_part
from muntin.spark.driver.batch_loop import BatchesEnded
from muntin.spark.driver.change_queue import POLL
from muntin.spark.driver.control_batches import ControlBatches
from muntin.spark.driver.engine_parts import EngineParts
from muntin.spark.driver.listener import PATIENCE, ObservedRun, OnProgress, RunListener
from muntin.spark.driver.listener_calls import ListenerCalls
from muntin.spark.driver.query_events import QueryEvents
from muntin.spark.driver.resume import resume
from muntin.spark.driver.run_failures import RunFailures
from muntin.spark.driver.shutdown import after_query, end_query, end_state_servers, wait_for
from muntin.spark.driver.streaming_query import build
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.partition.push_channel import Address, PushReceiver
from muntin.spark.session import driver_host, polling_less
from muntin.spark.sources import SparkSource, check_repeatable

_log = logging.getLogger("muntin.spark")


@dataclass(frozen=True)
class RunConfig:
    """How an engine runs.

    Parameters
    ----------
    partitions : int
        The number of partitions.
    interval : int
        Microseconds between the starts of two batches.
    delay : int, optional
        Microseconds by which heartbeats lag behind the clock; None sends none.
    on_progress : callable, optional
        The user's function that is called after every batch.
    """

    partitions: int
    interval: int
    delay: int | None
    on_progress: OnProgress | None


class EngineRun:
    """Runs the streaming query of an engine; ``lock`` guards declarations and starts and stops."""

    def __init__(self, spark: SparkSession, options: RunConfig, parts: EngineParts) -> None:
        self.lock = threading.RLock()
        self.state = parts.state
        self._spark = spark
        self._options = options
        self._parts = parts
        self._checkpoint = parts.checkpoint
        self._failures = RunFailures(parts.writer, parts.checkpoint)
        self._controls = ControlBatches(spark, parts, self._failures)
        self._listener: RunListener | None = None
        self._calls = ListenerCalls(spark)
        self._receiver: PushReceiver | None = None
        self.stuck: threading.Thread | None = None
        """Waits for a streaming query that did not stop in time, then releases the checkpoint."""
        # Tied to this object, not to the user's engine: Java refers to it while batches run.
        weakref.finalize(self, parts.load.close)
        weakref.finalize(self, parts.writer.close)

    # -- start -----------------------------------------------------------------------------------

    def start(self, *, live: bool) -> None:
        """Start the streaming query: until it is stopped, or over the available input."""
        with self.lock:
            self._check_startable()
            self.state.stopping = False
            self._controls.failure = None
            self._prepare(live=live)
            registry = self._parts.registry
            declared = registry.deployment(self._options.partitions)
            self.state.replacement.check(query.name for query in declared.queries)
            sources = registry.sources(self._spark)
            check_repeatable(sources, begun=self._checkpoint.begun(), live=live)
            self._checkpoint.acquire()
            try:
                self._begin(declared, sources, live=live)
            except BaseException:
                self._parts.batches.end(PATIENCE)
                self._checkpoint.release()
                raise
            if live:
                self._controls.start(self._options.delay)

    def _check_startable(self) -> None:
        if self.state.is_active:
            raise CatalogError("the engine is running", hint="Stop it first")
        if self.stuck is not None and self.stuck.is_alive():
            raise RunError(
                f"the last run has not ended: {self._parts.writer.at_work or 'Spark'} is stuck",
                hint="Start again when it has returned, or in another process after this one "
                "has ended",
            )

    def _prepare(self, *, live: bool) -> None:
        """Compile the kernels once, here, so that the state servers load them."""
        prepare()
        queries = self._parts.registry.queries.values()
        if any(not registered.query.is_join for registered in queries):
            prepare_part("changes")
            prepare_part("pipelines")
        self._parts.writer.failure = None
        if live:
            self._parts.load.begin()
        else:
            self._parts.load.release()

    def _begin(
        self, declared: Deployment, sources: Mapping[str, SparkSource], *, live: bool
    ) -> None:
        parts, state = self._parts, self.state
        state.run, state.deployment = resume(parts, declared)
        self._checkpoint.logs.check_inputs()
        stage = parts.batches.begin(state.deployment, self._open_reception(), self._controls.report)
        parts.registry.sinks.forget_others(
            registered.sink for registered in parts.registry.queries.values()
        )
        writer = (
            build(state.deployment, stage, sources)
            .writeStream.outputMode("append")
            .option("checkpointLocation", self._checkpoint.spark)
            .foreachBatch(self._write)
        )
        writer = (
            writer.trigger(processingTime=f"{self._options.interval // 1000} milliseconds")
            if live
            else writer.trigger(availableNow=True)
        )
        state.streaming = self._listened(writer, live=live)
        state.live = live

    def _write(self, outputs: DataFrame, batch: int) -> None:
        """Run a batch; Spark's reference to this method keeps the run alive."""
        self._parts.batches.write(outputs, batch)

    def _open_reception(self) -> Address:
        """Listen for pushed results; return the address at which partitions find this process."""
        self._close_reception()
        subscriptions = self._parts.subscriptions
        receiver = self._receiver = PushReceiver(*driver_host(self._spark), subscriptions.take)
        weakref.finalize(self, receiver.close)
        subscriptions.begin(self._checkpoint.tasks)
        return receiver.address

    def _close_reception(self) -> None:
        if self._receiver is not None:
            self._receiver.close()
            self._receiver = None
            self._parts.subscriptions.end()

    def _listened(self, writer: DataStreamWriter, *, live: bool) -> StreamingQuery:
        """Start the streaming query with a listener that is removed when it ends."""
        registered = self._parts.registry.queries.values()
        queries = ", ".join(query.query.name for query in registered) or "none"
        partitions = self._options.partitions
        first = self._checkpoint.last_batch() + 1
        about = (
            f"queries {queries}; {partitions} {'partition' if partitions == 1 else 'partitions'}; "
            f"checkpoint {self._checkpoint.name}, from batch {first}"
        )
        name = f"muntin-{uuid.uuid4().hex[:12]}"
        controls, failures = self._controls, self._failures
        run = ObservedRun(
            name,
            about,
            self._parts.reports.counts_after,
            lambda text: controls.failure or (failures.fact(text) if text else None),
            QueryEvents(first, self._parts.reports.counts, self._calls.put),
            lambda: not live or self.state.stopping,
        )
        self._listener = RunListener(self._spark, run, self._options.on_progress)
        self._controls.listener = self._listener
        self._listener.attach()
        try:
            with polling_less(self._spark):
                return writer.queryName(run.name).start()
        except BaseException:
            self._listener.detach()
            raise

    # -- wait ------------------------------------------------------------------------------------

    def process_once(self, *, more: bool = False) -> None:
        """Process the available input; with ``more`` to follow, the state servers stay."""
        with self.lock:
            self.start(live=False)
            streaming = self.state.streaming
        assert streaming is not None, "it was started"
        assert self._listener is not None, "it was started"
        done = False
        try:
            streaming.awaitTermination()
            self._listener.wait()
            self._controls.run()
            done = True
        except StreamingQueryException as error:
            raise self._explained(error) from error
        finally:
            self._finish_listening()
            if not (done and more):
                self.release()
            self._parts.subscriptions.drain(PATIENCE)
            self._calls.drain(PATIENCE)

    def catch_up(self, timeout: float | None) -> None:
        """Wait until a trigger of the running query has found no new input."""
        streaming = self.state.streaming
        assert streaming is not None, "it was started"

        def process() -> None:
            streaming.processAllAvailable()
            self._controls.run_or_end()

        try:
            wait_for(process, timeout, "processing the available input")
        except StreamingQueryException as error:
            raise self._explained(error) from error
        except BatchesEnded as error:  # another thread is ending the run
            self.await_termination(PATIENCE)
            raise RunError(f"the run has ended: {error}", hint="Start the engine again") from error
        except Exception:
            if self._controls.failure is not None:
                self.release()
            raise

    def await_termination(self, timeout: float | None) -> bool:
        """Wait until the streaming query ends and return whether it has; raise if it failed."""
        streaming = self.state.streaming
        if streaming is None:
            return True
        try:
            done = (  # PySpark takes whole seconds, and refuses 0
                streaming.awaitTermination(ceil(timeout))
                if timeout is not None and timeout > 0
                else streaming.awaitTermination()
                if timeout is None or not streaming.isActive
                else False
            )
        except StreamingQueryException as error:
            raise self._explained(error) from error
        if done is not False and self._controls.failure is not None:
            self.release()
            raise self._controls.failure
        return bool(done) if done is not None else True

    def _finish_listening(self) -> None:
        """Wait until all batches are reported and log how the run ended; no batch runs any more."""
        if self._listener is not None:
            self._listener.finish()

    # -- stop ------------------------------------------------------------------------------------

    def stop(self, timeout: float) -> None:
        """Stop within ``timeout`` seconds, or raise an error that names what does not return."""
        until = time.monotonic() + timeout
        if not self.lock.acquire(timeout=timeout):
            raise RunError(
                f"the engine has been starting for {timeout:g} seconds", hint="Stop it again later"
            )
        try:
            if not self._halt(max(until - time.monotonic(), POLL)):
                raise self._abandoned()
            abandoned = self.release(max(until - time.monotonic(), 1.0))
            if abandoned is not None:
                raise abandoned
        finally:
            self.lock.release()
        self._parts.subscriptions.drain(PATIENCE)
        self._calls.drain(PATIENCE)

    def _halt(self, seconds: float) -> bool:
        """End the streaming query, if one runs; return whether it ended within ``seconds``."""
        self.state.stopping = True
        self._controls.end(min(seconds, PATIENCE))
        if self.state.streaming is None:
            return True
        if not end_query(self._spark, self.state.streaming, seconds):
            return False
        if not self._controls.join(seconds):
            return False
        self._finish_listening()
        return True

    def _abandoned(self) -> RunError:
        """Give up waiting for a batch; the checkpoint stays locked until it ends."""
        streaming, at_work = self.state.streaming, self._parts.writer.at_work
        assert streaming is not None, "it did not end"
        try:
            end_state_servers(self.state.run, self._options.partitions, 1.0)
            self._close_reception()
        finally:
            if self.stuck is None or not self.stuck.is_alive():
                self.stuck = after_query(streaming, self._end_late)
        cause = at_work and f"{at_work} has not returned"
        error = RunError(
            f"the engine did not stop in time: {cause or 'Spark has not ended the current batch'}",
            hint="The checkpoint stays locked until that is over or this process ends; "
            "the batch will run again",
        )
        _log.warning("%s", error)
        return error

    def _end_late(self) -> None:
        """End a run whose last batch did not end in time."""
        self._parts.batches.end()
        try:
            self._finish_listening()
        finally:
            self._checkpoint.release()

    def release(self, seconds: float = PATIENCE) -> RunError | None:
        """End the state servers and release the checkpoint.

        A batch without rows may still be inside a sink although the streaming query has ended. If
        it does not return within ``seconds``, the checkpoint stays locked until it has; the error
        that says so is logged and returned.
        """
        if not self._parts.batches.end(seconds):
            return self._abandoned()
        try:
            if self.state.run:
                end_state_servers(self.state.run, self._options.partitions, seconds)
            self._close_reception()
        finally:
            self._checkpoint.release()
        return None

    # -- failures --------------------------------------------------------------------------------

    def failure(self) -> RunError | None:
        """Return the error that ended the last run; None if it runs, was stopped or never began."""
        if self._controls.failure is not None:
            return self._controls.failure
        streaming = self.state.streaming
        error = None if streaming is None or streaming.isActive else streaming.exception()
        if error is None:
            return None
        return self._failures.explained(str(error))

    def _explained(self, error: StreamingQueryException) -> RunError:
        """Release everything and return the error without Java's part of it."""
        self.release()
        return self._controls.failure or self._failures.explained(str(error))
