"""``muntin run`` without Spark: refusals before the start, exit codes, monitoring of an engine."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from muntin import spark
from muntin.cli import main
from muntin.cli.progress_view import ProgressView, Screen
from muntin.cli.run import stopping, watch
from muntin.errors import InputError, RunError
from muntin.spark.driver.checkpoint import Checkpoint
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.replacement import Replacement

SOURCE = "WITH (format = 'json', path = '.')"
SCRIPT = (
    f"CREATE STREAM A (k INT, ts TIMESTAMP) {SOURCE}; CREATE QUERY q AS SELECT k FROM A "
    "WINDOW 1 SECOND;"
)


class Engine:
    """A stand-in for SparkEngine whose waiting methods run given functions."""

    def __init__(self, wait: Callable[[], object]) -> None:
        self.sinks = SimpleNamespace(default=None, as_json=False, most=20)
        self.progress = None
        self.last_batch = 7
        self._wait = wait
        self.await_termination = wait
        self.ran: list[str] = []

    def execute(self, script: str) -> None:
        self.ran.append(script)

    def process_available(self, until: str | None = None) -> None:
        if until is not None:
            self.ran.append(f"until {until}")
        self._wait()

    def start(self) -> None:
        self.ran.append("start")

    def stop(self) -> None:
        self.ran.append("stop")


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["muntin", "run", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return cast("int", ended.value.code or 0)


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "local_session", lambda *_, **__: None, raising=False)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.sql").write_text(SCRIPT, encoding="utf-8")
    return tmp_path / "app.sql"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.sql"], "there is no file 'none.sql'"),
        (["bad.sql"], "line 1, column 33"),
        (["empty.sql"], "leaves no query to run"),
        (["app.sql", "--partitions", "0"], "greater than or equal to 1"),
        (["app.sql", "--trigger", "soon"], "--trigger cannot be 'soon'"),
        (["app.sql", "--heartbeat", "often"], "--heartbeat cannot be 'often'"),
        (["app.sql", "--heartbeat", "1 second", "--once"], "--heartbeat cannot go with --once"),
        (
            ["app.sql", "--heartbeat", "1 second", "--until", "2026-01-01"],
            "--heartbeat cannot go with --until",
        ),
        (["app.sql", "--until", "tomorrow"], "--until cannot be 'tomorrow'"),
        (["app.sql", "--log", "none/run.log"], "cannot write the log 'none/run.log'"),
        (["app.sql", "--checkpoint", "app.sql"], "is a file"),
        (["app.sql", "--frobnicate"], "frobnicate"),
        (["app.sql", "--console", "here:there"], "the console cannot listen at 'here:there'"),
        (["app.sql", "--console-read-only"], "Add --console"),
    ],
)
def test_mistakes_end_with_2_before_spark_is_started(
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    def started(*_: object, **__: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr(spark, "SparkEngine", started, raising=False)
    script.with_name("bad.sql").write_text(
        "CREATE QUERY q AS SELECT k FROM Nosuch WINDOW 1 SECOND;", encoding="utf-8"
    )
    script.with_name("empty.sql").write_text("-- nothing\n", encoding="utf-8")
    assert run(arguments, monkeypatch) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err


def fail(error: Exception) -> Callable[[], object]:
    def wait() -> None:
        raise error

    return wait


@pytest.mark.parametrize(
    ("wait", "code"),
    [
        (lambda: None, 0),
        (fail(RunError("the sink broke")), 1),
        (fail(InputError("the folder is not there")), 2),
    ],
)
def test_how_a_run_ends(
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    wait: Callable[[], object],
    code: int,
) -> None:
    engine = Engine(wait)
    monkeypatch.setattr(spark, "SparkEngine", lambda *_, **__: engine, raising=False)
    assert run([str(script), "--once", "--json"], monkeypatch) == code
    assert engine.ran == [SCRIPT, "stop"]
    assert (engine.sinks.default, engine.sinks.as_json) == ("console", True)
    assert engine.sinks.most > 10**9
    assert ("error: " in capsys.readouterr().err) == (code > 0)


@pytest.mark.parametrize(("arguments", "code", "ran"), [(["--once"], 130, []), ([], 0, ["start"])])
def test_an_interrupt_ends_a_run(
    script: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, ran: list[str]
) -> None:
    ended = threading.Event()

    def wait() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        ended.wait(1)

    engine = Engine(wait)
    monkeypatch.setattr(spark, "SparkEngine", lambda *_, **__: engine, raising=False)
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert run([str(script), *arguments], monkeypatch) == code
    finally:
        ended.set()
    assert engine.ran == [SCRIPT, *ran, "stop"]
    assert signal.getsignal(signal.SIGTERM) is before


SAVED = (
    "Stopped after batch 7. Everything up to it is saved in state: run the same command again "
    "to resume."
)


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["--checkpoint", "state"], 0, SAVED),
        (["--checkpoint", "state", "--once"], 130, SAVED),
        (["--checkpoint", "state", "--replace-all"], 0, SAVED),
        (
            ["--checkpoint", "state", "--replace", "q"],
            0,
            SAVED.replace("command again", "command without --replace"),
        ),
        (
            [],
            0,
            "Stopped after batch 7. Nothing is kept to resume from; --checkpoint DIR keeps it.",
        ),
    ],
)
def test_ctrl_c_prints_one_line_on_what_is_saved_and_how_to_resume(
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    line: str,
) -> None:
    ended = threading.Event()

    def wait() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        ended.wait(1)

    monkeypatch.setattr(spark, "SparkEngine", lambda *_, **__: Engine(wait), raising=False)
    assert run([str(script), *arguments], monkeypatch) == code
    assert capsys.readouterr().err.splitlines() == ["Spark is starting", line]


@pytest.mark.parametrize(("arguments", "code"), [(["--once"], 130), ([], 0)])
def test_ctrl_c_while_java_starts_ends_without_a_traceback(
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
) -> None:
    def interrupted_session(*_: object, interrupted: Callable[[], bool], **__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted(), "the handler was called"
        raise KeyboardInterrupt

    monkeypatch.setattr(spark, "local_session", interrupted_session, raising=False)
    assert run([str(script), *arguments], monkeypatch) == code
    said = capsys.readouterr().err.splitlines()
    assert said[1:] == [
        (
            "Stopped before the first batch was complete. Nothing is kept to resume from; "
            "--checkpoint DIR keeps it."
        )
    ]


def test_until_processes_the_input_and_then_advances_time(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(lambda: None)
    monkeypatch.setattr(spark, "SparkEngine", lambda *_, **__: engine, raising=False)
    assert run([str(script), "--until", "2026-01-31 12:00:00"], monkeypatch) == 0
    assert engine.ran == [SCRIPT, "until 2026-01-31 12:00:00", "stop"]


def test_the_failure_of_an_engine_is_raised_after_it_was_stopped() -> None:
    engine = Engine(fail(RunError("no more disk")))
    with stopping() as stop, pytest.raises(RunError, match="no more disk"):
        watch(cast("Any", engine), Screen(ProgressView()), stop, engine.process_available)
    assert engine.ran == ["stop"]


def test_a_checkpoint_of_another_deployment_is_wrong_input_and_no_failure(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = Checkpoint(script.parent / "state")
    other = Deployment((), {"T": b""})
    checkpoint.write(checkpoint.resume(other).run, other)
    checkpoint.logs.storage.put("offsets/0", b"")  # Spark has begun its first batch
    monkeypatch.setattr(
        spark,
        "SparkEngine",
        lambda *_, **__: Engine(lambda: checkpoint.resume(Deployment(()))),
        raising=False,
    )
    assert run([str(script), "--once", "--checkpoint", "state"], monkeypatch) == 2
    assert "was made with other stored tables" in " ".join(capsys.readouterr().err.split())


def test_the_log_gets_the_messages_of_the_run_and_keeps_earlier_ones(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(lambda: logging.getLogger("muntin.spark").info("batch %d", 7))
    monkeypatch.setattr(spark, "SparkEngine", lambda *_, **__: engine, raising=False)
    log = script.with_name("run.log")
    log.write_text("of yesterday\n", encoding="utf-8")
    assert run([str(script), "--once", "--log", str(log)], monkeypatch) == 0
    logging.getLogger("muntin.spark").warning("after the run")
    before, line = log.read_text(encoding="utf-8").splitlines()
    assert before == "of yesterday"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO batch 7", line)


def test_the_heartbeat_option_is_passed_to_the_engine(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, object] = {}

    def made(*_: object, **options: object) -> Engine:
        given.update(options)
        return Engine(lambda: None)

    monkeypatch.setattr(spark, "SparkEngine", made, raising=False)
    assert run([str(script), "--heartbeat", "10 seconds"], monkeypatch) == 0
    assert given["heartbeat"] == "10 seconds"


def test_without_a_log_failures_are_reported_once(
    script: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def wait() -> None:
        logging.getLogger("muntin.spark").error("failed: no more disk")
        raise RunError("no more disk")

    monkeypatch.setattr(spark, "SparkEngine", lambda *_, **__: Engine(wait), raising=False)
    monkeypatch.setattr(
        logging.getLogger(), "handlers", []
    )  # those of pytest; a separate process has none
    assert run([str(script), "--once"], monkeypatch) == 1
    assert capfd.readouterr().err.count("no more disk") == 1


@pytest.mark.parametrize(
    ("arguments", "everything", "names"),
    [
        ([], False, ()),
        (["--replace", "q"], False, ("q",)),
        (["--replace", "Q", "--replace", "q"], False, ("Q", "q")),
        (["--replace-all"], True, ()),
        (["--replace-all", "--replace", "q"], True, ("q",)),
    ],
)
def test_queries_to_replace_reach_the_engine_with_the_command_that_was_typed(
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    arguments: list[str],
    everything: bool,
    names: tuple[str, ...],
) -> None:
    given: list[Replacement] = []

    def engine(*_: object, replace: Replacement, **__: object) -> Engine:
        given.append(replace)
        return Engine(lambda: None)

    monkeypatch.setattr(spark, "SparkEngine", engine, raising=False)
    assert run([str(script), "--once", *arguments], monkeypatch) == 0
    typed = " ".join(["muntin", "run", str(script), "--once", *arguments])
    assert given == [Replacement(everything, names, typed)]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--replace", "q", "--replace", "nosuch"],
            "error: there is no query 'nosuch' to replace. There are q",
        ),
        (
            ["--replace", "--once"],
            (
                "error: there is no query '--once' to replace. There are q; --replace-all replaces "
                "all that have changed"
            ),
        ),
        (["--once", "--replace"], "Option '--replace' requires an argument."),
    ],
)
def test_a_query_to_replace_that_is_not_declared_is_refused_before_spark_starts(
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    told: str,
) -> None:
    assert run([str(script), *arguments], monkeypatch) == 2
    said = capsys.readouterr().err
    assert told in said
    assert "Spark is starting" not in said


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        (["--console"], None),
        (["--console", "--once"], None),
        (["--console", "127.0.0.1:9"], "127.0.0.1:9"),
        (["--console=:9"], ":9"),
    ],
)
def test_a_console_is_open_while_the_run_lasts_and_its_address_is_printed(
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    address: str | None,
) -> None:
    engine = Engine(lambda: None)
    url = "http://127.0.0.1:1/?token=secret"

    @contextmanager
    def opened() -> Iterator[None]:
        yield
        engine.ran.append("closed")

    def console(where: str | None, *, read_only: bool) -> Any:
        engine.ran.append(f"console {where} {read_only}")
        found = opened()
        found.url = url  # type: ignore[attr-defined]
        return found

    engine.console = console  # type: ignore[attr-defined]
    monkeypatch.setattr(spark, "SparkEngine", lambda *_, **__: engine, raising=False)
    options = ["--console-read-only", *arguments]
    assert (
        run(
            [*options, str(script)] if "--once" in options else [str(script), *options], monkeypatch
        )
        == 0
    )
    assert f"Console: {url}" in capsys.readouterr().err
    assert engine.ran[1] == f"console {address} True"
    assert engine.ran[-1] == "closed"
