"""The state of a query as its handle reports it, without Spark: ids, status and progress."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from pyspark.sql.streaming.query import StreamingQuery

from muntin.engine.declarations import Declarations
from muntin.errors import CatalogError, InputError
from muntin.model.catalog import Stream
from muntin.spark.batch_results import BatchResults
from muntin.spark.driver.load_controller import LoadController
from muntin.spark.driver.output_writer import OutputWriter
from muntin.spark.driver.query_reports import QueryReports
from muntin.spark.driver.query_state import QueryState
from muntin.spark.driver.registry import SparkRegistry
from muntin.spark.driver.run_state import RunState
from muntin.spark.driver.subscriptions import Subscriptions
from muntin.spark.exchange.deployment import QueryChange
from muntin.spark.exchange.messages import PartitionBatch
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.spool import Spool
from muntin.spark.sinks import Sink, SinkMaker
from muntin.spark.storage import LocalStorage

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
SQL = "SELECT k FROM A WINDOW 1 MINUTE"
IDLE = {"message": "Waiting for data to arrive", "isDataAvailable": False, "isTriggerActive": False}


class Discarding(Sink):
    def write(self, results: BatchResults, batch: int) -> None:
        """Keep nothing."""


class JavaProgress:
    def __init__(self, progress: dict[str, Any]) -> None:
        self.json = lambda: json.dumps(progress)


class Parts:
    """The parts of an engine that reports need, over a streaming query that is only pretended."""

    def __init__(self, folder: Path) -> None:
        declared = Declarations(connected=True)
        self.registry = SparkRegistry(
            declared, SinkMaker(MagicMock(), LocalStorage(folder / "results"))
        )
        for name in "AB":
            self.registry.add_stream(Stream(name, SCHEMA, "ts"), MagicMock())
        self.run = RunState()
        self.writer = OutputWriter(LocalStorage(folder), Spool(LocalStorage(folder / "spool")))
        self.subscriptions = Subscriptions()
        self.load = LoadController(1, 1.0, lambda _: None)
        self.reports = QueryReports(
            self.run, self.registry, self.writer, self.load, self.subscriptions
        )
        self.spark_progress: list[dict[str, Any]] = []

    def query(self, sql: str = SQL, name: str = "q") -> QueryState:
        registered, settings = self.registry.plan(
            self.registry.declared.read(sql, name), Discarding()
        )
        self.registry.add(registered)
        self.load.add(name, registered.limited, settings)
        return self.reports.state_of(name)

    def start(self) -> None:
        """Deploy the queries as a start does; Spark's streaming query is active from then on."""
        if self.run.deployment is None:
            self.run.deployment = self.registry.deployment(1)
        java = SimpleNamespace(recentProgress=lambda: [*map(JavaProgress, self.spark_progress)])
        streaming = SimpleNamespace(isActive=True, runId="run", status=IDLE, _jsq=java)
        self.run.streaming = cast("StreamingQuery", streaming)
        self.run.live = True
        self.writer.begin(self.run.deployment, 0)

    def batch(self, batch: int, results: dict[str, int]) -> None:
        """Pretend that a batch was written, and that Spark reported it."""
        self.writer.metrics.add(batch, [], results, {})
        self.writer.metrics.note(batch, self.reports.counts())
        self.spark_progress.append(
            {"batchId": batch, "name": "muntin-1", "runId": "run", "durationMs": {"addBatch": 1}}
        )

    def idle(self, batch: int) -> None:
        """Pretend that Spark reported a trigger without a batch, as it does now and then."""
        self.spark_progress.append({"batchId": batch, "durationMs": {"latestOffset": 1}})


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path)


def emitted(state: QueryState) -> list[tuple[int, int]]:
    return [(one["batchId"], one["sink"]["numOutputRows"]) for one in state.recent_progress()]


def test_the_id_is_that_of_the_query_in_the_checkpoint_and_unknown_before_the_first_start(
    parts: Parts,
) -> None:
    state = parts.query()
    assert (state.id(), state.run_id()) == (None, None)
    declared = parts.registry.deployment(1)
    resumed = replace(declared.queries[0], incarnation="from the checkpoint")
    parts.run.deployment = replace(declared, queries=(resumed,))
    own = state.id()
    parts.run.deployment = declared
    assert own is not None
    assert state.id() not in {None, own}
    parts.start()
    assert state.run_id() not in {None, "run", parts.query(name="other").run_id()}


