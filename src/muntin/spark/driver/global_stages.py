"""The global stages of an engine: small ones run in the driver, others on executors.

A stage begins here. It moves to executors, until the run ends, with the first large output of a
partition for it or once its log is large; a start judges by the log. The log is the state, so a
stage that moves is rebuilt from it, as after a failure. The driver deletes what it leaves behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.spark.exchange.deployment import Deployment, PlacedQuery
from muntin.spark.exchange.merge_results import merged
from muntin.spark.partition.global_stage import GlobalStage, changes_of, net
from muntin.spark.partition.global_stage_log import StageLog, stage_folder
from muntin.spark.partition.partition import CLOCK, RESULTS
from muntin.spark.partition.wire import StageAnswer
from muntin.spark.storage import Storage

OutputsOf: TypeAlias = Callable[[str, str], Sequence[pa.Table]]

LARGE = 4 * 1024 * 1024
"""The bytes of the log of a stage beyond which it runs on executors."""


@dataclass
class MovedStage:
    """A stage on executors: the name of its state, empty if it has to be rebuilt, and its rows."""

    query: str
    log: StageLog
    state: str = ""
    rows: int = 0


class GlobalStages:
    """The global stages of all queries that have one, by place; their logs are in ``storage``.

    ``moved`` are those on executors.
    """

    def __init__(self, storage: Storage, duck: Duck) -> None:
        self.storage = storage
        self._kept: set[str] | None = None
        self._duck = duck
        self._stages: dict[int, GlobalStage] = {}
        self.moved: dict[int, MovedStage] = {}

    def begin(
        self, deployment: Deployment, placed: Sequence[PlacedQuery], batch: int
    ) -> dict[str, int]:
        """Return the places of the queries in force in a batch, by name; close other stages."""
        active = deployment.active(deployment.epoch(batch))
        folders = {place: stage_folder(place, deployment.partitions) for place in active}
        self._stages = {place: self._stages[place] for place in active if place in self._stages}
        self.moved = {place: self.moved[place] for place in active if place in self.moved}
        for place in active:
            if placed[place].distribution.last is None or place in self.moved:
                continue
            if place not in self._stages:
                log = self.storage.below(folders[place])
                stage = GlobalStage.of(placed[place], deployment, log, self._duck)
                self._stages[place] = stage
                if stage.log.length(batch) <= LARGE:
                    stage.prepare(batch)
                    continue
                self.move(place)
            elif self._stages[place].log.size > LARGE:
                self.move(place)
        kept = set(folders.values())
        if kept != self._kept:
            left = [name for name in self.storage.tree() if name.partition("/")[0] not in kept]
            self.storage.delete(left)
            self._kept = kept
        return {placed[place].query.name: place for place in active}

    @property
    def here(self) -> set[int]:
        """The places of the queries whose stages run in the driver."""
        return {*self._stages}

    def move(self, place: int) -> None:
        """Leave a stage to executors, which rebuild it from its log."""
        stage = self._stages.pop(place)
        self.moved[place] = MovedStage(stage.query.name, stage.log, rows=stage.rows)

    def take(self, place: int, answer: StageAnswer) -> None:
        """Note what an executor has done with a stage."""
        stage = self.moved[place]
        stage.state, stage.rows = answer.state, answer.rows
        if answer.obsolete is not None:
            stage.log.prune(answer.obsolete)

    def rescale(
        self,
        deployment: Deployment,
        placed: Sequence[PlacedQuery],
        before: Deployment,
        batch: int,
        found: Mapping[str, Sequence[pa.Table]],
    ) -> None:
        """Replace the rows of all stages after ``batch``, because partitions are others now.

        ``found`` has the changes of all parts, which add up to the same results as those that the
        partitions of ``before`` sent. The logs of those stay until :meth:`begin`, so that a start
        that is killed before the state of the partitions is replaced finds them.
        """
        for place in deployment.active(deployment.epoch(batch + 1)):
            old = self.storage.below(stage_folder(place, before.partitions))
            entries = StageLog(old).load(batch + 1)
            if placed[place].distribution.last is None or not entries:
                continue
            tables = [changes_of(part, found) for part in placed[place].parts]
            folder = stage_folder(place, deployment.partitions)
            self.storage.delete_tree(folder)
            log = StageLog(self.storage.below(folder))
            log.write(batch, net([tables], self._duck), entries[-1].next, whole=True)
        self._stages, self.moved = {}, {}

    def result(self, place: int, placed: PlacedQuery, batch: int, found: OutputsOf) -> pa.Table:
        """Return the results of a query in a batch; ``found`` returns outputs by kind and name."""
        if placed.distribution.last is None:
            return merged(
                placed.query,
                found(RESULTS, placed.query.name),
                self._duck,
                final=placed.is_final,
            )
        changes = {part.name: found(RESULTS, part.name) for part in placed.parts}
        stage = self._stages[place]
        results = stage.run(batch, changes, found(CLOCK, placed.query.name))
        if stage.obsolete is not None:
            stage.log.prune(stage.obsolete)
        return results

    def rows(self) -> dict[str, int]:
        """Return how many rows each stage has, by query."""
        here = {stage.query.name: stage.rows for stage in self._stages.values()}
        return here | {stage.query: stage.rows for stage in self.moved.values()}
