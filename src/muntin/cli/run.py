"""``muntin run``: run a script on Spark, until its input is processed or it is stopped."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from muntin import spark
from muntin.cli.progress_view import ProgressView, Screen
from muntin.cli.scripts import read_app, read_text
from muntin.console.address import DEFAULT, read_address
from muntin.engine.script_check import Scope
from muntin.errors import InputError, MuntinError, SettingError
from muntin.model.allowed_paths import AllowedPaths
from muntin.model.clock import parse_instant, parse_interval
from muntin.spark.replacement import NOTHING, Replacement

if TYPE_CHECKING:
    from muntin.spark import SparkEngine

_LOOK = 0.25
_END = 10.0
"""Seconds within which a thread that waits for an engine must notice that it has stopped."""


@dataclass(frozen=True)
class RunOptions:
    """The options of a run; under ``once`` it ends when all available input is processed."""

    once: bool = False
    checkpoint: str | None = None
    master: str | None = None
    partitions: int | None = None
    trigger: str = "0 seconds"
    heartbeat: str | None = None
    log: Path | None = None
    as_json: bool = False
    allowed_paths: list[str] | None = None
    replace: Replacement = NOTHING
    until: str | None = None
    """An instant: the run ends as under ``once``, after time has advanced to it."""
    console: str | None = None
    """The address of the web console, ``HOST:PORT``; None: there is none."""
    console_read_only: bool = False

    @property
    def ends(self) -> bool:
        """Return whether the run ends without a signal."""
        return self.once or self.until is not None


def run_app(path: Path, options: RunOptions) -> None:
    """Run a script; report all mistakes that can be found without Spark before starting it."""
    check_options(path, options)
    with _logging_to(options.log), stopping() as stop:
        _run(path, options, stop)


def check_options(path: Path, options: RunOptions) -> None:
    """Raise all mistakes in a script and in options that can be found without Spark."""
    plans = read_app(path, Scope(AllowedPaths.of(options.allowed_paths), on_spark=True))
    if not plans:
        raise InputError(
            f"{path} leaves no query to run", hint="Add CREATE QUERY name AS SELECT ..."
        )
    options.replace.check(plan.query.name for plan in plans)
    _check_times(options)
    if options.console is not None:
        read_address(options.console)
    elif options.console_read_only:
        raise SettingError("--console-read-only is without a console", hint="Add --console")
    if options.checkpoint is not None and Path(options.checkpoint).is_file():
        raise InputError(f"the checkpoint {options.checkpoint} is a file", hint="Give a folder")


def _check_times(options: RunOptions) -> None:
    for name, text in (("trigger", options.trigger), ("heartbeat", options.heartbeat)):
        try:
            parse_interval(text or "0 seconds")
        except MuntinError as error:
            raise SettingError(
                f"--{name} cannot be {text!r}", hint="Write an interval such as '1 second'"
            ) from error
    if options.until is not None:
        try:
            parse_instant(options.until)
        except MuntinError as error:
            raise SettingError(
                f"--until cannot be {options.until!r}",
                hint="Write an instant such as '2026-01-31 12:00:00'",
            ) from error
    if options.heartbeat and options.ends:
        other = "--once" if options.once else "--until"
        raise SettingError(
            f"--heartbeat cannot go with {other}",
            hint="Available input is read by its own time; leave out one of them",
        )


def _run(path: Path, options: RunOptions, stop: threading.Event) -> None:
    """Run a script until it ends or ``stop`` is set; steps are never interrupted."""
    screen = Screen(ProgressView(None) if options.ends else ProgressView(), as_json=options.as_json)
    if not options.as_json:
        Console(stderr=True, highlight=False).print("[dim]Spark is starting[/dim]")
    engine = None
    try:
        engine = engine_for(options, stop.is_set)
        _run_in(engine, path, options, stop, screen)
    except KeyboardInterrupt:
        if not stop.is_set():
            raise
    if stop.is_set():
        _report_saved(engine, options)
        if options.ends:
            raise KeyboardInterrupt


def _run_in(
    engine: SparkEngine, path: Path, options: RunOptions, stop: threading.Event, screen: Screen
) -> None:
    if not sys.stdout.isatty():
        engine.sinks.most = sys.maxsize  # a file or a pipe gets all rows, a terminal only some
    engine.execute(read_text(path))
    if stop.is_set():
        return
    with _console(engine, options):
        if options.ends:
            watch(engine, screen, stop, lambda: engine.process_available(options.until))
            return
        engine.start()
        watch(engine, screen, stop, engine.await_termination)


def _console(engine: SparkEngine, options: RunOptions) -> AbstractContextManager[object]:
    """Open the web console, if there is one, and print its address."""
    if options.console is None:
        return nullcontext()
    opened = engine.console(
        None if options.console == DEFAULT else options.console,
        read_only=options.console_read_only,
    )
    text = json.dumps({"console": opened.url}) if options.as_json else f"Console: {opened.url}"
    Console(stderr=True, highlight=False).print(text, soft_wrap=True, markup=False)
    return opened


def _report_saved(engine: SparkEngine | None, options: RunOptions) -> None:
    """Print the last saved batch of a stopped run, and how to resume it."""
    if options.as_json:
        return
    batch = -1 if engine is None else engine.last_batch
    done = (
        "Stopped before the first batch was complete"
        if batch < 0
        else f"Stopped after batch {batch}"
    )
    if options.checkpoint is None:
        saved = "Nothing is kept to resume from; --checkpoint DIR keeps it"
    elif batch < 0:
        saved = "Nothing was lost: run the same command again"
    elif options.replace.names:
        # The same command would start the named queries again.
        saved = (
            f"Everything up to it is saved in {options.checkpoint}: "
            "run the same command without --replace to resume"
        )
    else:
        saved = (
            f"Everything up to it is saved in {options.checkpoint}: "
            "run the same command again to resume"
        )
    console = Console(stderr=True, highlight=False)
    console.print(f"{done}. {saved}.", soft_wrap=True, markup=False)


def engine_for(options: RunOptions, interrupted: Callable[[], bool] = lambda: False) -> SparkEngine:
    """Start Spark and return an engine whose queries write to the console by default."""
    session = spark.local_session(
        options.partitions or 2, master=options.master, interrupted=interrupted
    )
    engine = spark.SparkEngine(
        session,
        checkpoint=options.checkpoint,
        trigger=options.trigger,
        partitions=options.partitions,
        heartbeat=options.heartbeat,
        allowed_paths=options.allowed_paths,
        replace=options.replace,
    )
    engine.sinks.default = "console"
    engine.sinks.as_json = options.as_json
    return engine


@contextmanager
def _logging_to(path: Path | None) -> Iterator[None]:
    """Append log records to a file; without one, discard them to keep them off stderr."""
    handler = logging.NullHandler() if path is None else _log_file(path)
    log = logging.getLogger("muntin")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)
        handler.close()


def _log_file(path: Path) -> logging.Handler:
    """Return a handler that writes each record with its time in UTC."""
    try:
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write the log {str(path)!r}: {error.strerror}",
            hint="Give a file in an existing folder",
        ) from error
    formatter = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    return handler


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and SIGTERM set; a second Ctrl-C ends at once.

    Spark's handler would cancel its jobs in the middle of a batch. Only the main thread can have
    handlers.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handle(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def watch(
    engine: SparkEngine, screen: Screen, stop: threading.Event, wait: Callable[[], object]
) -> None:
    """Show an engine until ``wait`` returns or ``stop`` is set; raise its error if it fails."""
    failures: list[BaseException] = []
    done = threading.Event()

    def waiting() -> None:
        try:
            wait()
        except BaseException as error:  # noqa: BLE001 (raised below, in the calling thread)
            failures.append(error)
        finally:
            done.set()

    threading.Thread(target=waiting, daemon=True).start()
    with screen.shown():
        while not done.wait(_LOOK) and not stop.is_set():
            screen.update(engine.progress)
        screen.update(engine.progress, last=True)
    stopped = stop.is_set() and not done.is_set()
    engine.stop()
    if stopped and not done.wait(_END):  # it had started after the stop
        engine.stop()
        done.wait(_END)
    if failures and not stopped:
        raise failures[0]
