"""A heartbeat is sent only when it matters; controls get a batch without waiting for rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import pytest

from muntin.spark.driver import control_batches
from muntin.spark.driver.control_queue import ControlQueue
from muntin.spark.driver.engine_parts import EngineParts
from muntin.spark.driver.heartbeat import ControlRunner, Heartbeat
from muntin.spark.storage import LocalStorage


def wait_until(happens: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not happens():
        assert time.monotonic() < until, "it does not happen"
        time.sleep(0.01)


def test_a_heartbeat_is_sent_only_when_time_alone_can_change_a_result() -> None:
    due: list[int | None] = [None]
    asked: list[int | None] = []
    sent: list[int] = []

    def when() -> int | None:
        asked.append(due[0])
        return due[0]

    heartbeat = Heartbeat(sent.append, 0, when, beat=0.01)
    try:
        wait_until(lambda: len(asked) > 3)
        due[0] = time.time_ns() // 1000 + 3_600_000_000
        wait_until(lambda: asked.count(due[0]) > 3)
        assert not sent, "nothing is due yet"
        due[0] = time.time_ns() // 1000
        wait_until(lambda: bool(sent))
    finally:
        heartbeat.stop()
    count = len(sent)
    time.sleep(0.05)
    assert len(sent) == count, "it has stopped"


def test_an_urgent_control_is_run_again_until_it_is_taken(tmp_path: Path) -> None:
    controls = ControlQueue(LocalStorage(tmp_path))
    ran: list[bool] = []

    def run() -> bool:
        ran.append(len(ran) >= 2)
        if ran[-1]:
            controls.urgent.clear()
        return ran[-1]

    runner = ControlRunner(controls, run, lambda _: None)
    time.sleep(0.05)
    assert not ran, "nothing waits"
    controls.send_moment(1)
    wait_until(lambda: len(ran) == 3)
    assert ran == [False, False, True]
    runner.end()
    assert runner.join(10)


def test_a_batch_that_fails_is_reported_once_and_ends_the_runner(tmp_path: Path) -> None:
    controls = ControlQueue(LocalStorage(tmp_path))
    failed: list[Exception] = []
    controls.send_moment(1)

    def run() -> bool:
        raise ValueError("it fails")

    runner = ControlRunner(controls, run, failed.append)
    wait_until(lambda: bool(failed))
    runner.end()
    assert runner.join(10)
    assert [str(error) for error in failed] == ["it fails"]


def test_a_runner_that_is_busy_is_not_waited_for_without_end(tmp_path: Path) -> None:
    controls = ControlQueue(LocalStorage(tmp_path))
    busy, done = threading.Event(), threading.Event()

    def run() -> bool:
        busy.set()
        return done.wait(30)

    controls.send_moment(1)
    runner = ControlRunner(controls, run, lambda _: None)
    assert busy.wait(10)
    runner.end()
    assert not runner.join(0.05)
    done.set()
    assert runner.join(10)


def test_heartbeats_are_held_back_by_the_largest_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    delays = []

    def heartbeat(_: object, delay: int, __: object) -> None:
        delays.append(delay)

    monkeypatch.setattr(control_batches, "Heartbeat", heartbeat)
    monkeypatch.setattr(control_batches, "ControlRunner", lambda *_: None)
    streams = [SimpleNamespace(slack=slack, name=f"S{slack}", options={}) for slack in (0, 7, 3)]
    parts = SimpleNamespace(controls=SimpleNamespace(send_moment=None), idle=Mock())
    parts.registry = SimpleNamespace(streams=lambda: streams)
    batches = control_batches.ControlBatches(Mock(), cast("EngineParts", parts), Mock())
    batches.start(10)
    assert delays == [17]
