"""Work that cannot be interrupted has a deadline, and an interrupt does not cut it short."""

from __future__ import annotations

import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from muntin.runtime.frames import CheckpointError
from muntin.spark.storage import object_store
from muntin.spark.storage.deadline import within_deadline
from muntin.spark.storage.interface import Location
from muntin.spark.storage.object_store import ObjectStorage


def test_the_caller_gets_the_result_or_the_error() -> None:
    assert within_deadline(20, lambda: 7) == 7

    def slow_server() -> None:
        raise TimeoutError("the server was slow")

    with pytest.raises(TimeoutError, match="server was slow"):
        within_deadline(20, slow_server)


def test_a_store_that_does_not_answer_is_an_error_that_names_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = threading.Event()

    def hang(_: object) -> None:
        answered.wait(60)

    system: Any = SimpleNamespace(open_input_file=hang)
    monkeypatch.setattr(object_store, "file_system", lambda _: (system, "root"))
    monkeypatch.setattr(object_store, "_SECONDS", 0.05)
    with pytest.raises(CheckpointError, match=r"abfss://c@a/x/f cannot be read: no answer for 0"):
        ObjectStorage(Location("abfss://c@a/x")).find("f")
    answered.set()


def test_an_interrupt_does_not_cut_the_work_short() -> None:
    interrupted, ended = threading.Event(), threading.Event()

    def work() -> None:
        # To the main thread, as from a terminal: one to this thread would not end its wait.
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        assert interrupted.wait(20)
        ended.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            within_deadline(20, work)
    finally:
        signal.signal(signal.SIGINT, before)
    interrupted.set()
    assert ended.wait(20)
