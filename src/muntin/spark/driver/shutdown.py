"""End the parts of a run within a deadline, whatever they are blocked in.

Killing is always safe: a batch without a manifest is repeated from the state before it, and the
state servers hold only a cache of the checkpoint.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from muntin.errors import RunError
from muntin.spark.partition.state_client import StateClient
from muntin.spark.session import configured

_log = logging.getLogger("muntin.spark")

_STOP_TIMEOUT = "spark.sql.streaming.stopTimeout"
_TIMED_OUT = "failed to stop within"
_ANSWER = 5.0
"""Seconds in which a state server has to answer before it is killed."""


class BatchInterrupted(Exception):  # noqa: N818 (not an error: the engine stops)
    """Ends a batch because its engine stops.

    Spark decides by the text of an exception whether it comes from an interruption, with a regular
    expression that recurses once per character. Java's own text has thousands of characters and
    overflows the stack, so a batch that is interrupted raises these few words instead.
    """

    def __init__(self) -> None:
        call = "py4j.protocol.Py4JJavaError: An error occurred while calling collect"
        super().__init__(f"{call}: java.lang.InterruptedException")


def end_query(spark: SparkSession, streaming: StreamingQuery, seconds: float) -> bool:
    """Stop a streaming query; return whether its thread has ended within ``seconds``."""
    with configured(spark, {_STOP_TIMEOUT: f"{max(int(seconds * 1000), 1)}ms"}):
        try:
            streaming.stop()
        except (Py4JError, PySparkException) as error:
            if _TIMED_OUT not in str(error):
                raise
            return False
    return True


def after_query(streaming: StreamingQuery, then: Callable[[], None]) -> threading.Thread:
    """Call ``then`` in a thread once a streaming query that did not stop in time has ended."""

    def wait() -> None:
        with suppress(Py4JError, PySparkException):
            streaming.awaitTermination()
        then()

    thread = threading.Thread(target=wait, name="muntin-stuck", daemon=True)
    thread.start()
    return thread


def end_state_servers(run: str, partitions: int, seconds: float) -> None:
    """Release the state servers of all partitions; kill those that do not answer in time."""
    until = time.monotonic() + min(seconds, _ANSWER)
    for number in range(partitions):
        killed = StateClient(run, number, 0).stop(max(until - time.monotonic(), 0.5))
        if killed is not None:
            _log.warning(
                "the state server %d of partition %d did not answer and was killed", killed, number
            )


def wait_for(work: Callable[[], object], seconds: float | None, what: str) -> None:
    """Call ``work`` in a thread and wait for it; raise its exception.

    Raises
    ------
    RunError
        When it takes longer than ``seconds``.
    """
    failures: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (raised again below)
            failures.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name="muntin-waiting", daemon=True).start()
    if not done.wait(seconds):
        raise RunError(
            f"{what} took longer than {seconds:g} seconds",
            hint="The engine continues to run; look at engine.progress, and give a longer timeout",
        )
    if failures:
        raise failures[0]
