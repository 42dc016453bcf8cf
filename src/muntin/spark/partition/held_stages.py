"""The global stages that a state server holds, beside its partition.

As a partition, a stage is a cache. It is used for a batch only if the driver expects the state that
it is in: every batch that was applied gives it a name that no other attempt uses. Otherwise it is
rebuilt from its log. While a batch is applied, the stage is in no state.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

from muntin.errors import RunError
from muntin.expressions.duck import Duck
from muntin.runtime.frames import CheckpointError
from muntin.runtime.query_group import reason_of
from muntin.spark.exchange.deployment import Deployment, PlacedQuery
from muntin.spark.exchange.deployment_file import decode_deployment
from muntin.spark.exchange.messages import PartitionOutput
from muntin.spark.partition.global_stage import GlobalStage
from muntin.spark.partition.global_stage_log import stage_folder
from muntin.spark.partition.partition import RESULTS
from muntin.spark.partition.push_channel import PushConnection
from muntin.spark.partition.spool import Spool
from muntin.spark.partition.wire import StageAnswer, StageOrder, digest_of, send
from muntin.spark.storage import storage_at
from muntin.spark.storage.fence import LentFence, VersionedStorage


@dataclass(frozen=True)
class _Deployed:
    """The deployment that was received last."""

    digest: str
    deployment: Deployment
    placed: tuple[PlacedQuery, ...]


class HeldStages:
    """Runs global stages as the driver orders; results for subscribers go through ``push``."""

    def __init__(self, push: PushConnection) -> None:
        self._push = push
        self._deployed: _Deployed | None = None
        self._stages: dict[int, tuple[str, GlobalStage]] = {}
        """The stages and the names of their states, by place of the query."""
        self._duck: Duck | None = None

    def release(self) -> None:
        """Release all stages."""
        self._deployed, self._duck = None, None
        self._stages.clear()

    def answer(self, connection: Connection, request: tuple[Any, ...]) -> None:
        """Answer a request that is about stages."""
        try:
            answer = self._deploy(request[1]) if request[0] == "deploy" else self._run(request[1])
        except CheckpointError as error:
            answer = ("damaged", error.fact)
        except Exception as error:  # noqa: BLE001 (the worker must get any error)
            answer = ("failed", f"{type(error).__name__}: {error}")
        send(connection, answer)

    def _deploy(self, content: bytes) -> tuple[Any, ...]:
        """Take a deployment; the stages stay, as places never change."""
        deployment = decode_deployment(content)
        self._deployed = _Deployed(digest_of(content), deployment, tuple(deployment.placed()))
        return ("deployed",)

    def _run(self, order: StageOrder) -> tuple[Any, ...]:
        deployed = self._deployed
        if deployed is None or deployed.digest != order.digest:
            return ("deploy?",)
        active = deployed.deployment.active(deployed.deployment.epoch(order.batch))
        self._stages = {place: self._stages[place] for place in active if place in self._stages}
        stage = self._in_state(order, deployed)
        spool = Spool(storage_at(order.spool))
        changes = {
            name: [spool.take(*piece) for piece in pieces] for name, pieces in order.changes.items()
        }
        clock = [spool.take(*piece) for piece in order.clock]
        try:
            results = stage.run(order.batch, changes, clock)
        except (CheckpointError, RunError, OSError):
            raise
        except Exception as error:  # noqa: BLE001 (other queries continue)
            return ("staged", StageAnswer([], "", failure=reason_of(error)))
        name = deployed.placed[order.place].query.name
        unsent = self._pushed(order, name, results)
        found = [PartitionOutput(RESULTS, name, results)] if len(results) else []
        sent = order.results.send(found, spool, order.batch, order.place)
        state = uuid.uuid4().hex
        self._stages[order.place] = (state, stage)
        return ("staged", StageAnswer(sent, state, stage.rows, stage.obsolete, unsent))

    def _in_state(self, order: StageOrder, deployed: _Deployed) -> GlobalStage:
        """Return the stage in the expected state, which no other request finds any more."""
        state, stage = self._stages.pop(order.place, ("", None))
        if stage is not None and order.state and state == order.state:
            return stage
        fence = LentFence(order.token, order.starts)
        logs = VersionedStorage(storage_at(order.logs), fence)
        folder = stage_folder(order.place, deployed.deployment.partitions)
        if self._duck is None:
            self._duck = Duck()
        placed = deployed.placed[order.place]
        return GlobalStage.of(placed, deployed.deployment, logs.below(folder), self._duck)

    def _pushed(self, order: StageOrder, name: str, results: pa.Table) -> int:
        """Send results to subscribers; return how many may not have reached them."""
        if order.target is None:
            return 0
        push = self._push.begin(order.target, order.batch, time.time())
        push(name, results)
        return push.end()
