"""Whatever order two drivers take their steps in, complete batches form one chain."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.runtime.frames import Buffer, CheckpointError
from muntin.spark.driver import lease as module
from muntin.spark.driver.lease import Lease, LeaseTiming
from muntin.spark.partition import manifests
from muntin.spark.partition.manifests import ManifestLog, PartitionChange
from muntin.spark.partition.partition_clock import PartitionClock
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.spark.partition.stored_batches import StoredBatch
from muntin.spark.storage import LocalStorage
from muntin.spark.storage.fence import Fence, FencedStorage

NEVER = LeaseTiming(renewal=3600.0, patience=0.0, poll=0.0)
"""Every holder counts as dead after one look: takeovers happen at the worst moments."""

PATIENCE = 60.0


class Killed(BaseException):
    """Ends a driver at the access to storage at which it is paused."""


class Steps:
    """Lets a thread run from one access to storage to the next."""

    def __init__(self) -> None:
        self._go, self._paused = threading.Semaphore(0), threading.Semaphore(0)
        self.killed = False

    def pause(self) -> None:
        """Wait, in the thread, for the next step."""
        self._paused.release()
        self.begin()

    def begin(self) -> None:
        assert self._go.acquire(timeout=PATIENCE)
        if self.killed:
            raise Killed

    def end(self) -> None:
        self._paused.release()

    def step(self) -> None:
        """Let the thread go on until it pauses again or ends."""
        self._go.release()
        assert self._paused.acquire(timeout=PATIENCE)


@dataclass(frozen=True)
class PausingStorage(FencedStorage):
    """A storage at which a driver pauses before every access."""

    steps: Steps | None = None

    def put(self, name: str, content: Buffer, *, durable: bool = True) -> None:
        self._pause()
        super().put(name, content, durable=durable)

    def find(self, name: str) -> Buffer | None:
        self._pause()
        return super().find(name)

    def names(self, folder: str = "") -> list[str]:
        self._pause()
        return super().names(folder)

    def delete(self, names: Iterable[str]) -> None:
        self._pause()
        super().delete(names)

    def _pause(self) -> None:
        if self.steps is not None:
            self.steps.pause()


class Driver:
    """A driver in its own thread that takes one step at a time.

    ``complete`` are the batches that it treated as complete, with the file that each one added.
    """

    def __init__(self, storage: LocalStorage, name: str) -> None:
        self.name = name
        self.complete: list[tuple[int, str]] = []
        self._steps = Steps()
        self._storage = PausingStorage(storage, Fence(), self._steps)
        self._lease = Lease(self._storage, "checkpoint", NEVER)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.ended = False

    def step(self) -> None:
        """Take the next step, unless it has ended."""
        if not self.ended:
            self._steps.step()

    def kill(self) -> None:
        """End the driver where it is."""
        self._steps.killed = True
        self.step()
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        try:
            self._steps.begin()
            self._work()
        except (Killed, CheckpointError):
            pass
        finally:
            self.ended = True
            self._steps.end()

    def _work(self) -> None:
        log = ManifestLog(self._storage, self._lease)
        self._lease.acquire()
        self._lease.begin(log.load().batch)
        for _ in range(5):
            batch = log.state.batch + 1
            file = f"state/{batch:03d}-{self.name}"
            self._storage.put(file, b"rows")
            note = RetainedBatch(batch, PartitionClock({}, 0), {})
            log.commit([PartitionChange(0, StoredBatch(file, note))])
            self.complete.append((batch, file))


Turn = tuple[int, int, bool]
"""A driver, how many steps it takes until it is paused, and whether it was killed before them."""

TURNS = st.tuples(st.integers(0, 1), st.integers(1, 24), st.integers(0, 5).map(lambda n: n == 5))


@given(st.lists(TURNS, min_size=2, max_size=16), st.sampled_from([1, 32]))
def test_complete_batches_form_one_chain(schedule: list[Turn], between: int) -> None:
    check_schedule(schedule, between)


@pytest.mark.parametrize("between", [1, 32])
def test_a_pause_before_any_single_access_breaks_no_chain(between: int) -> None:
    for steps in range(1, 45):
        for meanwhile in (9, 20):
            check_schedule([(0, steps, False), (1, meanwhile, False), (0, 99, False)], between)


def check_schedule(schedule: list[Turn], between: int) -> None:
    """Run drivers on machines that do not know each other; sweep every ``between`` batches."""
    numbers = iter(range(1_000_000))
    with (
        patch.object(module, "_machine", lambda: f"machine {next(numbers)}"),
        patch.object(manifests, "_CHANGES", between),
        tempfile.TemporaryDirectory() as folder,
    ):
        check_chain(LocalStorage(Path(folder)), schedule)


def check_chain(storage: LocalStorage, schedule: list[Turn]) -> None:
    """Run two drivers in the order of a schedule; some die and are started again."""
    everyone: list[Driver] = []
    running: dict[int, Driver] = {}
    for who, steps, dies in schedule:
        if dies and who in running:
            running[who].kill()
        if who not in running or running[who].ended:
            running[who] = Driver(storage, f"{who}-{len(everyone)}")
            everyone.append(running[who])
        for _ in range(steps):
            running[who].step()
    for driver in everyone:
        driver.kill()
    state = ManifestLog(storage, Lease(storage, "checkpoint")).load()
    chain = {one.note.batch: one.file for one in state.stored(0)}
    assert sorted(chain) == list(range(state.batch + 1)), "no batch is missing"
    for driver in everyone:
        for batch, file in driver.complete:
            assert chain.get(batch) == file, f"batch {batch} of driver {driver.name} was complete"
    assert {file.removeprefix("state/") for file in chain.values()} <= set(storage.names("state"))