def test_a_name_that_is_registered_again_is_another_query(parts: Parts) -> None:
    before = parts.query()
    parts.start()
    own = before.id()
    parts.batch(0, {"q": 3})
    parts.registry.drop("q", if_exists=False)
    parts.writer.metrics.forget("q")
    assert (before.is_registered(), before.is_active(), before.id()) == (False, False, own)
    assert before.status()["message"] == "Dropped"
    with pytest.raises(CatalogError, match="there is no query 'q'"):
        before.table()
    after = parts.query()
    assert parts.run.deployment is not None
    changes = (
        QueryChange(1, dropped="q"),
        QueryChange(1, parts.registry.find("q").deployed, dataflow="0"),
    )
    parts.run.deployment = replace(parts.run.deployment, changes=changes)
    parts.batch(1, {"q": 2})
    assert (before.is_registered(), after.is_registered()) == (False, True)
    assert after.id() not in {None, own}
    assert (emitted(before), emitted(after)) == ([(0, 3)], [(1, 2)])


def test_a_query_declared_again_after_a_stop_does_not_take_over_the_id(parts: Parts) -> None:
    before = parts.query()
    parts.start()
    own = before.id()
    parts.registry.drop("q", if_exists=False)
    parts.run.dropped.add("q")
    assert parts.query().id() not in {None, own}


def test_progress_counts_the_results_of_each_batch_and_skips_triggers_without_one(
    parts: Parts,
) -> None:
    early = parts.query(name="early")
    assert early.last_progress() is None
    parts.start()
    assert early.last_progress() is None
    parts.batch(0, {"early": 3})
    late = parts.query(name="late")
    parts.idle(1)
    parts.batch(1, {"early": 0, "late": 5})
    parts.idle(2)
    parts.batch(2, {"early": 4, "late": 1})
    parts.idle(3)
    assert emitted(early) == [(0, 3), (1, 0), (2, 4)]
    assert emitted(late) == [(1, 5), (2, 1)]
    last = early.last_progress()
    assert last == early.recent_progress()[-1]
    assert last is not None
    assert (last["id"], last["runId"], last["name"]) == (early.id(), early.run_id(), "early")
    assert last["sink"]["description"] == "a Discarding"
    assert (last["muntin"]["query"], last["muntin"]["results"]) == ("early", 7)


def test_recent_progress_has_at_most_100_batches_each_with_its_own_results(parts: Parts) -> None:
    state = parts.query()
    parts.start()
    for batch in range(130):
        parts.batch(batch, {"q": batch})
    assert emitted(state) == [(batch, batch) for batch in range(30, 130)]


def test_the_status_tells_when_a_query_does_not_run(parts: Parts) -> None:
    state = parts.query()
    nothing = {"isDataAvailable": False, "isTriggerActive": False}
    assert state.status() == {"message": "Not started", **nothing}
    parts.start()
    assert (state.is_active(), state.status()) == (True, IDLE)
    parts.writer._suspended.add(0, "q", "nothing works")
    assert state.status() == {"message": "Suspended: nothing works", **nothing}
    assert not state.is_active()
    suspension = state.suspension()
    assert suspension is not None
    assert suspension.reason == "nothing works"


def test_a_sink_that_cannot_be_read_back_is_named(parts: Parts) -> None:
    with pytest.raises(
        InputError, match=r"the sink of query q \(a Discarding\) cannot be read back"
    ):
        parts.query().table()


JOIN = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW {} MINUTES"
ADAPT = "WITH (overload = 'adapt', resources = '10')"


def effect(parts: Parts, name: str) -> tuple[dict[str, str], dict[str, str]]:
    stats = parts.reports.stats(name)
    return stats["settings"], stats["in_effect"]


def test_limits_are_in_effect_in_live_runs_of_queries_that_can_be_limited(parts: Parts) -> None:
    parts.query(f"{JOIN.format(1)} {ADAPT}", "limited")
    parts.query(
        f"SELECT COUNT(*) AS n FROM A, B WHERE A.k = B.k WINDOW 1 MINUTE {ADAPT}", "counted"
    )
    parts.query(f"SELECT COUNT(*) AS n FROM A, B WHERE A.k = B.k WINDOW 3 ROWS {ADAPT}", "by_rows")
    parts.start()
    given = {"scheduler": "mqt", "overload": "adapt"}
    assert effect(parts, "limited") == (given, {"scheduler": "lwo", "overload": "adapt"})
    assert effect(parts, "counted") == (given, {"scheduler": "lwo", "overload": "adapt"})
    assert effect(parts, "by_rows") == (given, {"scheduler": "lwo", "overload": "queue"})
    why = parts.reports.stats("by_rows")["without_effect"]["overload"]
    assert "retracts what leaves" in why
    assert f"overload = 'adapt' has no effect: {why}" in parts.reports.explain("by_rows", 2)
    assert "overload" not in parts.reports.stats("counted")["without_effect"]
    assert "has no effect" not in parts.reports.explain("counted", 2)
    parts.run.live = False
    assert effect(parts, "limited") == (given, {"scheduler": "lwo", "overload": "queue"})


