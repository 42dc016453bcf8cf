"""Listeners that users add to the session receive the events of every query."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from muntin.spark import SparkEngine
from muntin.spark.driver import engine_run
from muntin.spark.session import configured
from muntin.spark.sinks import SinkError
from tests.spark.support import Folders, rows
from tests.spark.test_suspended import MARK, break_marked

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

ALL = "SELECT v FROM A WINDOW 2 SECONDS"
EVEN = "SELECT v FROM A WHERE v % 2 = 0 WINDOW 2 SECONDS"


IDLE_AFTER = "spark.sql.streaming.noDataProgressEventInterval"


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


class Recorder(StreamingQueryListener):
    """Keeps the events of Muntin's queries by id; ``act`` is called with each of them."""

    def __init__(self, act: Callable[[Any], object] = lambda _: None) -> None:
        self.events: dict[str, list[Any]] = {}
        self._act = act

    def _keep(self, own: object, name: str | None, event: object) -> None:
        if str(own) in self.events or not str(name).startswith("muntin-"):
            self.events.setdefault(str(own), []).append(event)
            self._act(event)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's)
        self._keep(event.id, event.name, event)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 (Spark's)
        self._keep(event.progress.id, event.progress.name, event)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 (Spark's)
        self._keep(event.id, "muntin-", event)

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 (Spark's)
        self._keep(event.id, "muntin-", event)

    def kinds(self, own: str | None) -> list[str]:
        """Return the kinds of events of a query, without those of idle moments."""
        kinds = [type(event).__name__[5:-5] for event in self.events[str(own)]]
        return [kind for kind in kinds if kind != "Idle"]

    def progress(self, own: str | None) -> list[Any]:
        found = self.events[str(own)]
        return [event.progress for event in found if hasattr(event, "progress")]


@contextmanager
def listening(spark: SparkSession, *listeners: Recorder) -> Iterator[None]:
    for listener in listeners:
        spark.streams.addListener(listener)
    try:
        yield
    finally:
        for listener in listeners:
            spark.streams.removeListener(listener)


def engine_over(spark: SparkSession, folders: Folders) -> SparkEngine:
    engine = SparkEngine(spark, checkpoint=folders.base / "checkpoint", partitions=1)
    engine.execute(folders.declarations())
    return engine


def test_every_query_has_its_own_events_from_its_start_to_its_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders, seen = Folders(tmp_path, ("A",)), Recorder()
    for second in (1, 2):
        folders.write("A", rows([second], start=second))
    with listening(spark, seen):
        engine = engine_over(spark, folders)
        every, even = engine.query(ALL, name="every"), engine.query(EVEN, name="even")
        with configured(spark, {IDLE_AFTER: "100"}):
            engine.start()
        every.processAllAvailable()
        wait_until(lambda: any("Idle" in str(event) for event in seen.events[str(every.id)]))
        late = engine.query(EVEN, name="late")
        even.stop()
        folders.write("A", rows([3], start=4))
        every.processAllAvailable()
        recent = {query.id: query.recentProgress for query in (every, late)}
        engine.stop()
    assert len(seen.events) == 3
    for query in (every, even, late):
        first, *others, last = seen.kinds(query.id)
        assert (first, last) == ("Started", "Terminated")
        assert set(others) == {"Progress"}
        started, *_, ended = seen.events[str(query.id)]
        assert (started.name, str(started.runId)) == (query.name, query.runId)
        assert (str(ended.runId), ended.exception) == (query.runId, None)
    rows_of = {
        query.name: [one.sink.numOutputRows for one in seen.progress(query.id) if one.sources]
        for query in (every, even, late)
    }
    assert rows_of == {"every": [1, 1, 1], "even": [0, 1], "late": [1]}
    for own, known in recent.items():
        found = {one.batchId: one for one in seen.progress(own)}
        assert list(found) == sorted(found)
        for expected in known:
            progress = found[expected["batchId"]]
            assert str(progress.runId) == expected["runId"]
            assert progress.name == expected["name"]
            assert progress.durationMs == expected["durationMs"]
            assert progress.numInputRows == expected["numInputRows"]
            assert progress.sink.numOutputRows == expected["sink"]["numOutputRows"]
            assert progress.sink.description == "memory"
            assert json.loads(progress.sink.metrics["muntin"]) == expected["muntin"]


def test_a_suspended_query_and_a_failed_run_end_with_their_exceptions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders, seen = Folders(tmp_path, ("A",)), Recorder()
    folders.write("A", rows([1, 2]))

    def broken(frame: DataFrame, batch: int) -> None:
        del frame
        if batch:
            raise OSError("no space left")

    with listening(spark, seen):
        engine = engine_over(spark, folders)
        failing = engine.query(f"SELECT count(*) + {MARK} AS n FROM A WINDOW 2 SECONDS", "failing")
        other = engine.query(ALL, name="other", sink=broken)
        with monkeypatch.context() as patch:
            break_marked(patch)
            engine.process_available()
        *_, ended = seen.events[str(failing.id)]
        assert seen.kinds(failing.id) == ["Started", "Progress", "Terminated"]
        assert ended.exception == str(failing.exception())
        assert ended.errorClassOnException == "QuerySuspendedError"
        assert seen.events[str(other.id)][-1].exception is None
        seen.events.clear()
        folders.write("A", rows([3], start=3))
        with pytest.raises(SinkError):
            engine.process_available()
    assert list(seen.events) == [other.id], "the other one stays suspended"
    assert seen.kinds(other.id) == ["Started", "Terminated"]
    *_, ended = seen.events[str(other.id)]
    assert ended.exception == str(other.exception())
    assert ended.errorClassOnException == "SinkError"


def test_listeners_that_fail_or_do_not_return_do_not_affect_the_run(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(engine_run, "PATIENCE", 0.5)
    folders, going = Folders(tmp_path, ("A",)), threading.Event()
    for second in (1, 2, 3):
        folders.write("A", rows([second], start=second))

    def fail(event: object) -> None:
        raise ZeroDivisionError(type(event).__name__)

    failing, blocked, seen = Recorder(fail), Recorder(lambda _: going.wait(60)), Recorder()
    with listening(spark, failing, blocked, seen):
        engine = engine_over(spark, folders)
        query = engine.query(ALL, name="all")
        began = time.monotonic()
        engine.process_available()
        assert time.monotonic() - began < 50, "the run does not wait for the blocked listener"
        assert len(query.results()) == 3
        assert not seen.events
        going.set()
        wait_until(lambda: bool(seen.events) and seen.kinds(query.id)[-1] == "Terminated")
    assert seen.kinds(query.id) == ["Started", *["Progress"] * 3, "Terminated"]
    assert failing.kinds(query.id) == seen.kinds(query.id)
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert "a listener failed at onQueryProgress of query all; the run continues" in said
    assert "have yet to receive" in said
