"""Orders for global stages, as the driver gives them to state servers, without Spark."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pyarrow as pa

from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.deployment_file import encode_deployment
from muntin.spark.exchange.messages import PartitionOutput, from_blob, to_blob
from muntin.spark.partition.held_stages import HeldStages
from muntin.spark.partition.partition import CLOCK, RESULTS
from muntin.spark.partition.push_channel import PushConnection
from muntin.spark.partition.result_writer import ResultPlan
from muntin.spark.partition.wire import Pieces, StageAnswer, StageOrder, digest_of, receive, send
from muntin.spark.storage import Location


def asked(held: HeldStages, request: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the answer to a request, through a connection as large as any request."""
    near, far = Pipe()
    with near, far:
        sender = threading.Thread(target=send, args=(near, request))
        sender.start()
        message = receive(far)
        sender.join()
        answering = threading.Thread(target=held.answer, args=(far, message))
        answering.start()
        answer = receive(near)
        answering.join()
    return answer


@dataclass
class StageOwner:
    """A state server with the stage of the first query of a deployment, and its driver."""

    deployment: Deployment
    folder: Path
    """The logs are here."""
    token: str = ""
    starts: dict[str, int] = field(default_factory=dict)
    held: HeldStages = field(default_factory=lambda: HeldStages(PushConnection()))
    state: str = ""

    def order(self, batch: int, outputs: Sequence[PartitionOutput]) -> StageOrder:
        """Return the order for a batch with some outputs of partitions."""
        placed = self.deployment.placed()[0]

        def pieces(kind: str, name: str) -> Pieces:
            return tuple(
                (to_blob(output.table), "")
                for output in outputs
                if (output.kind, output.name) == (kind, name)
            )

        return StageOrder(
            0,
            batch,
            self.state,
            digest_of(encode_deployment("run", self.deployment)),
            {part.name: pieces(RESULTS, part.name) for part in placed.parts},
            pieces(CLOCK, placed.query.name),
            Location(str(self.folder)),
            self.token,
            self.starts,
            Location(str(self.folder.with_name("spool"))),
            ResultPlan(),
        )

    def run(self, batch: int, outputs: Sequence[PartitionOutput]) -> StageAnswer:
        """Run a batch; return the answer."""
        order = self.order(batch, outputs)
        answer = asked(self.held, ("stage", order))
        if answer == ("deploy?",):
            content = encode_deployment("run", self.deployment)
            assert asked(self.held, ("deploy", content)) == ("deployed",)
            answer = asked(self.held, ("stage", order))
        assert answer[0] == "staged", answer
        staged: StageAnswer = answer[1]
        self.state = staged.state
        return staged

    def results(self, batch: int, outputs: Sequence[PartitionOutput]) -> pa.Table:
        """Return the results of a batch."""
        placed = self.deployment.placed()[0]
        sent = self.run(batch, outputs).sent
        tables = [from_blob(one.blob) for one in sent]
        return pa.concat_tables([placed.query.output_schema.empty_table(), *tables])
