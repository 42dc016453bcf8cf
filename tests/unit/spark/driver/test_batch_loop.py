"""A batch runs only while its driver may complete it, and none follows one that has failed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from muntin.errors import RunError
from muntin.runtime.codec import encode
from muntin.runtime.frames import CheckpointError
from muntin.spark.driver import batch_loop, control_batches
from muntin.spark.driver.batch_loop import BatchesEnded, BatchLoop, BatchParts
from muntin.spark.driver.batch_outputs import BatchOutputs
from muntin.spark.driver.change_queue import ChangeQueue
from muntin.spark.driver.checkpoint import Checkpoint
from muntin.spark.driver.control_batches import ControlBatches
from muntin.spark.driver.control_queue import ControlQueue
from muntin.spark.driver.lease import Claim, Holder
from muntin.spark.driver.query_changes import PendingChange
from muntin.spark.driver.run_failures import RunFailures
from muntin.spark.driver.run_state import RunState
from muntin.spark.driver.shutdown import BatchInterrupted
from muntin.spark.driver.subscriptions import Subscriptions
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.storage import LocalStorage
from tests.unit.spark.faulty_storage import Faults, FaultyStorage
from tests.unit.spark.partition.test_recovery import PAIRS, program_of

DEPLOYMENT = program_of(f"{PAIRS} WINDOW 10 SECONDS")


class Writer:
    """Has one sink, a dictionary by batch; ``before`` is called by a second sink after it."""

    def __init__(self) -> None:
        self.sink: dict[int, object] = {}
        self.held = MagicMock()
        self.before: Callable[[], None] = lambda: None
        self.metrics = MagicMock()
        self.spool = MagicMock()
        self.suspended: dict[str, str] = {}

    def begin(self, deployment: Deployment, batch: int, run: str = "") -> None:
        pass

    follow = begin

    def plan(self, *_: object) -> Any:
        return ()

    def run(self, outputs: Any, _: int, __: object) -> BatchOutputs:
        self.rows = outputs.rows
        return {}

    def write(self, _: BatchOutputs, batch: int, *__: object) -> None:
        self.sink[batch] = self.rows
        self.before()


class Run:
    """The batches of an engine over a real checkpoint; Spark and the sinks are imitated."""

    def __init__(self, folder: Path) -> None:
        self.faults = Faults()
        self.storage = LocalStorage(folder)
        self.checkpoint = Checkpoint(FaultyStorage(self.storage, self.faults))
        self.controls = ControlQueue(self.checkpoint.files)
        self.state = RunState()
        self.writer = Writer()
        registry: Any = SimpleNamespace(queries={}, streams=tuple)
        self.changes = ChangeQueue(self.state, self.controls, 1.0, lambda: False)
        self.batches = BatchLoop(
            BatchParts(
                self.state,
                self.checkpoint,
                self.controls,
                registry,
                cast("Any", self.writer),
                MagicMock(),
                self.changes,
                Subscriptions(),
                MagicMock(),
                MagicMock(),
            )
        )

    def start(self) -> Run:
        self.checkpoint.acquire()
        plan = self.checkpoint.resume(DEPLOYMENT)
        self.checkpoint.write(plan.run, plan.deployment)
        self.state.run, self.state.deployment = plan.run, plan.deployment
        self.batches.begin(plan.deployment, MagicMock(), lambda _: None)
        self.batches._stage = MagicMock()
        self.batches._stage.over.return_value = outputs("no rows")
        return self

    def write(self, spark: int, rows: str) -> None:
        """Run a micro-batch as Spark does: plan it, run it, commit it."""
        self.storage.put(f"spark/offsets/{spark}", b"v1\n{}\n")
        self.batches.write(outputs(rows), spark)
        self.storage.put(f"spark/commits/{spark}", b"v1\n{}\n")

    def write_controls(self) -> bool:
        return self.batches.write_controls(MagicMock())


def outputs(rows: str) -> Any:
    found = MagicMock()
    found.rows = rows
    return found


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path).start()


def fail() -> None:
    raise RunError("the sink is full")


def test_a_release_waits_for_the_batch_that_is_inside_a_sink(run: Run) -> None:
    inside, go = threading.Event(), threading.Event()

    def slow() -> None:
        inside.set()
        assert go.wait(20)

    run.writer.before = slow
    run.controls.send_moment(5)
    thread = threading.Thread(target=run.write_controls)
    thread.start()
    assert inside.wait(20)
    assert not run.batches.end(0.05)
    go.set()
    assert run.batches.end(20)
    thread.join(20)
    assert run.checkpoint.last_batch() == 0, "it was complete before the release"
    run.controls.send_moment(9)
    for batch in (run.write_controls, lambda: run.write(0, "a")):
        with pytest.raises(BatchesEnded, match="has released its checkpoint"):
            batch()
    assert sorted(run.writer.sink) == [0]
    run.start()
    run.write(0, "a")
    assert run.writer.sink[1] == "a"
    run.checkpoint.release()


def test_a_batch_without_rows_never_takes_the_number_of_one_that_failed(run: Run) -> None:
    run.write(0, "a")

    def fail_with_a_heartbeat() -> None:
        run.controls.send_moment(7)
        fail()

    run.writer.before = fail_with_a_heartbeat
    with pytest.raises(RunError, match="sink is full"):
        run.write(1, "b")
    run.writer.before = lambda: None
    with pytest.raises(BatchesEnded, match="an earlier batch has failed: the sink is full"):
        run.write_controls()
    assert run.checkpoint.last_batch() == 0
    run.checkpoint.release()
    run.start()
    assert not run.write_controls(), "what Spark has planned comes first"
    run.write(1, "b")
    assert run.write_controls()
    assert run.writer.sink == {0: "a", 1: "b", 2: "no rows"}
    run.checkpoint.release()


def test_a_micro_batch_never_takes_the_number_of_a_batch_without_rows_that_failed(
    run: Run,
) -> None:
    run.controls.send_moment(7)
    run.writer.before = fail
    with pytest.raises(RunError, match="sink is full"):
        run.write_controls()
    run.writer.before = lambda: None
    with pytest.raises(BatchesEnded, match="the sink is full"):
        run.write(0, "a")
    run.checkpoint.release()
    run.start()
    run.write(0, "a")
    assert run.writer.sink == {0: "no rows", 1: "a"}
    run.checkpoint.release()


def test_a_stop_starts_no_batch_and_names_no_failure(run: Run) -> None:
    run.controls.send_moment(7)
    run.state.stopping = True
    run.batches.end(1.0)
    assert not run.write_controls(), "the moment still waits"
    with pytest.raises(BatchInterrupted):
        run.write(0, "a")
    assert not run.writer.sink
    run.checkpoint.release()


def test_a_deployment_that_cannot_be_written_is_not_in_force(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run.state.current()
    other = replace(before, max_advance=77)
    monkeypatch.setattr(run.changes, "arrived", lambda _: [PendingChange(dropped="q")])
    monkeypatch.setattr(batch_loop, "settled", lambda *_: other)
    run.faults.full.append("program")
    run.controls.send_moment(7)
    with pytest.raises(CheckpointError, match="No space left"):
        run.write_controls()
    assert run.state.current() == before
    run.checkpoint.release()


def test_a_batch_that_fails_in_a_thread_of_the_user_ends_the_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[object] = []
    monkeypatch.setattr(
        control_batches, "end_query", lambda _, streaming, __: ended.append(streaming)
    )
    run.state.streaming = MagicMock(isActive=True)
    parts: Any = SimpleNamespace(state=run.state, batches=run.batches)
    writer: Any = SimpleNamespace(failure=None)
    failures = RunFailures(writer, run.checkpoint)
    controls = ControlBatches(MagicMock(), parts, failures)
    run.controls.send_moment(7)
    run.faults.full.append("batches")
    with pytest.raises(CheckpointError, match="No space left"):
        controls.run_or_end()
    assert ended == [run.state.streaming]
    assert "No space left" in str(controls.failure)
    run.checkpoint.release()


def take_over(run: Run) -> None:
    """Let another driver claim the checkpoint."""
    claim = Claim("00000099-0", Holder.this(), after=run.checkpoint.last_batch())
    run.storage.put(f"muntin/lease/{claim.token}", encode(claim, "lease"))


def test_a_driver_that_was_replaced_plans_nothing_and_calls_no_sink(run: Run) -> None:
    run.write(0, "a")
    take_over(run)
    files = run.storage.below("muntin")
    before = {name: bytes(files.get(name)) for name in files.tree()}
    run.controls.send_moment(7)
    with pytest.raises(CheckpointError, match="was taken over by another engine"):
        run.write_controls()
    assert run.writer.sink == {0: "a"}
    assert {name: bytes(files.get(name)) for name in files.tree()} == before


def test_a_driver_that_is_replaced_while_its_partitions_run_calls_no_sink(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause(*_: object) -> BatchOutputs:
        take_over(run)
        return {}

    monkeypatch.setattr(run.writer, "run", pause)
    with pytest.raises(CheckpointError, match="was taken over by another engine"):
        run.write(0, "a")
    assert not run.writer.sink


def test_a_batch_lists_claims_four_times(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.write(0, "a")
    listed: list[str] = []
    names = FaultyStorage.names

    def noted(storage: FaultyStorage, folder: str = "") -> list[str]:
        listed.append(folder)
        return names(storage, folder)

    monkeypatch.setattr(FaultyStorage, "names", noted)
    run.write(1, "b")
    assert listed == ["lease"] * 4
    run.checkpoint.release()
