"""Ctrl-C at any moment leaves no lock held, no push half done and no result lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import muntin
from muntin.engine import interrupts
from muntin.engine.fair_lock import FairLock

SECOND = 1_000_000
MOMENTS = int(os.environ.get("MUNTIN_INTERRUPTS", "60"))
CHILD = Path(__file__).with_name("interrupted_child.py")


@pytest.fixture(autouse=True)
def _handler_is_restored() -> Iterator[None]:
    """Restore the SIGINT handler: background jobs of a shell and their children ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not interrupts._state.depth
    assert not interrupts._state.held


def one_stream() -> tuple[muntin.Engine, muntin.StandingQuery]:
    engine = muntin.Engine()
    engine.stream("A", {"k": "bigint", "ts": "timestamp"}, time="ts")
    return engine, engine.query("SELECT k FROM A WINDOW 10 SECONDS", name="q")


def is_free(turns: FairLock) -> bool:
    return not (turns._lock.locked() or turns._gate.locked() or turns._owner or turns._depth)


@pytest.mark.parametrize("mode", ["calls", "live"])
def test_interrupts_at_random_moments_lose_nothing(mode: str) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    command = [sys.executable, str(CHILD), mode, str(MOMENTS), str(seed)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60 + MOMENTS, check=False
    )
    assert done.returncode == 0, f"seed {seed}\n{done.stderr}"
    assert json.loads(done.stdout) == {"interrupted": MOMENTS, "problems": [], "threads": []}, (
        f"seed {seed}"
    )


