"""After any process is killed at any time, a final restart gives every result exactly once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from muntin.model.catalog import Catalog, Stream
from muntin.plan.query import Emit
from muntin.spark import SparkEngine
from muntin.spark.sinks import read_batches
from muntin.sql.script import read_query
from muntin.testing.compare import difference
from muntin.testing.oracle import Oracle
from muntin.testing.processes import descendants, kill, residents, wait_gone, workers
from tests.spark.support import CHANGES, JOIN, SCHEMA, SECOND, Folders, random_rows, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

KILLS = 20 if os.environ.get("MUNTIN_PROFILE") == "deep" else 3
QUERIES = {"pairs": JOIN, "changes": CHANGES}
FILES = KILLS + 4
END = (FILES * 2 + 10) * SECOND


def start_child(base: Path, temporary: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(Path(__file__).parent / "crash_child.py"), str(base), str(END)]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with (base / "log").open("ab") as log:
        return subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env=environment
        )


@pytest.fixture
def temporary() -> Iterator[Path]:
    """Yield a folder for temporary files whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="crash-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def leftovers(temporary: Path) -> list[str]:
    """Return the files of Muntin in a temporary folder, except its own empty folder."""
    return [
        str(path)
        for path in temporary.rglob("*")
        if path.name != f"muntin-{os.getuid()}" and "hsperfdata" not in str(path)
    ]


def wait_for_batch(child: subprocess.Popen[bytes], base: Path, batch: int) -> None:
    """Wait until Spark has planned a batch, or the child has ended."""
    until = time.monotonic() + 180
    while (
        child.poll() is None
        and not (base / "checkpoint" / "spark" / "offsets" / str(batch)).exists()
    ):
        assert time.monotonic() < until, (
            "the child makes no progress: " + (base / "log").read_text(encoding="utf-8")[-2000:]
        )
        time.sleep(0.02)


def prepare(base: Path) -> Folders:
    folders = Folders(base / "in")
    for number, stream in enumerate("AB"):
        table = random_rows(number, FILES * 12, FILES * 2)
        for file in range(FILES):
            folders.write(stream, table.slice(file * 12, 12))
    (base / "streams.sql").write_text(folders.declarations(), encoding="utf-8")
    for name, sql in QUERIES.items():
        (base / f"query-{name}.sql").write_text(sql, encoding="utf-8")
    return folders


def oracle_results(folders: Folders, name: str) -> pa.Table:
    catalog = Catalog()
    for stream in folders.streams:
        catalog.add(Stream(stream, SCHEMA, "ts"))
    query = read_query(QUERIES[name], name, catalog)
    oracle = Oracle(
        query,
        {stream: pa.concat_tables(tables) for stream, tables in folders.written.items()},
        {},
        catalog,
    )
    return oracle.inserts(END) if query.emit is Emit.INSERTS else oracle.changes(END)


def test_a_process_killed_at_random_moments_leaves_every_result_once(
    tmp_path: Path, temporary: Path
) -> None:
    folders = prepare(tmp_path)
    random = Random(4)
    for number in range(KILLS):
        child = start_child(tmp_path, temporary)
        try:
            wait_for_batch(child, tmp_path, number + 1)
            time.sleep(random.random() * 1.5)
            below = descendants(child.pid)
            assert child.poll() is None, "it is killed before it is done"
            assert residents(child.pid), "partitions have processes"
        finally:
            child.kill()
            child.wait()
        left = wait_gone(below, 30)
        assert not left, f"processes outlive the engine: {left}"
        assert leftovers(temporary), "nobody has cleaned up"
    child = start_child(tmp_path, temporary)
    assert child.wait(300) == 0, (tmp_path / "log").read_text(encoding="utf-8")[-3000:]
    assert (tmp_path / "done").exists()
    until = time.monotonic() + 30
    while leftovers(temporary) and time.monotonic() < until:
        time.sleep(0.1)  # Java and the processes of partitions end a moment later
    assert leftovers(temporary) == [], "the last start has swept what those before it left"
    assert [str(path) for path in tmp_path.rglob("*.part")] == []
    for name in QUERIES:
        expected = oracle_results(folders, name)
        problem = difference(expected, read_batches(tmp_path / "out" / name, expected.schema))
        assert not problem, f"{name}: {problem}"


def test_state_servers_and_workers_that_are_killed_are_replaced(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path / "in")
    engine = SparkEngine(spark, checkpoint=tmp_path / "checkpoint", partitions=2)
    engine.execute(folders.declarations())
    for name, sql in QUERIES.items():
        engine.query(sql, name=name)
    for step in range(3):
        for stream in "AB":
            folders.write(stream, rows([step * 3, step * 3 + 1, step * 3 + 2], start=step * 3))
        engine.settle()
        assert len(residents(os.getpid())) >= 2, "each partition has a process of its own"
        for pid in residents(os.getpid()):
            kill(pid)
    for stream in "AB":
        folders.write(stream, rows([10, 11, 12], start=20))
    # In the middle of a batch: the task is tried again.
    below = workers(os.getpid())
    assert below
    timers = [
        threading.Timer(0.2 * place, kill, [pid]) for place, pid in enumerate(below[:2], start=1)
    ]
    for timer in timers:
        timer.start()
    engine.settle()
    for timer in timers:
        timer.join()
    engine.advance(20 * SECOND)
    engine.settle()
    found = {name: engine.results(name) for name in QUERIES}
    engine.stop()
    folders.check(QUERIES, found, 20 * SECOND)
    assert not wait_gone(residents(os.getpid()), 10), "after a stop no process has a partition"
