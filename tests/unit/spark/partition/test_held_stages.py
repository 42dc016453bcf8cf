"""A state server uses a global stage only in the state that the driver expects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from muntin.errors import EvaluationError
from muntin.expressions.duck import Duck
from muntin.model.catalog import Stream
from muntin.spark.driver.global_stages import GlobalStages
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import PartitionOutput
from muntin.spark.partition.global_stage import GlobalStage
from muntin.spark.partition.global_stage_log import stage_folder
from muntin.spark.partition.held_stages import HeldStages
from muntin.spark.partition.partition import RESULTS
from muntin.spark.partition.push_channel import PushConnection
from muntin.spark.storage import LocalStorage
from tests.unit.spark.partition.stage_orders import StageOwner, asked

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
SECOND = 1_000_000
COUNTS = "SELECT n, MEDIAN(k) AS m FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k) c GROUP BY n"
DEPLOYMENT = Deployment(
    (Stream("A", SCHEMA, "ts", 0),), {}, (DeployedQuery("q", f"{COUNTS} WINDOW 9 SECONDS", {}),)
)


def changes(batch: int, *rows: tuple[str, int, int]) -> list[PartitionOutput]:
    """Return changes of the only part: signs, keys and their counts."""
    (part,) = DEPLOYMENT.placed()[0].parts
    columns: dict[str, list[object]] = {
        "_op": [sign for sign, _, _ in rows],
        "_ts": [batch * SECOND] * len(rows),
    }
    for field in list(part.output_schema)[2:]:
        columns[field.name] = [count if field.name == "c0" else key for _, key, count in rows]
    arrays = [pa.array(columns[one.name]).cast(one.type) for one in part.output_schema]
    return [PartitionOutput(RESULTS, part.name, pa.table(arrays, schema=part.output_schema))]


BATCHES = [
    changes(0, ("+", 1, 1), ("+", 2, 1)),
    changes(1, ("-", 1, 1), ("+", 1, 2)),
    [],
    changes(3, ("+", 3, 2), ("-", 2, 1)),
]


def tables_of(outputs: Sequence[PartitionOutput], kind: str, name: str) -> list[pa.Table]:
    """Return the tables of outputs of a kind and a name."""
    return [output.table for output in outputs if (output.kind, output.name) == (kind, name)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[pa.Table]:
    """Return the results of the batches in the driver."""
    stages = GlobalStages(LocalStorage(tmp_path_factory.mktemp("driver")), Duck())
    placed, found = DEPLOYMENT.placed(), []
    for batch, outputs in enumerate(BATCHES):
        stages.begin(DEPLOYMENT, placed, batch)
        found.append(stages.result(0, placed[0], batch, partial(tables_of, outputs)))
    return found


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the batches before which a stage was rebuilt from now on."""
    found: list[int] = []
    load = GlobalStage.load

    def noted(self: GlobalStage, batch: int) -> None:
        found.append(batch)
        load(self, batch)

    monkeypatch.setattr(GlobalStage, "load", noted)
    return found


def test_results_are_those_of_the_driver_and_nothing_is_rebuilt(
    tmp_path: Path, expected: list[pa.Table], loaded: list[int]
) -> None:
    owner = StageOwner(DEPLOYMENT, tmp_path)
    found = [owner.results(batch, outputs) for batch, outputs in enumerate(BATCHES)]
    assert found == expected
    assert [len(table) for table in found] == [1, 3, 0, 3]
    assert loaded == [0]


def test_a_repeated_attempt_and_another_server_rebuild_the_stage(
    tmp_path: Path, expected: list[pa.Table], loaded: list[int]
) -> None:
    owner = StageOwner(DEPLOYMENT, tmp_path)
    owner.results(0, BATCHES[0])
    before = owner.state
    owner.results(1, BATCHES[1])
    owner.state = before  # the driver did not get the answer
    assert owner.results(1, BATCHES[1]) == expected[1]
    assert loaded == [0, 1]
    owner.held = HeldStages(PushConnection())
    assert owner.results(2, BATCHES[2]) == expected[2]
    assert owner.results(3, BATCHES[3]) == expected[3]
    assert loaded == [0, 1, 2]


def test_a_stage_that_misses_batches_is_rebuilt(
    tmp_path: Path, expected: list[pa.Table], loaded: list[int]
) -> None:
    """Another machine had it meanwhile."""
    here, there = StageOwner(DEPLOYMENT, tmp_path), StageOwner(DEPLOYMENT, tmp_path)
    here.results(0, BATCHES[0])
    there.state = here.state
    there.results(1, BATCHES[1])
    here.state = there.state
    assert here.results(3, BATCHES[3]) == expected[3]
    assert loaded == [0, 1, 3]


def test_what_the_tasks_of_a_replaced_driver_write_is_ignored(
    tmp_path: Path, expected: list[pa.Table]
) -> None:
    old = StageOwner(DEPLOYMENT, tmp_path, "00000001-a")
    for batch in range(2):
        old.results(batch, BATCHES[batch])
    new = StageOwner(DEPLOYMENT, tmp_path, "00000002-b", {"00000002-b": 0})
    old.results(2, changes(2, ("+", 9, 9)))
    assert new.results(1, BATCHES[1]) == expected[1]
    old.results(3, changes(3, ("+", 9, 9)))
    new.held = HeldStages(PushConnection())
    assert new.results(3, BATCHES[3]) == expected[3]


def test_a_stage_that_fails_names_the_reason_and_is_in_no_state(
    tmp_path: Path, expected: list[pa.Table]
) -> None:
    owner = StageOwner(DEPLOYMENT, tmp_path)
    owner.results(0, BATCHES[0])
    before = owner.state

    def broken(*_: object) -> None:
        raise EvaluationError("nothing works")

    with patch.object(GlobalStage, "run", broken):
        answer = owner.run(1, BATCHES[1])
    assert "nothing works" in answer.failure
    assert (answer.sent, answer.state) == ([], "")
    owner.state = before
    assert owner.results(1, BATCHES[1]) == expected[1]


def test_a_damaged_log_is_reported_as_such(tmp_path: Path) -> None:
    owner = StageOwner(DEPLOYMENT, tmp_path)
    owner.results(0, BATCHES[0])
    (file,) = (tmp_path / stage_folder(0, DEPLOYMENT.partitions)).iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    order = replace(owner.order(1, BATCHES[1]), state="")
    word, fact = asked(owner.held, ("stage", order))
    assert word == "damaged"
    assert file.name in fact


def test_stages_of_queries_that_are_not_in_force_are_released(
    tmp_path: Path, loaded: list[int]
) -> None:
    owner = StageOwner(DEPLOYMENT, tmp_path)
    owner.results(0, BATCHES[0])
    owner.held.release()
    owner.results(1, BATCHES[1])
    assert loaded == [0, 1]
