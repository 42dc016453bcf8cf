"""An engine whose checkpoint is on S3: restarts, crashes and takeovers leave every result once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from muntin.spark import SparkEngine
from muntin.spark.driver.checkpoint import CheckpointError
from muntin.spark.sinks import read_batches
from muntin.spark.storage import Location, storage_at
from muntin.testing.compare import difference
from muntin.testing.processes import descendants, wait_gone
from tests.connectors.conftest import SECRET, Store, new_bucket
from tests.connectors.proxy import Proxy, Trouble
from tests.spark.support import CHANGES, JOIN, SECOND, Folders, rows

pytestmark = [pytest.mark.connectors]

QUERIES = {"pairs": JOIN, "changes": CHANGES}
END = 60 * SECOND


def test_the_connector_is_that_of_sparks_hadoop() -> None:
    jars = Path(pyspark.__file__).parent / "jars"
    (client,) = jars.glob("hadoop-client-api-*.jar")
    pom = (Path(__file__).parent / "pom.xml").read_text(encoding="utf-8")
    (version,) = re.findall(r"hadoop-aws</artifactId>\s*<version>(.*)</version>", pom)
    assert client.name == f"hadoop-client-api-{version}.jar"


def engine_over(spark: SparkSession, folders: Folders, checkpoint: str) -> SparkEngine:
    engine = SparkEngine(spark, checkpoint=checkpoint, partitions=2)
    engine.execute(folders.declarations())
    for name, sql in QUERIES.items():
        engine.query(sql, name=name)
    return engine


def test_an_engine_resumes_from_s3_with_every_result_once(
    spark: SparkSession, store: Store, tmp_path: Path
) -> None:
    folders = Folders(tmp_path)
    checkpoint = f"{store.url}/resumed"
    engine = engine_over(spark, folders, checkpoint)
    for start in (0, 3):
        for stream in "AB":
            folders.write(stream, rows([start, start + 1, start + 2], start=start))
        engine.settle()
    with pytest.raises(
        CheckpointError, match=rf"{checkpoint} is in use by another engine \(process \d+ on"
    ):
        engine_over(spark, folders, checkpoint).process_available()
    engine.stop()
    for stream in "AB":
        folders.write(stream, rows([6, 7, 8], start=6))
    again = engine_over(spark, folders, checkpoint)
    again.process_available(until=END)
    folders.check(QUERIES, {name: again.results(name) for name in QUERIES}, END)
    assert again.late("A").num_rows == 0
    third = engine_over(spark, folders, checkpoint)
    folders.check(QUERIES, {name: third.results(name) for name in QUERIES}, END)
    settings = tuple(store.settings().items())
    storage = storage_at(Location(checkpoint, settings))
    files = storage.tree()
    assert any(name.startswith("spark/commits/") for name in files)
    assert any(name.startswith("muntin/state/") for name in files)
    assert [name for name in files if SECRET.encode() in bytes(storage.get(name))] == []


def test_failing_and_slow_requests_change_no_result(
    spark: SparkSession, store: Store, tmp_path: Path
) -> None:
    folders = Folders(tmp_path)
    bucket = new_bucket(store.endpoint)
    trouble = Trouble()
    with Proxy(store.endpoint, trouble) as proxy:
        endpoint = f"fs.s3a.bucket.{bucket}.endpoint"
        spark.conf.set(endpoint, proxy.endpoint)
        engine = engine_over(spark, folders, f"s3a://{bucket}/state")
        for start in (0, 3, 6):
            for stream in "AB":
                folders.write(stream, rows([start, start + 1, start + 2], start=start))
            trouble.next[:] = [0.0, "busy", 0.0, 0.3, "drop", 0.0, 0.0, "busy", "busy", 0.0] * 4
            engine.settle()
        assert trouble.requests > 50, "all requests go through the proxy"
        engine.advance(END)
        engine.settle()
        engine.stop()
        folders.check(QUERIES, {name: engine.results(name) for name in QUERIES}, END)
        spark.conf.unset(endpoint)
        proxy.shutdown()


def start_child(base: Path, store: Store, checkpoint: str) -> subprocess.Popen[bytes]:
    child = Path(__file__).parent / "s3_child.py"
    command = [sys.executable, str(child), str(base), checkpoint, str(END)]
    environment = {**os.environ, "CHILD_SETTINGS": json.dumps(store.spark_settings())}
    with (base / "log").open("ab") as log:
        return subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env=environment
        )


def test_a_driver_killed_on_s3_is_replaced_at_once_and_leaves_every_result_once(
    store: Store, tmp_path: Path
) -> None:
    folders = Folders(tmp_path / "in")
    for file in range(6):
        for stream in "AB":
            seconds = [file * 2, file * 2 + 0.5, file * 2 + 1]
            folders.write(stream, rows(seconds, start=file * 3))
    (tmp_path / "streams.sql").write_text(folders.declarations(), encoding="utf-8")
    (tmp_path / "queries.json").write_text(json.dumps(QUERIES), encoding="utf-8")
    checkpoint = f"{store.url}/killed"
    settings = tuple(store.settings().items())
    storage = storage_at(Location(checkpoint, settings))
    child = start_child(tmp_path, store, checkpoint)
    try:
        until = time.monotonic() + 180
        while "2" not in storage.names("spark/offsets"):
            assert child.poll() is None, log_of(tmp_path)
            assert time.monotonic() < until, log_of(tmp_path)
            time.sleep(0.05)
        below = descendants(child.pid)
    finally:
        child.kill()
        child.wait()
    assert not wait_gone(below, 30), "processes outlive the engine"
    assert not (tmp_path / "done").exists()
    child = start_child(tmp_path, store, checkpoint)
    assert child.wait(240) == 0, log_of(tmp_path)
    assert SECRET not in (tmp_path / "log").read_text(encoding="utf-8")
    expected = folders.expected(QUERIES, END)
    for name in QUERIES:
        found: pa.Table = read_batches(tmp_path / "out" / name, expected[name].schema)
        problem = difference(expected[name], found)
        assert not problem, f"{name}: {problem}"


def log_of(base: Path) -> str:
    return (base / "log").read_text(encoding="utf-8")[-3000:]
