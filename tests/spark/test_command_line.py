"""``muntin run`` and ``muntin demo`` as users run them, on a local Spark.

Tests use separate processes where that matters.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muntin
from muntin.spark.sinks import read_batches
from muntin.testing.compare import difference
from muntin.testing.generators import uniform_stream
from tests.spark.support import muntin_command

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

SCRIPT = """
CREATE STREAM A (k BIGINT, v DOUBLE, ts TIMESTAMP) \
WITH (format = 'parquet', path = 'A', maxFilesPerTrigger = '1');
CREATE STREAM B (k BIGINT, v DOUBLE, ts TIMESTAMP) \
WITH (format = 'parquet', path = 'B', maxFilesPerTrigger = '1');
CREATE QUERY pairs AS SELECT A.k, A.v AS a, B.v AS b FROM A, B WHERE A.k = B.k WINDOW 2 SECONDS;
CREATE QUERY last AS SELECT A.k, A.v FROM A [ROWS 2] EMIT CHANGES \
WITH (sink = 'parquet', path = '{sink}');
"""


def command(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    code = [sys.executable, "-c", "from muntin.cli import main; main()", *arguments]
    return subprocess.run(
        code,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        env={**os.environ, **environment},
    )


def write(folder: Path, number: int) -> None:
    """Write the rows of ten seconds, one file per stream.

    Spark reads files in the order of their times.
    """
    for seed, stream in enumerate("AB"):
        path = folder / stream / f"{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(
            uniform_stream(100, 10, 5, 2 * number + seed, start=number * 10_000_000), path
        )
        os.utime(path, (1000 + number, 1000 + number))


def in_process(folder: Path, files: int) -> tuple[pa.Table, pa.Table]:
    engine = muntin.Engine()
    engine.execute(SCRIPT.format(sink="unused"))
    for stream in "AB":
        engine.push(
            stream,
            pq.read_table([folder / stream / f"{number}.parquet" for number in range(files)]),
        )
    pairs, last = engine.queries()
    return pairs.poll(), last.poll()


def rows_of(table: pa.Table) -> list[tuple[str, ...]]:
    return sorted(tuple(str(value) for value in row.values()) for row in table.to_pylist())


@pytest.mark.usefixtures("spark")
def test_a_script_runs_to_the_end_of_its_input_and_resumes_there_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "app.sql").write_text(SCRIPT.format(sink="out"), encoding="utf-8")
    for number in range(2):
        write(tmp_path, number)
    first = command(
        tmp_path, "run", "app.sql", "--once", "--checkpoint", "state", "--partitions", "2", "--json"
    )
    assert first.returncode == 0, first.stderr
    reported = [json.loads(line) for line in first.stderr.splitlines()]
    assert reported[-1]["muntin"]["streams"] == {
        "A": {"rows": 200, "late": 0, "ahead": 0},
        "B": {"rows": 200, "late": 0, "ahead": 0},
    }

    write(tmp_path, 2)
    monkeypatch.chdir(tmp_path)
    code, printed_then, told_then = muntin_command(
        "muntin run app.sql --once --checkpoint state --partitions 2", monkeypatch, capsys
    )
    assert code == 0, told_then
    assert "A 100 rows" in told_then
    noise = [
        line
        for line in told_then.splitlines()
        if not line.startswith(("Spark is starting", "batch "))
    ]
    assert noise == []

    pairs, last = in_process(tmp_path, 3)
    lines = [json.loads(line) for line in first.stdout.splitlines()]
    assert {line["query"] for line in lines} == {"pairs"}
    printed = [
        (
            line["_op"],
            str(datetime.fromisoformat(line["_ts"])),
            *(str(line[name]) for name in ("k", "a", "b")),
        )
        for line in lines
    ]
    printed += [
        tuple(line.split("  ")) for line in printed_then.splitlines() if line.startswith("+ ")
    ]
    assert sorted(printed) == rows_of(pairs)
    assert rows_of(pq.read_table(sorted((tmp_path / "out").glob("*.parquet")))) == rows_of(last)


def test_a_heartbeat_expires_rows_without_new_input_and_is_logged(tmp_path: Path) -> None:
    (tmp_path / "app.sql").write_text(
        "CREATE STREAM A (k BIGINT, v DOUBLE, ts TIMESTAMP) WITH (format = 'parquet', path = 'A');"
        "CREATE QUERY recent AS SELECT k FROM A [RANGE 1 SECOND] EMIT CHANGES;",
        encoding="utf-8",
    )
    (tmp_path / "A").mkdir()
    pq.write_table(
        uniform_stream(3, 10, 5, 1, start=time.time_ns() // 1000), tmp_path / "A" / "0.parquet"
    )
    code = [sys.executable, "-c", "from muntin.cli import main; main()", "run", "app.sql", "--json"]
    options = ["--partitions", "1", "--heartbeat", "2 seconds", "--log", "run.log"]
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen([*code, *options], cwd=tmp_path, stdout=out, stderr=err)
    try:
        until = time.monotonic() + 300
        while (tmp_path / "out").read_text(encoding="utf-8").count('"-"') < 3:
            assert process.poll() is None, (tmp_path / "err").read_text(encoding="utf-8")
            assert time.monotonic() < until, "rows do not expire"
            time.sleep(0.1)
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    changes = [
        json.loads(line)["_op"]
        for line in (tmp_path / "out").read_text(encoding="utf-8").splitlines()
    ]
    assert sorted(changes) == ["+"] * 3 + ["-"] * 3
    log = (tmp_path / "run.log").read_text(encoding="utf-8").splitlines()
    assert " INFO started: queries recent; 1 partition; checkpoint " in log[0]
    assert sum("A 3 rows; " in line for line in log) == 1
    assert " INFO ended after batch " in log[-1]


@pytest.mark.usefixtures("spark")
def test_a_sink_that_fails_ends_with_1_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "app.sql").write_text(
        SCRIPT.format(sink="out").replace("'parquet', path = 'out'", "'jdbc'"), encoding="utf-8"
    )
    write(tmp_path, 0)
    monkeypatch.chdir(tmp_path)
    code, _, reported = muntin_command("muntin run app.sql --once", monkeypatch, capsys)
    assert code == 1
    assert "the sink of query last failed in batch 0" in reported
    assert "Traceback" not in reported


def test_java_that_is_missing_or_too_old_ends_with_1_and_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "app.sql").write_text(SCRIPT.format(sink="out"), encoding="utf-8")
    write(tmp_path, 0)
    missing = command(tmp_path, "run", "app.sql", "--once", JAVA_HOME=str(tmp_path))
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    old = command(tmp_path, "run", "app.sql", "--once", JAVA_HOME=str(tmp_path))
    for done, fact in (
        (missing, f"JAVA_HOME={tmp_path} has no bin/java"),
        (old, f"Spark needs Java 17 or later, and {java} is version 11"),
    ):
        assert done.returncode == 1
        assert fact in done.stderr
        assert "Run make setup, or install a Java runtime of version 17 or later" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_demo_plays_its_acts_without_a_terminal(tmp_path: Path) -> None:
    done = command(tmp_path, "demo", "--seconds", "2")
    assert done.returncode == 0, done.stderr
    titles = re.findall(r"^Act \d of 3: .*$", done.stdout, re.MULTILINE)
    assert [title.split(":")[0] for title in titles] == [
        "Act 1 of 3",
        "Act 2 of 3",
        "Act 2 of 3",
        "Act 3 of 3",
    ]
    assert re.search(r"muggy_1s [\d,]+ results after \d", done.stdout)
    assert re.search(r"^  16 queries  Muntin \d", done.stdout, re.MULTILINE)
    assert re.search(r"^At 3 times the load about \d+% of the results", done.stdout, re.MULTILINE)
    assert "muntin init hello" in done.stdout.splitlines()[-3]
    assert not done.stderr


KILLED = """
import os, signal
from muntin.cli import main
from muntin.spark.driver.batch_loop import BatchLoop

