"""What consoles print, what folders hold, and which sink a query gets.

No session is needed for these.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from muntin.errors import RunError, SettingError
from muntin.model.catalog import Catalog, Stream
from muntin.plan.nodes import Join
from muntin.plan.query import Query
from muntin.spark import result_target
from muntin.spark.batch_results import BatchResults
from muntin.spark.console_sink import ConsoleSink
from muntin.spark.driver.output_writer import OutputWriter
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.partition.spool import Spool
from muntin.spark.sink_ownership import SinkOwner
from muntin.spark.sinks import FileSink, Sink, SinkError, SinkMaker, SparkSink
from muntin.spark.storage import LocalStorage
from muntin.sql.script import read_query

RESULTS = pa.table({"_op": ["+", "+", "-"], "k": [1, 2, 1], "name": ["a", None, "a"]})


class Own(Sink):
    def write(self, results: BatchResults, batch: int) -> None:
        raise NotImplementedError


def test_text_output_has_the_first_rows_of_a_batch(capsys: pytest.CaptureFixture[str]) -> None:
    sink = ConsoleSink("q", most=2)
    sink.write(BatchResults.of(RESULTS.slice(0, 0)), 6)
    sink.write(BatchResults.of(RESULTS), 7)
    assert (
        capsys.readouterr().out
        == "-- q, batch 7: 3 changes\n_op  k  name\n+  1  a\n+  2  None\n... 1 more\n"
    )


def test_json_output_has_all_rows_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    ConsoleSink("q", as_json=True, most=1).write(BatchResults.of(RESULTS), 7)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows == [{"query": "q", "batch": 7, **row} for row in RESULTS.to_pylist()]


def test_a_query_without_a_sink_gets_the_default_one() -> None:
    maker = SinkMaker(cast("Any", None), LocalStorage(Path("unused")))
    own = Own()
    query = Query("q", "", Join((), (), (), ()))
    assert maker.make(query, own) is own
    maker.default, maker.as_json, maker.most = "console", True, 5
    assert maker.make(query, None) == ConsoleSink("q", as_json=True, most=5)
    maker.default = own
    assert maker.make(query, None) is own


def test_a_folder_has_a_batch_once_however_often_it_is_written(tmp_path: Path) -> None:
    for kind in ("parquet", "csv", "json"):
        sink = FileSink(tmp_path / kind, kind)
        sink.write(BatchResults.of(RESULTS.slice(1)), 0)
        sink.write(BatchResults.of(RESULTS), 0)
        sink.write(BatchResults.of(RESULTS.slice(0, 0)), 1)
        assert [path.name for path in (tmp_path / kind).iterdir()] == [f"batch-000000000.{kind}"]
    assert pa.parquet.read_table(tmp_path / "parquet").equals(RESULTS)
    assert pa.csv.read_csv(tmp_path / "csv" / "batch-000000000.csv").column("k").to_pylist() == [
        1,
        2,
        1,
    ]
    lines = (tmp_path / "json" / "batch-000000000.json").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == RESULTS.to_pylist()


def test_a_folder_is_local_with_or_without_its_scheme_and_other_places_are_sparks(
    tmp_path: Path,
) -> None:
    maker = SinkMaker(cast("Any", None), LocalStorage(Path("unused")))
    catalog = Catalog()
    catalog.add(
        Stream("A", pa.schema([("k", pa.list_(pa.int64())), ("ts", pa.timestamp("us"))]), "ts")
    )
    query = read_query("SELECT k FROM A WINDOW 1 SECOND", "q", catalog)
    for path in (str(tmp_path), f"file://{tmp_path}"):
        assert maker.make(query, {"format": "JSON", "path": path}) == FileSink(tmp_path, "json")
    assert isinstance(
        maker.make(query, {"format": "parquet", "path": "hdfs://there/out"}), SparkSink
    )
    assert isinstance(maker.make(query, {"format": "orc", "path": str(tmp_path)}), SparkSink)
    with pytest.raises(SettingError, match="the orc sink of query q has no path"):
        maker.make(query, {"format": "orc"})
    with pytest.raises(
        SettingError,
        match=(
            r"column k of type list<item: int64> cannot be written as csv\. Cast it, or use "
            r"format json"
        ),
    ):
        maker.make(query, {"format": "csv", "path": str(tmp_path)})


def test_files_are_on_disk_before_a_batch_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, real = [], os.fsync

    def noted(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    sink = FileSink(tmp_path / "out", "parquet")
    file = sink.target().write(RESULTS, 0, 0)
    sink.target().sync(file)
    assert synced == [tmp_path.name, file], "the new folder and the file"
    sink.write(BatchResults(RESULTS.schema, 3, (file,)), 0)
    assert not synced[2:], "all sinks are synchronized together, when each has its results"
    sink.sync()
    assert synced[2:] == ["out"], "the names in the folder"
    sink.write(BatchResults(RESULTS.schema, 0), 1)
    sink.sync()
    assert not synced[3:], "nothing was written since"


def test_a_file_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(result_target, "encode_results", full)
    with pytest.raises(OSError, match="No space"):
        FileSink(tmp_path, "parquet").target().write(RESULTS, 0)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_shared_is_reported_with_a_remedy(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "here", "parquet")
    file = FileSink(tmp_path / "there", "parquet").target().write(RESULTS, 0, 0)
    with pytest.raises(RunError, match=r"not in .*here on this machine.*same on every machine"):
        sink.write(BatchResults(RESULTS.schema, 3, (file,)), 0)


def test_what_an_interrupted_attempt_wrote_is_removed_even_if_there_are_no_results_now() -> None:
    class Place:
        names: ClassVar = ["batch=3", "batch=4"]

        def batches(self) -> list[str]:
            return list(self.names)

        def claim(self, *_: object, **__: object) -> None: ...

        def keep(self, _: object) -> None: ...

        def remove(self, name: str) -> None:
            self.names.remove(name)

    class Placed(SparkSink):
        def place(self) -> Any:
            return Place()

    sink = Placed(cast("Any", None), "q", "orc", {"path": "there"})
    sink.claim(SinkOwner("run", "q", "one", "checkpoint"), replace=False)
    sink.write(BatchResults.of(RESULTS.slice(0, 0)), 4)
    assert Place.names == ["batch=3"]


def test_a_sink_that_cannot_be_synchronized_fails_the_batch(tmp_path: Path) -> None:
    class Unsynchronized(Sink):
        def write(self, results: BatchResults, batch: int) -> None:
            pass

        def sync(self) -> None:
            raise OSError("no space left")

    query: Any = SimpleNamespace(
        query=SimpleNamespace(name="q", output_schema=RESULTS.schema),
        sink=Unsynchronized(),
        deployed=SimpleNamespace(incarnation="one"),
    )
    writer = OutputWriter(LocalStorage(tmp_path), Spool(LocalStorage(tmp_path / "spool")))
    writer.begin(Deployment((), {}, (), (), 1), 0)
    with pytest.raises(SinkError, match="sink of query q failed in batch 0: OSError: no space"):
        writer.write({}, 0, {"q": query}, ())


def test_late_rows_of_an_interrupted_attempt_are_removed(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
    stream = Stream("A", schema, "ts")
    deployment = Deployment((stream,), {}, (), (), 1)
    writer = OutputWriter(LocalStorage(tmp_path), Spool(LocalStorage(tmp_path / "spool")))
    for batch in (3, 4):  # by an earlier run
        writer.late_rows(stream).write(pa.table([[1], [2]], schema=schema), batch)
    writer.begin(deployment, 4)
    writer.plan(4, (), ())
    writer.write({}, 4, {}, (stream,))
    assert LocalStorage(tmp_path / "late" / "A").names() == ["batch-000000003.parquet"]


def test_files_of_lost_attempts_are_removed_in_the_course_of_a_run(tmp_path: Path) -> None:
    sink, lost = FileSink(tmp_path, "parquet"), ""
    for batch in (62, 63, 64):
        lost, won = (sink.target().write(RESULTS, batch, 0) for _ in range(2))
        sink.write(BatchResults(RESULTS.schema, 3, (won,)), batch)
        assert (tmp_path / lost).exists()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[1:] == [f"batch-0000000{batch}-00000.parquet" for batch in (62, 63, 64)]
    assert names[0] == lost, "the attempt of the last batch may still run"
