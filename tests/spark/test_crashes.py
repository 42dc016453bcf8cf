"""After any process is killed at any time, a final restart gives every result exactly once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from muntin.model.catalog import Catalog, Stream
from muntin.plan.query import Emit
from muntin.spark import SparkEngine
from muntin.spark.sinks import read_batches
from muntin.sql.script import read_query
from muntin.testing.compare import difference
from muntin.testing.oracle import Oracle
from muntin.testing.processes import command, descendants, kill, state_servers, wait_gone, workers
from tests.spark.support import CHANGES, JOIN, SCHEMA, SECOND, Folders, random_rows, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

KILLS = int(os.environ.get("MUNTIN_KILLS", "6"))
QUERIES = {
    "pairs": JOIN,
    "changes": CHANGES,
    "counts": "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW 4 SECONDS",
    "total": "SELECT COUNT(*) AS n, SUM(v) AS s FROM A WINDOW 3 SECONDS",
}
FILES = 8
"""Files of each stream that are written whenever the input runs out."""


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


@dataclass
class Victim:
    """The program under test, which is started again and again with other numbers of partitions."""

    base: Path
    temporary: Path
    random: Random
    folders: Folders = field(init=False)
    child: subprocess.Popen[bytes] | None = None
    files: int = 0

    def __post_init__(self) -> None:
        self.folders = Folders(self.base / "in")
        (self.base / "streams.sql").write_text(self.folders.declarations(), encoding="utf-8")
        for name, sql in QUERIES.items():
            (self.base / f"query-{name}.sql").write_text(sql, encoding="utf-8")
        self.write()

    @property
    def end(self) -> int:
        """An instant after all rows have left their windows."""
        return (self.files * 2 + 10) * SECOND

    def write(self) -> None:
        """Write more input; every file has the rows of two seconds."""
        for _ in range(FILES):
            for stream in "AB":
                table = random_rows(self.random.randrange(2**31), 12, 2)
                later = pc.add(table.column("ts"), timedelta(seconds=2 * self.files))
                self.folders.write(stream, table.set_column(2, "ts", later))
            self.files += 1

    def start(self, *, until: int | None = None) -> subprocess.Popen[bytes]:
        """Start it; only the last start may advance time, or later rows would be late."""
        program = str(Path(__file__).parent / "crash_child.py")
        partitions = str(self.random.choice([1, 2, 2, 3, 5]))
        command = [sys.executable, program, str(self.base), partitions]
        command += [] if until is None else [str(until)]
        environment = {**os.environ, "TMPDIR": str(self.temporary)}
        with (self.base / "log").open("ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env=environment
            )

    def log(self) -> str:
        return (self.base / "log").read_text(encoding="utf-8")[-3000:]

    def running(self) -> subprocess.Popen[bytes]:
        """Return the process; start it again if it is done, with more input."""
        if self.child is not None and self.child.poll() is not None:
            assert self.child.returncode == 0, self.log()
            self.child = None
            self.write()
        if self.child is None:
            self.child = self.start()
        return self.child

    def wait(self, ready: Callable[[], object]) -> None:
        """Wait until something is so, or the process is done."""
        until = time.monotonic() + 180
        while self.running().poll() is None and not ready():
            assert time.monotonic() < until, f"the program makes no progress: {self.log()}"
            time.sleep(0.005)

    def planned(self) -> int:
        """Return how many batches Spark has planned."""
        return max(map(int, self._names("checkpoint/spark/offsets", "[0-9]*")), default=-1) + 1

    def _names(self, folder: str, pattern: str) -> list[str]:
        return [path.name for path in (self.base / folder).glob(pattern)]

    def kill_program(self, *others: int) -> None:
        """Kill the driver, or another process on which it depends; all of them must end."""
        child = self.running()
        below = descendants(child.pid)
        for pid in others or (child.pid,):
            kill(pid)
        if others:
            child.wait(120)
        child.kill()
        child.wait()
        left = wait_gone(below, 30)
        assert not left, f"processes outlive the engine: {left}"
        self.child = None

    # -- the moments at which something is killed ----------------------------------------------

    def driver_in_a_batch(self) -> None:
        before = self.planned()
        self.wait(lambda: self.planned() > before)
        time.sleep(self.random.random() * 0.6)
        self.kill_program()

    def driver_at_a_commit(self) -> None:
        """Kill it while files of results wait for their names, or right after."""
        self.wait(lambda: list((self.base / "out").glob("*/.batch-*")))
        self.kill_program()

    def driver_at_the_start(self) -> None:
        """Kill it while it resumes, and perhaps redistributes the state."""
        if self.child is not None:
            self.kill_program()
        child = self.running()
        self.wait(lambda: any("java" in command(pid) for pid in descendants(child.pid)))
        time.sleep(self.random.random() * 6)
        self.kill_program()

    def executor(self) -> None:
        """Kill Java, which is driver and executor in local mode."""
        before = self.planned()
        self.wait(lambda: self.planned() > before)
        java = [pid for pid in descendants(self.running().pid) if "java" in command(pid)]
        self.kill_program(*java)

    def worker(self) -> None:
        self._one_of(workers)

    def state_server(self) -> None:
        self._one_of(state_servers)

    def _one_of(self, processes: Callable[[int], list[int]]) -> None:
        before = self.planned()
        self.wait(lambda: self.planned() > before and processes(self.running().pid))
        time.sleep(self.random.random() * 0.3)
        found = processes(self.running().pid)
        if found:
            kill(self.random.choice(found))


KINDS = (
    Victim.driver_in_a_batch,
    Victim.driver_at_a_commit,
    Victim.driver_at_the_start,
    Victim.executor,
    Victim.worker,
    Victim.state_server,
)


def oracle_results(folders: Folders, name: str, end: int) -> pa.Table:
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
    return oracle.inserts(end) if query.emit is Emit.INSERTS else oracle.changes(end)


def test_processes_killed_at_random_moments_leave_every_result_once(
    tmp_path: Path, temporary: Path
) -> None:
    seed = int(os.environ.get("MUNTIN_SEED", "0")) or time.time_ns()
    print("MUNTIN_SEED =", seed)  # noqa: T201 (pytest shows it if the test fails)
    victim = Victim(tmp_path, temporary, Random(seed))
    for number in range(KILLS):
        KINDS[number % len(KINDS)](victim)
    if victim.child is not None:
        assert victim.child.wait(600) == 0, victim.log()
    child = victim.start(until=victim.end)
    assert child.wait(600) == 0, victim.log()
    until = time.monotonic() + 30
    while leftovers(temporary) and time.monotonic() < until:
        time.sleep(0.1)  # Java and the processes of partitions end a moment later
    assert leftovers(temporary) == [], "the last start has swept what those before it left"
    assert [str(path) for path in tmp_path.rglob("*.part")] == []
    expected = victim.folders.expected(QUERIES, victim.end)
    found = {
        name: read_batches(tmp_path / "out" / name, table.schema)
        for name, table in expected.items()
    }
    victim.folders.check(QUERIES, found, victim.end)
    for name in ("pairs", "changes"):
        problem = difference(oracle_results(victim.folders, name, victim.end), found[name])
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
        assert len(state_servers(os.getpid())) >= 2, "each partition has its own process"
        for pid in state_servers(os.getpid()):
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
    assert not wait_gone(state_servers(os.getpid()), 10), "after a stop no process has a partition"
