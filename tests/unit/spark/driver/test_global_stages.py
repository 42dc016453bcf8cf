"""A global stage leaves the driver when its log is large, and a start judges by the log."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from muntin.expressions.duck import Duck
from muntin.spark.driver import global_stages
from muntin.spark.driver.global_stages import GlobalStages
from muntin.spark.partition.global_stage import GlobalStage
from muntin.spark.partition.wire import StageAnswer
from muntin.spark.storage import LocalStorage
from tests.unit.spark.partition.test_held_stages import BATCHES, DEPLOYMENT, tables_of


def test_a_stage_moves_once_its_log_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = DEPLOYMENT.placed()
    stages = GlobalStages(LocalStorage(tmp_path), Duck())
    stages.begin(DEPLOYMENT, placed, 0)
    stages.result(0, placed[0], 0, partial(tables_of, BATCHES[0]))
    stages.begin(DEPLOYMENT, placed, 1)
    assert (stages.here, {*stages.moved}) == ({0}, set())
    (file,) = tmp_path.glob("*/*")
    monkeypatch.setattr(global_stages, "LARGE", file.stat().st_size - 1)
    stages.begin(DEPLOYMENT, placed, 1)
    assert (stages.here, {*stages.moved}) == (set(), {0})
    assert stages.rows() == {"q": 2}

    monkeypatch.setattr(GlobalStage, "load", lambda *_: pytest.fail("it is only measured"))
    again = GlobalStages(LocalStorage(tmp_path), Duck())
    again.begin(DEPLOYMENT, placed, 1)
    assert again.moved[0].state == "", "executors have to rebuild it"


def test_the_driver_deletes_what_an_executor_has_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(global_stages, "LARGE", -1)
    placed = DEPLOYMENT.placed()
    stages = GlobalStages(LocalStorage(tmp_path), Duck())
    stages.begin(DEPLOYMENT, placed, 0)
    log = stages.moved[0].log
    for batch in range(3):
        log.write(batch, [], None, whole=batch == 1)
    stages.take(0, StageAnswer([], "state", 5, obsolete=None))
    assert len(list(tmp_path.glob("*/*"))) == 3
    stages.take(0, StageAnswer([], "state", 5, obsolete=1))
    assert sorted(file.name for file in tmp_path.glob("*/*")) == [
        "000000000001.changes",
        "000000000002.changes",
    ]
    assert stages.rows() == {"q": 5}