def test_a_scheduler_is_in_effect_for_shared_joins_while_there_are_subscribers(
    parts: Parts,
) -> None:
    for minutes in (1, 2):
        parts.query(f"{JOIN.format(minutes)} WITH (scheduler = 'swf')", f"shared{minutes}")
    parts.query("SELECT A.k FROM A, B WHERE A.k < B.k WINDOW 1 MINUTE", "alone")
    parts.start()
    assert parts.run.deployment is not None
    partition = RecoverablePartition(parts.run.deployment, 0)
    stats = partition.apply(PartitionBatch(0, 0, {"A": 1, "B": 1}, ())).stats
    counts = dict.fromkeys(("shared1", "shared2", "alone"), 0)
    parts.writer.metrics.add(0, [json.loads(stats.to_blob())], counts, {})
    given = {"scheduler": "swf", "overload": "queue"}
    assert effect(parts, "shared1") == (given, {"scheduler": "lwo", "overload": "queue"})
    why = {"scheduler": "no subscriber receives results before a batch is complete"}
    assert parts.reports.stats("shared1")["without_effect"] == why
    parts.subscriptions.add("alone", lambda *_: None, 1000)
    assert effect(parts, "shared1") == (given, given)
    assert effect(parts, "shared2") == (given, given)
    assert effect(parts, "alone")[1] == {"scheduler": "lwo", "overload": "queue"}
    assert parts.reports.stats("shared1")["without_effect"] == {}
    why = {"scheduler": "no query with other windows shares its join"}
    assert parts.reports.stats("alone")["without_effect"] == why


def test_weights_and_what_levels_count_are_reported(parts: Parts) -> None:
    parts.registry.declared.set("weight", "2")
    parts.query(JOIN.format(1), "two")
    parts.query(f"{JOIN.format(2)} WITH (weight = 5)", "five")
    parts.query(f"{JOIN.format(1)} WITH (weight = 3, scheduler = 'swf')", "uncounted")
    parts.start()
    stats = parts.reports.stats("five")
    why = "no subscriber receives results before a batch is complete"
    assert stats["without_effect"] == {"scheduler": why, "weight": why}
    assert stats["levels"] == []
    assert parts.run.deployment is not None
    partition = RecoverablePartition(parts.run.deployment, 0)
    report = partition.apply(PartitionBatch(0, 0, {"A": 1, "B": 1}, ())).stats
    counts = dict.fromkeys(("two", "five", "uncounted"), 0)
    parts.writer.metrics.add(0, [json.loads(report.to_blob())], counts, {})
    parts.subscriptions.add("two", lambda *_: None, 1000)
    stats = parts.reports.stats("five")
    assert (stats["weight"], stats["without_effect"]) == (5.0, {})
    assert [(level["weight"], level["count"]) for level in stats["levels"]] == [(2.0, 2), (5.0, 5)]
    uncounted = parts.reports.stats("uncounted")["without_effect"]
    assert uncounted["weight"] == "scheduler swf does not count queries"


def test_choosing_rows_by_key_is_reported_as_without_effect(parts: Parts) -> None:
    limited = "overload = 'adapt', resources = '10'"
    parts.query(f"{JOIN.format(1)} WITH ({limited}, probe_choice = 'key')", "by_key")
    parts.query(f"{JOIN.format(2)} WITH ({limited})", "oldest")
    parts.start()
    assert "partitions" in parts.reports.stats("by_key")["without_effect"]["probe_choice"]
    assert "probe_choice" not in parts.reports.stats("oldest")["without_effect"]


def test_a_memory_limit_is_reported_as_without_effect(parts: Parts) -> None:
    parts.registry.declared.set("memory_limit", "1 MB")
    parts.query()
    parts.start()
    assert "cannot be refused" in parts.reports.stats("q")["without_effect"]["memory_limit"]
    assert parts.run.deployment is not None
    assert "memory_limit" not in parts.run.deployment.queries[0].settings


GROUPED = "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW {} MINUTES"


def test_a_scheduler_is_in_effect_above_joins_unless_all_partitions_have_a_say(
    parts: Parts,
) -> None:
    for minutes in (1, 2):
        parts.query(GROUPED.format(minutes), f"grouped{minutes}")
    parts.query("SELECT COUNT(*) AS n FROM A, B WHERE A.k = B.k WINDOW 3 MINUTES", "counted")
    parts.start()
    assert parts.run.deployment is not None
    partition = RecoverablePartition(parts.run.deployment, 0)
    stats = partition.apply(PartitionBatch(0, 0, {"A": 1, "B": 1}, ())).stats
    counts = dict.fromkeys(("grouped1", "grouped2", "counted"), 0)
    parts.writer.metrics.add(0, [json.loads(stats.to_blob())], counts, {})
    parts.subscriptions.add("grouped1", lambda *_: None, 1000)
    for name in ("grouped1", "grouped2"):
        assert effect(parts, name)[1]["scheduler"] == "mqt"
        assert parts.reports.stats(name)["without_effect"] == {}
    assert effect(parts, "counted")[1]["scheduler"] == "lwo"
    why = parts.reports.stats("counted")["without_effect"]["scheduler"]
    assert why == "its results depend on all partitions: they come when a batch ends"
