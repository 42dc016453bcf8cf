"""``muntin run`` interrupted from a terminal, and left idle.

It loses no data, leaves no process behind and uses no CPU while idle.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from muntin.spark.sinks import read_batches
from muntin.testing.processes import cpu_seconds, descendants, wait_gone
from tests.spark.support import CHANGES, JOIN, Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

INTERRUPTS = int(os.environ.get("MUNTIN_INTERRUPTS", "3"))
QUERIES = {"pairs": JOIN, "changes": CHANGES}
LONGEST_START = 8.0
"""Seconds from the start during which an interrupt meets Python, Java or Spark starting."""


@pytest.fixture(autouse=True)
def _interrupts_are_not_ignored() -> None:
    """Restore the SIGINT handler: background jobs of a shell and their children ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def start(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start ``muntin run`` in a new process group, as a shell does."""
    code = [
        sys.executable,
        "-c",
        "from muntin.cli import main; main()",
        "run",
        "app.sql",
        "--partitions",
        "2",
        *options,
    ]
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        return subprocess.Popen(
            code,
            cwd=folder,
            env={**os.environ, "PYTHONFAULTHANDLER": "1"},
            stdout=out,
            stderr=err,
            start_new_session=True,
        )


def said(folder: Path) -> str:
    return (folder / "err").read_text(encoding="utf-8")


def batches(folder: Path, log: str) -> int:
    """Count the batches that were begun ("offsets") or completed ("commits")."""
    numbers = [
        int(path.name)
        for path in (folder / "state" / "spark" / log).glob("[0-9]*")
        if path.name.isdecimal()
    ]
    return max(numbers, default=-1) + 1


def await_batch(process: subprocess.Popen[bytes], folder: Path, number: int) -> None:
    until = time.monotonic() + 300
    while batches(folder, "offsets") < number:
        assert process.poll() is None, said(folder)
        assert time.monotonic() < until, f"no further batch begins: {said(folder)}"
        time.sleep(0.05)


def interrupt(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Press Ctrl-C; fail unless the run ends with one line, no traceback and no process left."""
    below = descendants(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    try:
        code = process.wait(120)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # prints where all threads are
        process.wait(30)
        pytest.fail(f"interrupted, but still running after 120 seconds: {said(folder)}")
    reported = said(folder)
    assert "Traceback" not in reported, reported
    assert "Exception" not in reported, reported
    if reported:  # else it was interrupted before the command line was there
        assert code == 0, reported
        assert reported.splitlines()[-1].startswith("Stopped "), reported
    else:
        assert code in (130, -signal.SIGINT, 1), code
    left = wait_gone(below, 30)
    assert not left, f"processes outlive the run: {left}"


def test_sigint_at_random_moments_of_a_live_run_leaves_every_result_once(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "in")
    sinks = {name: tmp_path / "sinks" / name for name in QUERIES}
    created = [
        f"CREATE QUERY {name} AS {sql} WITH (sink = 'parquet', path = '{sinks[name]}');"
        for name, sql in QUERIES.items()
    ]
    (tmp_path / "app.sql").write_text(folders.declarations() + "\n".join(created), encoding="utf-8")
    random = Random(int(os.environ.get("MUNTIN_SEED", "18")))
    for number in range(INTERRUPTS):
        for part in range(2):
            for stream in "AB":
                second = 4 * number + 2 * part
                folders.write(stream, rows([second, second + 1.5], start=second))
        begun = batches(tmp_path, "offsets")
        process = start(tmp_path, "--checkpoint", "state")
        try:
            if number % 2:
                time.sleep(random.random() * LONGEST_START)
            else:
                await_batch(process, tmp_path, begun + 1)
                time.sleep(random.random() * 3)
            interrupt(process, tmp_path)
        finally:
            process.kill()
            process.wait()
    end = 4 * INTERRUPTS + 10
    process = start(
        tmp_path,
        "--checkpoint",
        "state",
        "--until",
        f"1970-01-01 {end // 3600:02d}:{end // 60 % 60:02d}:{end % 60:02d}",
    )
    try:
        assert process.wait(600) == 0, said(tmp_path)
    finally:
        process.kill()
        process.wait()
    expected = folders.expected(QUERIES, end * 1_000_000)
    folders.check(
        QUERIES,
        {name: read_batches(sinks[name], expected[name].schema) for name in QUERIES},
        end * 1_000_000,
    )


@pytest.mark.parametrize("options", [(), ("--heartbeat", "1 second")], ids=["rows", "heartbeat"])
def test_an_idle_run_uses_less_than_five_percent_of_a_core(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    folders = Folders(tmp_path / "in")
    script = folders.declarations() + "\n".join(
        f"CREATE QUERY {name} AS {sql};" for name, sql in QUERIES.items()
    )
    (tmp_path / "app.sql").write_text(script, encoding="utf-8")
    for stream in "AB":
        folders.write(stream, rows([1, 2, 3]))
    process = start(tmp_path, "--checkpoint", "state", *options)
    try:
        await_batch(process, tmp_path, 1)
        used = 1.0
        until = time.monotonic() + 240  # Java compiles for a while what has become hot at the start
        while used >= 0.05:
            assert time.monotonic() < until, f"{used:.3f} of a core when idle: {said(tmp_path)}"
            time.sleep(2)
            before, began = cpu_seconds(process.pid), time.monotonic()
            time.sleep(10)
            used = (cpu_seconds(process.pid) - before) / (time.monotonic() - began)
        done = batches(tmp_path, "commits")
        folders.write("A", rows([4], start=3))
        await_batch(process, tmp_path, done + 1)
        interrupt(process, tmp_path)
    finally:
        process.kill()
        process.wait()
