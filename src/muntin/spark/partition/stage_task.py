"""The second job of a batch: global stages, one Spark task for each state server that has some.

The task keeps nothing and may run again: the state server that it asks rebuilds a stage that is not
in the expected state (:mod:`muntin.spark.partition.held_stages`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from muntin.runtime.codec import encode
from muntin.spark.partition.spool import Sent
from muntin.spark.partition.state_client import StateClient
from muntin.spark.partition.task import PartitionStage, freeze, outputs_of
from muntin.spark.partition.wire import StageOrder, digest_of

STAGE = "stage"
"""The kind of output with the :class:`muntin.spark.partition.wire.StageAnswer` of a query."""


@dataclass(frozen=True)
class StageTask:
    """Runs the global stages of a batch; ``owners`` has the orders of each task by query.

    ``numbers`` are the partitions whose state servers hold the stages, by task.
    """

    stage: PartitionStage
    numbers: tuple[int, ...]
    owners: tuple[dict[str, StageOrder], ...]

    def __call__(self, ids: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the stages of the task whose number comes; yield names and counts."""
        for task in [number for batch in ids for number in batch.column("id").to_pylist()]:
            file = self.stage.deployment_file
            loaded = file.read()
            number = self.numbers[task]
            client = StateClient(self.stage.run, number, os.getppid(), file.functions)
            for query, order in self.owners[task].items():
                own = replace(order, digest=digest_of(loaded.content))
                answer = client.run_stage(query, own, loaded.content)
                about = encode(replace(answer, sent=[]), STAGE)
                yield outputs_of([*answer.sent, Sent(STAGE, query, 0, about, "")])
        freeze()
