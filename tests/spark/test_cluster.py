"""``muntin run`` on a real standalone cluster on this machine.

It gives the same answers, each exactly once, even if a worker dies during the run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from muntin.spark.sinks import read_batches
from muntin.testing.cluster import SETTINGS, Cluster
from muntin.testing.processes import descendants, wait_gone
from tests.spark.support import CHANGES, JOIN, Folders, random_rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

QUERIES = {"pairs": JOIN, "changes": CHANGES}
FILES = 24


def prepare(base: Path) -> Folders:
    """Write a script over folders of files; each file is a micro-batch."""
    folders = Folders(base / "in")
    for number, stream in enumerate("AB"):
        table = random_rows(number, FILES * 12, FILES * 2)
        for file in range(FILES):
            folders.write(stream, table.slice(file * 12, 12))
    queries = [
        f"CREATE QUERY {name} AS {sql} WITH (sink = 'parquet', path = 'out/{name}');\n"
        for name, sql in QUERIES.items()
    ]
    (base / "app.sql").write_text(folders.declarations() + "".join(queries), encoding="utf-8")
    return folders


@contextmanager
def driver(cluster: Cluster, base: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start ``muntin run`` on the cluster.

    The memory of executors is configured as for any Spark application.
    """
    conf = " ".join(f"--conf {name}={value}" for name, value in SETTINGS.items())
    program = [sys.executable, "-c", "from muntin.cli import main; main()"]
    arguments = [
        "run",
        "app.sql",
        "--once",
        "--master",
        cluster.master,
        "--partitions",
        "2",
        "--checkpoint",
        "state",
    ]
    environment = {**cluster.environment, "PYSPARK_SUBMIT_ARGS": f"{conf} pyspark-shell"}
    with (base / "log").open("wb") as log:
        process = subprocess.Popen(
            [*program, *arguments], stdout=log, stderr=log, cwd=base, env=environment
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_worker_that_dies_during_a_run_leaves_every_result_once(tmp_path: Path) -> None:
    folders = prepare(tmp_path)
    offsets = tmp_path / "state" / "spark" / "offsets"
    with Cluster(tmp_path / "cluster") as cluster, driver(cluster, tmp_path) as running:

        def said() -> str:
            return (tmp_path / "log").read_text(encoding="utf-8")[-3000:] + cluster.log()

        def wait_until(true: Callable[[], bool]) -> None:
            until = time.monotonic() + 180
            while not true():
                assert running.poll() is None, "the driver has ended: " + said()
                assert time.monotonic() < until, "the driver makes no progress: " + said()
                time.sleep(0.05)

        wait_until((offsets / "2").exists)
        before = cluster.state_servers()
        assert len({socket for socket, _ in before.values()}) == 2, "each partition has a process"
        victim = next(
            pid
            for pid in cluster.worker_pids
            if any(parent in descendants(pid) for _, parent in before.values())
        )
        orphans = {
            pid: socket for pid, (socket, parent) in before.items() if parent in descendants(victim)
        }
        cluster.kill_worker(victim)
        assert not wait_gone(list(orphans), 10), "state servers end with their executor"
        wait_until(
            lambda: (
                {*orphans.values()} <= {socket for socket, _ in cluster.state_servers().values()}
            )
        )
        assert not (offsets / str(FILES - 1)).exists(), "it was in mid-run"
        assert running.wait(180) == 0, said()
        assert not wait_gone(
            [*cluster.state_servers(), *cluster.processes("CoarseGrainedExecutorBackend")], 20
        ), "they end with the driver"
    assert not cluster.processes()
    expected = folders.expected(QUERIES)
    folders.check(
        QUERIES,
        {name: read_batches(tmp_path / "out" / name, expected[name].schema) for name in QUERIES},
    )


def test_a_subscriber_in_the_driver_gets_results_from_executors_even_after_a_worker_died(
    tmp_path: Path,
) -> None:
    folders = prepare(tmp_path)
    program = Path(__file__).parent / "subscribing_child.py"
    with Cluster(tmp_path / "cluster") as cluster, (tmp_path / "log").open("wb") as log:
        settings = json.dumps(SETTINGS)
        arguments = [sys.executable, str(program), str(tmp_path), cluster.master, JOIN, settings]
        running = subprocess.Popen(
            arguments, stdout=log, stderr=log, cwd=tmp_path, env=cluster.environment
        )
        try:
            until = time.monotonic() + 180
            while not (tmp_path / "batch-2").exists():
                assert running.poll() is None, "the driver has ended"
                assert time.monotonic() < until, "no results come"
                time.sleep(0.05)
            victim = next(
                pid
                for pid in cluster.worker_pids
                if any(parent in descendants(pid) for _, parent in cluster.state_servers().values())
            )
            cluster.kill_worker(victim)
            assert running.wait(180) == 0, (tmp_path / "log").read_text(encoding="utf-8")[
                -3000:
            ] + cluster.log()
        finally:
            running.kill()
            running.wait()
    reported = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    assert reported["unsent"] == 0
    expected = folders.expected(QUERIES)["pairs"]
    assert sorted(reported["values"]) == sorted(expected.column("x").to_pylist())
    assert reported["partitions"] == [0, 1]
