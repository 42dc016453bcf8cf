"""Every batch brings the controls that were planned for it, whatever is interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

from muntin.runtime.frames import CheckpointError
from muntin.spark.driver.control_queue import ControlQueue
from muntin.spark.exchange.controls import ControlRow, Controls
from muntin.spark.storage import LocalStorage
from tests.unit.spark.faulty_storage import Faults, FaultyStorage


def queue(folder: Path) -> ControlQueue:
    """Return the queue of a process that starts over a checkpoint."""
    found = ControlQueue(LocalStorage(folder))
    found.load()
    return found


def test_the_next_batch_takes_everything_that_waits_once(tmp_path: Path) -> None:
    controls = queue(tmp_path)
    assert not controls.plan(0, has_rows=True)
    assert not LocalStorage(tmp_path).names(""), "a batch without controls writes nothing"
    controls.send_moment(5)
    controls.send_moment(3)
    controls.send(ControlRow("b"))
    controls.send(ControlRow("a"))
    assert controls.urgent.is_set()
    taken = controls.plan(1, has_rows=True)
    assert (taken.moment, taken.names()) == (5, {"a", "b"})
    assert [ControlRow.from_text(text).name for text in taken.rows] == ["b", "a"], (
        "in the order in which they were sent: of two limits the later one holds"
    )
    assert not controls.urgent.is_set()
    controls.complete(taken)
    assert controls.plan(2, has_rows=True) == Controls()


def test_a_batch_that_was_interrupted_brings_the_same_controls_again(tmp_path: Path) -> None:
    controls = queue(tmp_path)
    controls.send(ControlRow("a"))
    controls.send_moment(7)
    planned = controls.plan(3, has_rows=False)
    again = queue(tmp_path)
    assert again.urgent.is_set(), "it is to be run again"
    found = again.interrupted(3)
    assert found is not None
    assert (found.has_rows, again.interrupted(4)) == (False, None)
    again.send_moment(9)
    assert again.plan(3, has_rows=False) == planned
    again.complete(planned)
    assert again.urgent.is_set(), "the other moment still waits"
    assert queue(tmp_path).interrupted(3) is None
    assert again.plan(4, has_rows=True) == Controls(9)


def test_a_repeated_batch_that_had_no_controls_gets_none(tmp_path: Path) -> None:
    controls = queue(tmp_path)
    controls.send_moment(7)
    assert controls.plan(3, has_rows=True, repeated=True) == Controls()
    assert controls.plan(4, has_rows=True) == Controls(7)


def test_an_advance_is_durable_until_its_batch_is_complete(tmp_path: Path) -> None:
    queue(tmp_path).advance(5)
    controls = queue(tmp_path)
    assert controls.urgent.is_set()
    taken = controls.plan(0, has_rows=False)
    assert taken == Controls(5)
    controls.advance(8)
    controls.complete(taken)
    assert queue(tmp_path).plan(1, has_rows=True) == Controls(8)
    taken = controls.plan(1, has_rows=True)
    controls.complete(taken)
    assert taken == Controls(8)
    storage = LocalStorage(tmp_path)
    assert {name: storage.get(name) for name in storage.names("")} == {
        "advance": b"",
        "planned": b"",
    }
    assert not queue(tmp_path).urgent.is_set()


def test_limits_wait_for_the_next_batch_with_rows(tmp_path: Path) -> None:
    controls = queue(tmp_path)
    controls.send(ControlRow("limits"), urgent=False)
    assert not controls.urgent.is_set()
    assert controls.plan(0, has_rows=True).names() == {"limits"}


def test_damaged_records_are_refused(tmp_path: Path) -> None:
    controls = queue(tmp_path)
    controls.advance(5)
    controls.plan(0, has_rows=True)
    for name in ("planned", "advance"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[:-1])
        with pytest.raises(CheckpointError, match=f"{name} of the run is damaged"):
            queue(tmp_path)
        (tmp_path / name).write_bytes(whole)
    queue(tmp_path)


def test_an_advance_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    storage = FaultyStorage(LocalStorage(tmp_path), Faults(full=["advance"]))
    with pytest.raises(CheckpointError, match="cannot be written to: No space left on device"):
        ControlQueue(storage).advance(5)


def test_controls_that_cannot_be_planned_still_wait(tmp_path: Path) -> None:
    faults = Faults(full=["planned"])
    controls = ControlQueue(FaultyStorage(LocalStorage(tmp_path), faults))
    controls.send_moment(5)
    with pytest.raises(CheckpointError, match="No space left on device"):
        controls.plan(0, has_rows=False)
    assert controls.interrupted(0) is None
    faults.full.clear()
    controls.send_moment(6)
    assert controls.plan(0, has_rows=False) == Controls(6)
    assert controls.interrupted(0) is not None


def test_an_advance_never_goes_back(tmp_path: Path) -> None:
    controls = queue(tmp_path)
    controls.advance(100)
    controls.advance(50)
    assert queue(tmp_path).plan(0, has_rows=False) == Controls(100)
    LocalStorage(tmp_path).delete(["planned"])
    ControlQueue(LocalStorage(tmp_path)).advance(70)  # before its engine has started
    assert queue(tmp_path).plan(0, has_rows=False) == Controls(100)
    controls.complete(controls.plan(0, has_rows=False))
    controls.advance(120)
    assert queue(tmp_path).plan(1, has_rows=False) == Controls(120)


def stamping(folder: Path, now: int) -> ControlQueue:
    """Return the queue of a process that starts over a checkpoint with streams to stamp."""
    found = queue(folder)
    found.stamping = True
    found.clock = lambda: now
    return found


def test_a_repeated_batch_has_the_same_time_of_arrival(tmp_path: Path) -> None:
    first = stamping(tmp_path, 100).plan(0, has_rows=True)
    assert first.arrival == 100
    assert not first, "the time alone is no work for a batch without rows"
    for repeated in (True, False):
        assert stamping(tmp_path, 200).plan(0, has_rows=True, repeated=repeated) == first
    controls = stamping(tmp_path, 200)
    controls.send_moment(7)
    planned = controls.plan(1, has_rows=True)
    assert (planned.arrival, planned.moment) == (200, 7)
    assert stamping(tmp_path, 300).plan(1, has_rows=True, repeated=True) == planned


def test_times_of_arrival_increase_over_restarts_clocks_and_moments(tmp_path: Path) -> None:
    assert stamping(tmp_path, 100).plan(0, has_rows=True).arrival == 100
    assert stamping(tmp_path, 50).plan(1, has_rows=True).arrival == 101
    controls = stamping(tmp_path, 60)
    controls.advance(500)
    moment = controls.plan(2, has_rows=False)
    assert (moment.arrival, moment.moment) == (None, 500)
    controls.complete(moment)
    assert stamping(tmp_path, 70).plan(3, has_rows=True).arrival == 501
    assert stamping(tmp_path, 900).plan(4, has_rows=True, repeated=True).arrival == 900


def test_without_streams_to_stamp_nothing_is_written(tmp_path: Path) -> None:
    assert queue(tmp_path).plan(0, has_rows=True).arrival is None
    assert not LocalStorage(tmp_path).names("")