BatchLoop.begin = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main()
"""
"""Runs a command and is killed after the start has replaced queries, before the first batch."""


@pytest.mark.usefixtures("spark")
def test_a_changed_query_is_replaced_by_the_command_in_the_error_even_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = SCRIPT.format(sink="last").replace(
        "WINDOW 2 SECONDS;", "WINDOW 2 SECONDS WITH (sink = 'parquet', path = 'pairs');"
    )
    changed = script.replace("[ROWS 2]", "[ROWS 3]")
    monkeypatch.chdir(tmp_path)
    app = tmp_path / "my app.sql"
    app.write_text(script, encoding="utf-8")
    write(tmp_path, 0)
    typed = "muntin run 'my app.sql' --once --checkpoint state --partitions 2 --log log"
    code, _, said = muntin_command(typed, monkeypatch, capsys)
    assert code == 0, said

    app.write_text(changed, encoding="utf-8")
    write(tmp_path, 1)
    code, _, said = muntin_command(typed, monkeypatch, capsys)
    assert code == 2
    refusal = re.search(
        r"error: query last has changed \(its windows: A \[ROWS 2\] is now \[ROWS 3\]\).*"
        r"while the other queries continue: (muntin run .*?)\. To keep",
        said,
    )
    assert refusal, said
    remedy = refusal.group(1)
    assert remedy == f"{typed} --replace last"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *shlex.split(remedy)[1:]],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=400,
    )
    assert killed.returncode == -signal.SIGKILL
    assert not list((tmp_path / "last").glob("batch-*"))
    app.write_text(script, encoding="utf-8")
    code, _, said = muntin_command(typed, monkeypatch, capsys)
    assert (code, "query last has changed" in said) == (2, True), "its output is gone"
    app.write_text(changed, encoding="utf-8")
    code, _, said = muntin_command(remedy, monkeypatch, capsys)
    assert code == 0, said
    assert "query last is replaced (it has not changed, but was named)" in (
        tmp_path / "log"
    ).read_text(encoding="utf-8")

    engine = muntin.Engine()
    engine.execute(script)
    pairs, last = engine.queries()
    for number in range(2):
        if number:
            engine.drop("last")
            sql = "SELECT A.k, A.v FROM A [ROWS 3] EMIT CHANGES"
            last = engine.query(sql, name="last")
        for stream in "AB":
            engine.push(stream, pq.read_table(tmp_path / stream / f"{number}.parquet"))
    for name, expected in (("pairs", pairs.poll()), ("last", last.poll())):
        assert len(expected)
        problem = difference(expected, read_batches(tmp_path / name, expected.schema))
        assert not problem, f"{name}: {problem}"
