"""The second job of a batch, for the global stages that executors run.

The driver passes on names of files and small outputs, and gets names and counts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from muntin.runtime.codec import decode
from muntin.spark.driver.batch_outputs import MERGED, BatchOutputs, collect, piece_of
from muntin.spark.driver.global_stages import GlobalStages
from muntin.spark.exchange.deployment import PlacedQuery
from muntin.spark.exchange.marks import GLOBAL
from muntin.spark.exchange.partition_metrics import STATS
from muntin.spark.partition.partition import CLOCK, RESULTS
from muntin.spark.partition.push_channel import PushTarget
from muntin.spark.partition.result_writer import WRITTEN, ResultPlan
from muntin.spark.partition.stage_task import STAGE, StageTask
from muntin.spark.partition.task import OUTPUT, PartitionStage
from muntin.spark.partition.wire import Pieces, StageAnswer, StageOrder
from muntin.spark.result_target import ResultTarget
from muntin.spark.storage.fence import Fence


@dataclass(frozen=True)
class StageBatch:
    """A batch as its global stages see it: queries that run by place, and the sinks' folders.

    ``subscribed`` are the names of queries that have subscribers.
    """

    number: int
    placed: Mapping[int, PlacedQuery]
    targets: Mapping[str, ResultTarget]
    subscribed: Collection[str]
    partitions: int


class StageJob:
    """Runs global stages on the executors of a run; the driver lends them its ``fence``."""

    def __init__(self, stage: PartitionStage, fence: Fence) -> None:
        self._stage = stage
        self._token, self._starts = fence.token, fence.starts()

    def run(
        self, batch: StageBatch, found: BatchOutputs, stages: GlobalStages, spark: SparkSession
    ) -> dict[int, StageAnswer]:
        """Run the stages on executors and put their results in place; return their answers.

        A stage for which partitions have written files moves before. Those of queries that a
        partition has suspended do not run any more.
        """
        for place in stages.here & batch.placed.keys():
            parts = (found.get((RESULTS, part.name), ()) for part in batch.placed[place].parts)
            if any(row["file"] for rows in parts for row in rows):
                stages.move(place)
        if not stages.moved:
            return {}
        owners: dict[int, dict[str, StageOrder]] = {}
        for place, order in self._orders(batch, found, stages):
            owners.setdefault(place % batch.partitions, {})[stages.moved[place].query] = order
        if not owners:
            return {}
        task = StageTask(self._stage, tuple(owners), tuple(owners.values()))
        ids = spark.range(0, len(owners), 1, len(owners))
        outputs = collect(ids.mapInArrow(task.__call__, OUTPUT))
        places = {stage.query: place for place, stage in stages.moved.items()}
        answers: dict[int, StageAnswer] = {}
        for (kind, name), rows in outputs.items():
            if kind == STAGE:
                blob = bytes(rows[0]["blob"])
                answer = decode(blob, STAGE, StageAnswer, "the answer of a global stage")
                answers[places[name]] = answer
                stages.take(places[name], answer)
            else:
                found[WRITTEN if kind == WRITTEN else MERGED, name] = rows
        return answers

    def _orders(
        self, batch: StageBatch, found: BatchOutputs, stages: GlobalStages
    ) -> Iterator[tuple[int, StageOrder]]:
        """Yield what executors do with their stages; nothing for those that get nothing."""
        reports = [json.loads(bytes(row["blob"])) for row in found.get((STATS, ""), ())]
        failed = {name for report in reports for name in report["suspended"]}
        for place, stage in stages.moved.items():
            placed = batch.placed.get(place)
            if placed is None or stage.query in failed:
                continue
            found[MERGED, stage.query] = []
            changes = {part.name: _pieces(found, RESULTS, part.name) for part in placed.parts}
            clock = _pieces(found, CLOCK, stage.query)
            if not (clock or any(changes.values())):
                continue
            queries = frozenset({stage.query} & set(batch.subscribed))
            targets = batch.targets
            yield (
                place,
                StageOrder(
                    place,
                    batch.number,
                    stage.state,
                    "",  # the task fills it in: it reads the deployment
                    changes,
                    clock,
                    stages.storage.place,
                    self._token,
                    self._starts,
                    self._stage.deployment_file.spool.place,
                    ResultPlan(
                        {stage.query: targets[stage.query]} if stage.query in targets else {}
                    ),
                    PushTarget(self._stage.driver, GLOBAL, queries) if queries else None,
                ),
            )


def _pieces(found: BatchOutputs, kind: str, name: str) -> Pieces:
    return tuple(map(piece_of, found.get((kind, name), ())))
