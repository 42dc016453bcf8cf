"""However a run ends, its checkpoint is free once none of its batches runs."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from muntin.errors import RunError
from muntin.runtime.frames import CheckpointError
from muntin.spark.driver import engine_run
from muntin.spark.driver.batch_loop import BatchLoop, BatchParts
from muntin.spark.driver.checkpoint import Checkpoint
from muntin.spark.driver.engine_run import EngineRun, RunConfig
from muntin.spark.driver.run_state import RunState
from muntin.spark.driver.subscriptions import Subscriptions
from muntin.spark.storage import LocalStorage
from tests.unit.spark.faulty_storage import Faults, FaultyStorage


class Run:
    """An engine whose streaming query has ended; Spark is imitated."""

    def __init__(self, folder: Path) -> None:
        self.faults = Faults()
        self.checkpoint = Checkpoint(FaultyStorage(LocalStorage(folder), self.faults))
        self.subscriptions = Subscriptions()
        state = RunState(run="run", streaming=MagicMock())
        nothing: Any = MagicMock()
        self.batches = BatchLoop(
            BatchParts(
                state,
                self.checkpoint,
                nothing,
                nothing,
                nothing,
                nothing,
                nothing,
                self.subscriptions,
                nothing,
                nothing,
            )
        )
        parts: Any = SimpleNamespace(
            state=state,
            checkpoint=self.checkpoint,
            writer=MagicMock(at_work="the sink of query q"),
            load=nothing,
            batches=self.batches,
            subscriptions=self.subscriptions,
        )
        self.engine = EngineRun(MagicMock(), RunConfig(2, 1_000_000, None, None), parts)

    def start(self) -> None:
        self.checkpoint.acquire()
        self.engine._receiver = MagicMock()
        self.subscriptions.begin(self.checkpoint.tasks)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(engine_run, "end_state_servers", lambda *_: None)
    found = Run(tmp_path)
    found.start()
    return found


def test_a_file_that_cannot_be_deleted_does_not_keep_the_checkpoint(run: Run) -> None:
    run.faults.gone.append("subscribed")
    with pytest.raises(CheckpointError, match="cannot be read"):
        run.engine.release()
    assert not run.checkpoint.lease.token


def test_a_batch_that_does_not_end_keeps_the_checkpoint_until_it_has(run: Run) -> None:
    with run.batches._lock:
        error = run.engine.release(0.05)
        assert "the sink of query q has not returned" in str(error)
        assert run.checkpoint.lease.token
        with pytest.raises(RunError, match="did not stop in time"):
            run.engine.stop(0.05)
        stuck = run.engine.stuck
        assert isinstance(stuck, threading.Thread)
        assert stuck.is_alive()
    stuck.join(20)
    assert not run.checkpoint.lease.token
    assert run.engine.release(0.05) is None
