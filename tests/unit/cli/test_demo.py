"""The demo without Spark: the files it writes, and its queries over them in process."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import muntin
from muntin.cli.demo import QUERIES, SPEED, STREAMS, ReadingsWriter, Recent
from muntin.spark.batch_results import BatchResults


def test_readings_continue_without_gaps_beyond_the_point_where_they_repeat(tmp_path: Path) -> None:
    for stream in ("Temperature", "Humidity"):
        (tmp_path / stream).mkdir()
    feed = ReadingsWriter(tmp_path, 40)
    for _ in range(62):
        feed.step()
    files = sorted((tmp_path / "Temperature").iterdir())
    assert [file.name for file in files] == [f"{number:06d}.parquet" for number in range(62)]
    times = pq.read_table(files).column("ts").cast("int64").to_numpy()
    assert len(times) == 62 * 20
    assert set(times[1:] - times[:-1]) == {SPEED * 1_000_000 // 40}
    assert feed.now() * 1_000_000 == times[-1] + SPEED * 1_000_000 // 40


def test_every_query_of_the_demo_has_results(tmp_path: Path) -> None:
    for stream in ("Temperature", "Humidity"):
        (tmp_path / stream).mkdir()
    feed = ReadingsWriter(tmp_path, 400)
    for _ in range(40):
        feed.step()
    engine = muntin.Engine()
    engine.execute(STREAMS.format(folder=tmp_path))
    handles = [engine.query(sql, name=name) for name, sql in QUERIES.items()]
    for stream in ("Temperature", "Humidity"):
        engine.push(stream, pq.read_table(sorted((tmp_path / stream).iterdir())))
    minute, hour, alarms = (handle.poll() for handle in handles)
    assert 0 < len(minute) < len(hour)
    assert pc.min(alarms.column("temperature")).as_py() > 34
    assert set(alarms.column("_op").to_pylist()) == {"+", "-"}


def test_the_last_changes_are_kept_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    engine = muntin.Engine()
    engine.stream("A", {"k": "int", "v": "double", "ts": "timestamp"})
    query = engine.query("SELECT k, v FROM A [RANGE 1 MINUTE]", name="q")
    engine.push("A", [(k, k / 2, f"2026-01-01 00:00:0{k}") for k in range(9)])
    engine.advance("2026-01-01 00:00:09")
    recent = Recent("q", printing=True)
    recent.write(BatchResults.of(query.poll()), 0)
    recent.write(BatchResults.of(query.poll()), 1)
    assert recent.total == 9
    assert list(recent.lines) == [f"+ 00:00:0{k}.00  k {k}  v {k / 2:g}" for k in range(3, 9)]
    assert capsys.readouterr().out == "         q + 00:00:08.00  k 8  v 4\n"
