"""Control files do not depend on the clock.

A heartbeat survives failed writes and is sent only when it matters.
"""

from __future__ import annotations

import logging
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from muntin.errors import MuntinError
from muntin.spark.exchange import controls as module
from muntin.spark.exchange.controls import ControlLog, ControlRow, Heartbeat


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))


def wait_until(happens: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not happens():
        assert time.monotonic() < until, "it does not happen"
        time.sleep(0.01)


@contextmanager
def full_disk() -> Iterator[None]:
    """Make every write to a file fail, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_control_files_are_ordered_by_number_even_if_the_clock_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "muntin" / "controls"
    times: list[float] = []
    for restart in range(3):
        # An hour earlier each time, and no file is left to go by: Spark removes those that it has
        # read.
        monkeypatch.setattr(
            time, "time_ns", lambda hours=restart: (1_800_000_000 - 3600 * hours) * 10**9
        )
        controls = ControlLog(folder)
        for number in range(3):
            controls.send_moment(number)
            controls.send(ControlRow(f"c{number}"))
        written = files(folder)
        times += [path.stat().st_mtime for path in written]
        for path in written:
            path.unlink()
    assert len(times) == 18
    assert all(before < after for before, after in pairwise(times)), times
    assert max(times) < 10_000, "modification times are sequence numbers, not the clock's"


def test_numbers_continue_after_a_block_of_them_is_used_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", 2)
    controls = ControlLog(tmp_path / "muntin" / "controls")
    for number in range(5):
        controls.send_moment(number)
    assert [path.stat().st_mtime for path in files(tmp_path / "muntin" / "controls")] == [
        1,
        2,
        3,
        4,
        5,
    ]


def test_a_full_disk_is_a_clear_error_and_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    controls = ControlLog(tmp_path / "muntin" / "controls")
    controls.send_moment(1)
    with full_disk(), pytest.raises(MuntinError, match="cannot be written to: File too large"):
        controls.send_moment(2)
    controls.send_moment(3)
    assert [
        path.read_text(encoding="utf-8") for path in files(tmp_path / "muntin" / "controls")
    ] == [
        '{"moment": 1}\n',
        '{"moment": 3}\n',
    ]
    assert not list((tmp_path / "muntin" / "controls").glob(".*.part"))


def test_a_heartbeat_that_cannot_be_written_is_logged_once_counted_and_retried(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "muntin" / "controls"
    (tmp_path / "muntin").touch()  # so that there can be no folder
    caplog.set_level(logging.INFO, "muntin.spark")
    heartbeat = Heartbeat(ControlLog(folder), 0, lambda: 0, beat=0.01)
    try:
        wait_until(lambda: heartbeat.failures >= 3)
        (tmp_path / "muntin").unlink()
        wait_until(lambda: folder.is_dir() and bool(files(folder)))
    finally:
        heartbeat.stop()
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "the heartbeat cannot be written and is retried" in warnings[0].message
    shutil.rmtree(folder)


def test_a_heartbeat_is_sent_only_when_time_alone_can_change_a_result(tmp_path: Path) -> None:
    folder = tmp_path / "muntin" / "controls"
    due: list[int | None] = [None]
    asked: list[int | None] = []

    def when() -> int | None:
        asked.append(due[0])
        return due[0]

    heartbeat = Heartbeat(ControlLog(folder), 0, when, beat=0.01)
    try:
        wait_until(lambda: len(asked) > 3)
        due[0] = time.time_ns() // 1000 + 3_600_000_000
        wait_until(lambda: asked.count(due[0]) > 3)
        assert not folder.exists(), "nothing is due yet"
        due[0] = time.time_ns() // 1000
        wait_until(lambda: folder.is_dir() and bool(files(folder)))
    finally:
        heartbeat.stop()