class Injector:
    """Raises SIGINT before the n-th line that Muntin's engine runs."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame: FrameType, event: str, _: Any) -> Injector | None:
        if "muntin/engine" not in frame.f_code.co_filename or frame.f_code in interrupts._PROTECTED:
            return None
        if event == "line":
            self.left -= 1
            if not self.left:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return self


def interrupt(line: int, call: Callable[[], object]) -> int:
    """Interrupt a call before one of its lines; return how many lines it is short of that."""
    injector = Injector(line)
    before = sys.gettrace()
    try:
        sys.settrace(injector)
        call()
    except KeyboardInterrupt:
        assert injector.left == 0
    finally:
        sys.settrace(before)
    return injector.left


def chosen_lines(call: Callable[[], object]) -> list[int]:
    """Return lines of a call, evenly spread, at which to interrupt it."""
    count = (1 << 60) - interrupt(1 << 60, call)
    assert count > 5
    return list(range(1, count + 1, count // 50 + 1))


def rows_in(engine: muntin.Engine) -> int:
    return int(engine.stats()["streams"]["A"]["rows_in"])  # type: ignore[index]


def test_an_interrupt_before_any_line_of_push_leaves_a_complete_push_or_none() -> None:
    engine, q = one_stream()
    seen: list[pa.RecordBatch] = []
    q.subscribe(seen.append)

    def push() -> None:
        number = rows_in(engine)
        engine.push("A", [(number, number * SECOND), (number + 1, number * SECOND)])

    whole = 0
    for line in chosen_lines(push):
        before = rows_in(engine)
        interrupt(line, push)
        assert is_free(engine._lock)
        assert rows_in(engine) - before in {0, 2}
        whole += rows_in(engine) - before == 2
    assert whole > 10
    engine.advance(rows_in(engine) * SECOND)
    added = [row["k"] for row in q.poll().to_pylist() if row["_op"] == "+"]
    assert added == list(range(rows_in(engine)))
    assert sum(batch.column("_op").to_pylist().count("+") for batch in seen) == rows_in(engine)


CALLS: dict[str, Callable[[muntin.Engine, list[pa.Table]], object]] = {
    "poll": lambda engine, got: got.append(engine.handle("q").poll()),
    "answer": lambda engine, _: engine.handle("q").answer(),
    "advance": lambda engine, _: engine.advance(rows_in(engine) * SECOND),
    "drop": lambda engine, _: engine.drop("other"),
    "query": lambda engine, _: engine.query("SELECT k FROM A WINDOW 1 SECOND", name="new"),
    "execute": lambda engine, _: engine.execute(
        "CREATE QUERY new AS SELECT k FROM A WINDOW 1 SECOND"
    ),
    "subscribe": lambda engine, _: engine.handle("q").subscribe([].append).cancel(),
    "start": lambda engine, _: engine.start(),
    "stop": lambda engine, _: engine.stop(10),
    "settle": lambda engine, _: engine.settle(10),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_an_interrupt_before_any_line_of_a_call_leaves_a_working_engine(name: str) -> None:
    engine, q = one_stream()
    got: list[pa.Table] = []

    def make_ready() -> None:
        known = [query.name for query in engine.queries()]
        if "new" in known:
            engine.drop("new")
        if "other" not in known:
            engine.query("SELECT k FROM A WINDOW 1 SECOND", name="other")
        if name in {"stop", "settle"}:
            engine.start()
        engine.push("A", [(rows_in(engine), rows_in(engine) * SECOND)])

    make_ready()
    lines = chosen_lines(lambda: CALLS[name](engine, got))
    engine.stop(10)
    for line in lines:
        make_ready()
        interrupt(line, lambda: CALLS[name](engine, got))
        engine.stop(10)
        assert is_free(engine._lock)
    engine.advance(rows_in(engine) * SECOND)
    got.append(q.poll())
    added = [row["k"] for table in got for row in table.to_pylist() if row["_op"] == "+"]
    assert added == list(range(rows_in(engine)))
    assert "muntin-executor" not in [thread.name for thread in threading.enumerate()]


def test_a_second_interrupt_is_raised_at_once_and_marks_the_engine() -> None:
    engine, _ = one_stream()
    frames = iter(range(2))

    def press_twice(*_: object) -> None:
        for _press in frames:
            signal.raise_signal(signal.SIGINT)
        pytest.fail("the second interrupt must not be held back")

    with pytest.raises(KeyboardInterrupt), engine._lock:
        press_twice()
    assert is_free(engine._lock)
    with pytest.raises(muntin.MuntinError, match="interrupted in the middle"):
        engine.push("A", [(1, SECOND)])
    assert is_free(engine._lock)


def test_a_handler_that_does_not_raise_is_called_once_the_work_is_done() -> None:
    engine, q = one_stream()
    called: list[int] = []
    before = signal.signal(signal.SIGINT, lambda *_: called.append(len(q.poll())))
    try:
        assert interrupt(40, lambda: engine.push("A", [(1, SECOND)])) == 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert called == [1]


def test_waiting_for_the_lock_can_be_interrupted() -> None:
    engine, _ = one_stream()
    taken, enough = threading.Event(), threading.Event()

    def occupy() -> None:
        with engine._lock:
            taken.set()
            enough.wait(10)

    thread = threading.Thread(target=occupy)
    thread.start()
    assert taken.wait(10)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        engine.push("A", [(1, SECOND)])
    assert time.monotonic() - begin < 5
    enough.set()
    thread.join(10)
    assert engine.stats()["streams"]["A"]["rows_in"] == 0  # type: ignore[index]
    assert is_free(engine._lock)


def test_an_interrupt_inside_a_callback_is_raised_there_and_the_next_push_works() -> None:
    engine, q = one_stream()
    seen: list[list[int]] = []

    def callback(batch: pa.RecordBatch) -> None:
        seen.append(batch.column("k").to_pylist())
        if len(seen) == 1:
            signal.raise_signal(signal.SIGINT)
            pytest.fail("user code is interrupted at once")

    q.subscribe(callback)
    with pytest.raises(KeyboardInterrupt):
        engine.push("A", [(1, SECOND)])
    engine.push("A", [(2, 2 * SECOND)])
    assert seen == [[1], [2]]


@pytest.mark.parametrize("failure", [SystemExit, KeyboardInterrupt, GeneratorExit, ValueError])
def test_a_live_subscriber_that_raises_anything_is_called_again(
    failure: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    engine, q = one_stream()
    seen: list[int] = []

    def callback(batch: pa.RecordBatch) -> None:
        seen.extend(batch.column("k").to_pylist())
        if len(seen) == 1:
            raise failure("enough")

    q.subscribe(callback)
    engine.start()
    for number in (1, 2):
        engine.push("A", [(number, number * SECOND)])
        assert engine.settle(10)
    engine.stop(10)
    assert seen == [1, 2]
    counted: dict[str, object] = q.stats()["subscribers"][0]  # type: ignore[index]
    assert counted["failures"] == 1
    assert counted["last_failure"] == f"{failure.__name__}: enough"
    assert "a subscriber of query q failed" in caplog.text


def test_sys_exit_in_a_callback_of_a_push_reaches_the_caller_and_the_next_push_works() -> None:
    engine, q = one_stream()
    seen: list[list[int]] = []

    def callback(batch: pa.RecordBatch) -> None:
        seen.append(batch.column("k").to_pylist())
        if len(seen) == 1:
            sys.exit(3)

    q.subscribe(callback)
    with pytest.raises(SystemExit):
        engine.push("A", [(1, SECOND)])
    engine.push("A", [(2, 2 * SECOND)])
    assert seen == [[1], [2]]
