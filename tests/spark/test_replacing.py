"""Queries that have changed, and folders that hold other results.

They are refused with a remedy and replaced on request, while all other queries continue.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import muntin
from muntin.errors import CatalogError, MuntinError, SettingError
from muntin.spark import SparkEngine
from muntin.spark.driver.batch_loop import BatchLoop
from muntin.spark.driver.checkpoint import Checkpoint, CheckpointError
from muntin.spark.sink_ownership import LocalFolder
from muntin.spark.sinks import MemorySink, read_batches
from muntin.testing.compare import difference
from tests.spark.support import CHANGES, JOIN, SECOND, Folders, random_rows, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

NARROW = "SELECT v FROM A WINDOW 5 SECONDS EMIT CHANGES"
WIDE = "SELECT v FROM A WINDOW 50 SECONDS EMIT CHANGES"


def engine_over(
    spark: SparkSession, folders: Folders, checkpoint: str = "one", **options: object
) -> SparkEngine:
    path = folders.base / checkpoint
    engine = SparkEngine(spark, checkpoint=path, partitions=1, **options)  # type: ignore[arg-type]
    engine.execute(folders.declarations())
    return engine


def answer(folder: Path) -> list[int]:
    """Return the rows that remain after all changes in a folder."""
    found: list[int] = []
    for file in sorted(folder.glob("batch-*.parquet")):
        for row in pq.read_table(file).to_pylist():
            (found.append if row["_op"] == "+" else found.remove)(row["v"])
    return found


def test_a_new_checkpoint_never_overwrites_the_results_of_another_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1], start=1))
    sinks = {kind: {"format": kind, "path": str(tmp_path / kind)} for kind in ("parquet", "orc")}

    def engine(checkpoint: str, **options: object) -> SparkEngine:
        made = engine_over(spark, folders, checkpoint, **options)
        for kind, sink in sinks.items():
            made.query(WIDE, name=kind, sink=sink)
        return made

    engine("one").process_available(until=int(1.5 * SECOND))
    assert answer(tmp_path / "parquet") == [1]
    folders.write("A", rows([2], start=2))
    for refused, sink in sinks.items():
        other = engine_over(spark, folders, "two")
        other.query(WIDE, name="fresh", sink={"format": "json", "path": str(tmp_path / "fresh")})
        other.query(WIDE, name="q", sink=sink)
        with pytest.raises(
            SettingError,
            match=(
                rf"/{refused} holds results of query {refused} of run \w+ \(checkpoint "
                r".*/one\); this is run"
            ),
        ):
            other.process_available()
        assert not (tmp_path / "fresh").exists(), "nothing is claimed when one sink cannot be"
    assert (
        answer(tmp_path / "parquet"),
        sorted(row["v"] for row in spark.read.orc(str(tmp_path / "orc")).collect()),
    ) == ([1], [1])

    engine("one").process_available(until=int(2.5 * SECOND))
    assert answer(tmp_path / "parquet") == [1, 2], "the run that owns the folder goes on"
    engine("three", replace=True).process_available(until=int(2.5 * SECOND))
    assert answer(tmp_path / "parquet") == [1, 2]
    assert sorted(row["v"] for row in spark.read.orc(str(tmp_path / "orc")).collect()) == [1, 2]


def test_a_changed_query_leaves_no_row_without_a_retraction(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1], start=1))
    out = {"format": "parquet", "path": str(tmp_path / "out")}
    taken: list[int] = []

    def function(frame: DataFrame, batch: int) -> None:
        del batch
        taken.extend(row["v"] for row in frame.collect())

    first = engine_over(spark, folders)
    first.query(WIDE, name="q", sink=out)
    first.query(WIDE, name="called", sink=function)
    first.process_available(until=int(1.5 * SECOND))
    assert answer(tmp_path / "out") == [1]

    changed = engine_over(spark, folders)
    changed.query(NARROW, name="q", sink=out)
    changed.query(WIDE, name="called", sink=function)
    with pytest.raises(
        CheckpointError,
        match=(
            r"query q has changed \(its windows: A \[RANGE 50 seconds\] is now \[RANGE 5 "
            r"""seconds\]\).*/out\)\. .*SparkEngine\(\.\.\., replace=\["q"\]\)"""
        ),
    ):
        changed.process_available()
    called = engine_over(spark, folders)
    called.query(WIDE, name="q", sink=out)
    called.query(NARROW, name="called", sink=function)
    with pytest.raises(
        CheckpointError, match=r"query called has changed \(its windows: .*\(a function\)"
    ):
        called.process_available()

    # The same query under other settings is resumed: what it emitted before is retracted when its
    # window ends.
    folders.write("A", rows([2], start=2))
    resumed = engine_over(spark, folders, expiry="lazy", sharing="off")
    resumed.query(WIDE.replace(" WINDOW", "\nWINDOW"), name="q", sink=out)
    resumed.process_available(until=51 * SECOND)
    assert answer(tmp_path / "out") == [2]

    folders.write("A", rows([60, 62], start=60))
    replaced = engine_over(spark, folders, replace=True)
    replaced.query(NARROW, name="q", sink=out)
    replaced.query(WIDE, name="called", sink=function)
    replaced.process_available(until=66 * SECOND)
    assert answer(tmp_path / "out") == [61], "only what the new query has"

    # What a function received cannot be deleted; its query starts again all the same.
    folders.write("A", rows([70], start=70))
    taken.clear()
    named = engine_over(spark, folders, replace="called")
    named.query(NARROW, name="q", sink=out)
    named.query(NARROW, name="called", sink=function)
    with caplog.at_level(logging.INFO, "muntin.spark"):
        named.process_available(until=int(70.5 * SECOND))
    assert taken == [70]
    assert "what its sink received before remains there" in caplog.text
    assert answer(tmp_path / "out") == [70], "the other query is resumed"


def test_a_query_added_again_while_the_engine_runs_needs_a_new_folder(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1], start=1))
    out = {"format": "parquet", "path": str(tmp_path / "out")}
    engine = engine_over(spark, folders)
    engine.query(WIDE, name="stays")
    engine.query(WIDE, name="q", sink=out)
    engine.start()
    try:
        engine.advance(int(1.5 * SECOND))
        engine.settle()
        engine.drop("q")
        for sql, name, fact in (
            (NARROW, "q", "from before it was registered again"),
            (WIDE, "q", "from before"),
            (WIDE, "r", "of query q"),
        ):
            with pytest.raises(
                SettingError,
                match=(
                    rf"/out holds results of query q.*{fact if name == 'q' else ''}.*another "
                    r"folder"
                ),
            ):
                engine.query(sql, name=name, sink=out)
        engine.query(WIDE, name="q", sink={"format": "parquet", "path": str(tmp_path / "other")})
        folders.write("A", rows([2], start=2))
        engine.settle()
        engine.advance(int(2.5 * SECOND))
        engine.settle()
    finally:
        engine.stop()
    assert (answer(tmp_path / "out"), answer(tmp_path / "other")) == ([1], [2])


TOTAL = "SELECT COUNT(*) AS n, SUM(v) AS sum FROM A WINDOW 4 SECONDS"
SHARED = {
    "pairs": JOIN,
    "total": TOTAL,
    "changes": CHANGES,
    "same": JOIN.replace("4 SECONDS", "3 SECONDS"),
    "groups": "SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 4 SECONDS EMIT CHANGES",
    "least": "SELECT MIN(v) AS least FROM B WINDOW 3 SECONDS",
}
"""``pairs`` and ``same`` share a join; ``total`` and ``least`` have a global stage."""
WIDER = JOIN.replace("4 SECONDS", "6 SECONDS")
FILES = 6
END = 30 * SECOND


class Replaced:
    """Six queries over random rows, half of which are processed before some are replaced."""

    def __init__(self, spark: SparkSession, base: Path) -> None:
        self.spark = spark
        self.folders = Folders(base / "in")
        self._tables = {name: random_rows(seed, 90, 12) for seed, name in enumerate("AB")}
        self.base = base

    def write(self, half: int) -> None:
        for file in range(FILES // 2 * half, FILES // 2 * (half + 1)):
            for stream, table in self._tables.items():
                self.folders.write(stream, table.slice(file * 15, 15))

    def engine(
        self, queries: Mapping[str, str], replace: Sequence[str] = (), partitions: int = 2
    ) -> SparkEngine:
        """Return an engine; the sinks of the first four queries are folders."""
        path = self.base / "checkpoint"
        made = SparkEngine(self.spark, checkpoint=path, partitions=partitions, replace=replace)
        made.execute(self.folders.declarations())
        for place, (name, sql) in enumerate(queries.items()):
            folder = {"format": "parquet", "path": str(self.base / name)}
            made.query(sql, name=name, sink=folder if place % 2 == 0 else "memory")
        return made

    def check(
        self, engine: SparkEngine, queries: Mapping[str, str], anew: Mapping[str, str]
    ) -> None:
        """Compare with one engine in process that never stopped."""
        expected = self.expected(queries, anew)
        for place, (name, table) in enumerate(expected.items()):
            found = (
                read_batches(self.base / name, table.schema)
                if place % 2 == 0
                else engine.results(name)
            )
            assert len(table), f"query {name} has results to compare"
            problem = difference(table, found)
            assert not problem, f"{name}: {problem}"

    def expected(self, queries: Mapping[str, str], anew: Mapping[str, str]) -> dict[str, pa.Table]:
        engine = muntin.Engine()
        for stream in "AB":
            engine.stream(stream, {"k": "bigint", "v": "bigint", "ts": "timestamp"}, time="ts")
        handles = {name: engine.query(sql, name=name) for name, sql in queries.items()}
        for file in range(FILES):
            if file == FILES // 2:
                for name in anew:
                    engine.drop(name)
                handles |= {name: engine.query(sql, name=name) for name, sql in anew.items()}
            for stream, tables in self.folders.written.items():
                engine.push(stream, tables[file])
        engine.advance(END)
        return {name: handle.poll() for name, handle in handles.items()}


@pytest.mark.parametrize("partitions", [2, 3], ids=["same", "rescaled"])
def test_named_queries_start_again_and_all_others_continue_exactly_once(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, partitions: int
) -> None:
    story = Replaced(spark, tmp_path)
    story.write(0)
    first = story.engine(SHARED)
    first.process_available()
    ids = {name: first._parts.reports.state_of(name).id() for name in SHARED}
    story.write(1)
    now = {**SHARED, "pairs": WIDER}
    with pytest.raises(
        CatalogError, match=r"no query 'nosuch' to replace\. There are pairs, total"
    ):
        story.engine(now, ["nosuch"], partitions).process_available()
    with pytest.raises(CheckpointError, match=r"query pairs .*replace=\[\"total\", \"pairs\"\]"):
        story.engine(now, ["total"], partitions).process_available()
    engine = story.engine(now, ["PAIRS", "total"], partitions)
    with caplog.at_level(logging.INFO, "muntin.spark"):
        engine.process_available(until=END)  # starts twice; the queries are replaced once
    story.check(engine, SHARED, {"pairs": WIDER, "total": TOTAL})
    said = [record.message for record in caplog.records if "is replaced" in record.message]
    assert said == [
        (
            "query pairs is replaced (it has changed: its windows: A [RANGE 4 seconds] is now "
            "[RANGE 6 seconds], B [RANGE 4 seconds] is now [RANGE 6 seconds]): it starts again, "
            "and its earlier output was deleted"
        ),
        (
            "query total is replaced (it has not changed, but was named): it starts again, and "
            "its earlier output was deleted"
        ),
    ]
    same = {name for name in SHARED if engine._parts.reports.state_of(name).id() == ids[name]}
    assert same == set(SHARED) - {"pairs", "total"}


class Killed(BaseException):
    """Ends a start in the middle, as SIGKILL does: nothing is cleaned up on disk."""


def kill_before(owner: object, name: str, calls: int = 1) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a function that makes a call of a method raise ``Killed``."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original, left = getattr(owner, name), [calls]

        def killed(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                raise Killed
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, killed)

    return patch


@pytest.mark.parametrize(
    ("kill", "answer"),
    [
        (kill_before(Checkpoint, "write"), r"query pairs has changed .*replace=\[\"pairs\"\]"),
        (kill_before(LocalFolder, "claim"), "/pairs holds results of query pairs from before"),
        (kill_before(LocalFolder, "remove", 2), "/pairs holds results of query pairs from before"),
        (kill_before(MemorySink, "claim", 3), ""),
        (kill_before(BatchLoop, "begin"), ""),
    ],
    ids=[
        "before the deployment",
        "before deletion",
        "during deletion",
        "before memory is cleared",
        "before the first batch",
    ],
)
def test_a_start_killed_while_it_replaces_queries_is_finished_by_the_next_one(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kill: Callable[[pytest.MonkeyPatch], None],
    answer: str,
) -> None:
    story = Replaced(spark, tmp_path)
    story.write(0)
    story.engine(SHARED).process_available()
    assert len(list((tmp_path / "pairs").glob("batch-*"))) > 1
    story.write(1)
    now, names = {**SHARED, "pairs": WIDER}, ["pairs", "total"]
    with monkeypatch.context() as patch:
        kill(patch)
        with pytest.raises(Killed):
            story.engine(now, names).process_available()
    kept = {path: path.read_bytes() for path in (tmp_path / "pairs").iterdir()}
    if answer:
        with pytest.raises(MuntinError, match=answer):
            story.engine(now).process_available()
        assert {path: path.read_bytes() for path in (tmp_path / "pairs").iterdir()} == kept
        engine = story.engine(now, names, partitions=3)
    else:
        assert not list((tmp_path / "pairs").glob("batch-*")), "it was deleted before"
        with pytest.raises(CheckpointError, match="query pairs has changed"):
            story.engine(SHARED).process_available()
        engine = story.engine(now, partitions=3)  # the queries have been replaced
    engine.process_available(until=END)
    story.check(engine, SHARED, {"pairs": WIDER, "total": TOTAL})
