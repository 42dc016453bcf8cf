"""An engine on Spark stops even if something is stuck, and catches up while it runs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from muntin.errors import RunError
from muntin.spark import SparkEngine
from muntin.spark.batch_results import BatchResults
from muntin.spark.driver.checkpoint import CheckpointError
from muntin.spark.sinks import Sink
from muntin.testing.processes import state_servers, wait_gone
from tests.spark.support import JOIN, SECOND, Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

VALUES = "SELECT A.v FROM A WINDOW 1 SECOND"


def engine_over(spark: SparkSession, folders: Folders) -> SparkEngine:
    engine = SparkEngine(spark, checkpoint=folders.base / "checkpoint", partitions=2)
    engine.execute(folders.declarations())
    return engine


@contextmanager
def suspended(pids: list[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue


def java_said(spark: SparkSession) -> bytes:
    """Return what Java has written to its standard error."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    process: int = gateway.proc.pid
    return Path(f"/proc/{process}/fd/2").read_bytes()


def wait_for_batch(folder: Path, number: int) -> None:
    until = time.monotonic() + 120
    while not (folder / "checkpoint" / "spark" / "offsets" / str(number)).exists():
        assert time.monotonic() < until, f"batch {number} does not begin"
        time.sleep(0.05)


def test_stop_kills_suspended_partition_processes_although_a_query_waits_and_nothing_is_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path)
    engine = engine_over(spark, folders)
    engine.query(JOIN, name="q")
    for stream in "AB":
        folders.write(stream, rows([1, 2, 3]))
    engine.settle()
    stuck = state_servers(os.getpid())
    assert len(stuck) == 2
    reported = len(java_said(spark))
    with suspended(stuck):
        folders.write("A", rows([4], start=3))
        wait_for_batch(tmp_path, engine.last_batch + 1)
        time.sleep(1)  # its tasks have all cores
        waiting = threading.Thread(target=engine.query, args=(VALUES, "late"))
        waiting.start()
        time.sleep(1)
        began = time.monotonic()
        engine.stop(timeout=60)
        assert time.monotonic() - began < 60, "it does not wait for ever"
        assert not wait_gone(stuck, 10), "they were killed"
    waiting.join(30)
    assert not waiting.is_alive(), "the wait for the query ends with the engine"
    assert b"StackOverflowError" not in java_said(spark)[reported:]
    for stream in "AB":
        folders.write(stream, rows([5, 6], start=4))
    engine.drop("late")
    engine.process_available(until=20 * SECOND)
    folders.check({"q": JOIN}, {"q": engine.results("q")}, 20 * SECOND)


class Blocking(Sink):
    """A sink that does not return until it is released."""

    def __init__(self) -> None:
        self.called, self.let_go = threading.Event(), threading.Event()
        self.batches: list[int] = []

    def write(self, results: BatchResults, batch: int) -> None:
        if len(results):
            self.called.set()
            assert self.let_go.wait(300), "nobody let it go"
            self.batches.append(batch)


def test_a_sink_that_blocks_is_named_and_the_checkpoint_stays_locked_until_it_returns(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    engine, sink = engine_over(spark, folders), Blocking()
    engine.query(VALUES, name="values", sink=sink)
    folders.write("A", rows([1, 2, 3]))
    engine.start()
    assert sink.called.wait(120)
    began = time.monotonic()
    with pytest.raises(
        RunError, match=r"the sink of query values, called with batch \d+, has not returned"
    ):
        engine.stop(timeout=2)
    assert time.monotonic() - began < 40
    with pytest.raises(RunError, match="the last run has not ended: the sink of query values"):
        engine.start()
    other = engine_over(spark, folders)
    other.query(VALUES, name="values", sink="memory")
    with pytest.raises(CheckpointError, match="is in use by another engine"):
        other.process_available()
    sink.let_go.set()
    assert engine._run.stuck is not None
    engine._run.stuck.join(60)
    assert not engine._run.stuck.is_alive(), "it ends when the sink has returned"
    engine.stop()
    engine.process_available()
    assert sink.batches, "the batch was delivered, once or again with the same number"
    assert engine.last_batch == max(sink.batches)


def test_process_available_on_a_running_engine_returns_and_the_engine_continues(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path)
    engine = engine_over(spark, folders)
    engine.query(JOIN, name="q")
    engine.start()
    for step in range(2):
        for number in range(2):
            for stream in "AB":
                seconds = [4 * step + 2 * number, 4 * step + 2 * number + 1]
                folders.write(stream, rows(seconds, start=10 * step + 2 * number))
        engine.process_available(until=int(7.5 * SECOND) if step else None)
        assert engine.streaming is not None
        assert engine.streaming.isActive
        folders_so_far = {"q": engine.results("q")}
        if step:
            folders.check({"q": JOIN}, folders_so_far, int(7.5 * SECOND))
    with pytest.raises(RunError, match="took longer than 0 seconds"):
        engine.process_available(timeout=0)
    engine.stop()
