"""The last stage of pipelines: the operators that need the rows of all partitions, run where these come together.

Partitions send the changes of their parts; since all of them have come to the same instant, the changes of an instant are complete
within a batch. They are put in the order of time and run through the operators that are left. What those keep can be made again from
the rows that were taken, which a :class:`muntin.spark.driver.global_stage_log.StageLog` has.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.kernels.jit import prepare_part
from muntin.operators.net_changes import left_of
from muntin.operators.signed import Changes
from muntin.plan.query import Emit, Query
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.spark.driver.checkpoint import CheckpointError
from muntin.spark.driver.global_stage_log import StageLog
from muntin.spark.driver.merge_results import merged
from muntin.spark.exchange.deployment import Deployment, PlacedQuery
from muntin.spark.exchange.messages import from_blob
from muntin.spark.partition.partition import CLOCK, RESULTS

Found: TypeAlias = Callable[[str, str], Sequence[pa.Table]]
FEW = 20_000
"""So many changes more than twice the rows that are left of them may always be kept."""


class _Operators(RunningPipeline):
    """The operators of a last stage: in the place of leaves there are parts, whose changes are given."""

    def __init__(self, query: Query, tables: Mapping[str, pa.Table], duck: Duck) -> None:
        super().__init__(query, (), tables, duck)

    def take(self, changes: Sequence[Changes], first: int | None, closed: int | None) -> None:
        """Take changes of the parts; ``first`` is the first instant, ``closed`` the one to which all have come."""
        shown = None
        if self.query.emit is Emit.SNAPSHOT:
            self._next = first if self._next is None else self._next
        elif closed is not None:
            shown = self._first_closed(first, closed)
        if any(len(part) for part in changes) or shown is not None:
            self._keep(self._operator.run(changes), settled=self._operator.tidy, first=shown)
        if self.query.emit is Emit.SNAPSHOT and closed is not None:
            for _ in self._show(closed):
                pass

    @property
    def following(self) -> int | None:
        """The first instant of the results, once it is out; of EMIT SNAPSHOT, the next one to be shown."""
        return self._next if self.query.emit is Emit.SNAPSHOT else self._first

    def go_on(self, following: int | None) -> None:
        """Be as after the last batch: all results are known, ``following`` is what :attr:`following` was then."""
        if self.query.emit is Emit.SNAPSHOT:
            self._next = following
        elif following is not None:
            self._beginning, self._first = None, following
        self.poll()


class LastStage:
    """The last stage of one query; ``rows`` are those that it has of all parts."""

    def __init__(
        self, placed: PlacedQuery, tables: Mapping[str, pa.Table], folder: Path, duck: Duck
    ) -> None:
        assert placed.distribution.last is not None, "made for queries that have one"
        prepare_part("pipelines")
        self.query = placed.distribution.last
        self._parts = placed.parts
        self._tables = tables
        self._duck = duck
        self._log = StageLog(folder)
        self._operators: _Operators | None = None
        self._version = -1
        self._whole: int | None = None
        """The batch of the last whole entry."""
        self._weight = self.rows = 0

    def run(
        self, batch: int, found: Mapping[str, Sequence[pa.Table]], clock: Sequence[pa.Table]
    ) -> pa.Table:
        """The results of a batch, given the changes of parts by their names, and what partitions tell of time; durable when it returns."""
        if self._operators is None or self._version >= batch:
            self.load(batch)
        operators, self._operators = (
            self._operators,
            None,
        )  # if this fails, it has to be built again
        assert operators is not None, "it was loaded"
        tables = [
            pa.concat_tables([part.output_schema.empty_table(), *found.get(part.name, ())])
            for part in self._parts
        ]
        before = operators.following
        operators.take([_changes(table) for table in tables], *_times(clock))
        self._note(batch, tables, operators.following, changed=before != operators.following)
        self._operators, self._version = operators, batch
        return operators.poll()

    def prepare(self, batch: int) -> None:
        """Load what was before a batch. If operators fail on it, :meth:`run` says so, for this query alone."""
        try:
            self.load(batch)
        except (CheckpointError, OSError):
            raise
        except Exception:  # noqa: BLE001 (whatever it is, it is raised again by `run`)
            self._operators = None

    def load(self, batch: int) -> None:
        """Be as before a batch."""
        entries = self._log.load(batch)
        self._operators = _Operators(self.query, self._tables, self._duck)
        self._whole, self._weight, self.rows = None, 0, 0
        if not entries:
            return
        tables = self._net([entry.tables() for entry in entries])
        self._whole = entries[0].batch
        self._weight = sum(len(table) for entry in entries for table in entry.tables())
        self.rows = sum(map(len, tables))
        self._operators.take([_changes(table) for table in tables], None, None)
        self._operators.go_on(entries[-1].next)

    def _net(self, entries: Sequence[Sequence[pa.Table]]) -> list[pa.Table]:
        """The rows that are left of changes, part by part."""
        found = []
        evaluator = Evaluator(self._duck)
        for tables in zip(*entries, strict=True):
            table = pa.concat_tables(tables)
            # As in changes, which have the order of time; the files of earlier batches have earlier times.
            order = np.argsort(table.column("_ts").cast(pa.int64()).to_numpy(), kind="stable")
            table = table.take(pa.array(order))
            found.append(table.take(pa.array(left_of(_changes(table), evaluator))))
        return found

    def _note(
        self, batch: int, tables: list[pa.Table], following: int | None, *, changed: bool
    ) -> None:
        """Write down what came with a batch, or what is left of all once that is less."""
        if self._whole is not None and self._whole < batch:
            self._log.prune(self._whole)
        came = sum(map(len, tables))
        if not (came or changed or self._whole is None):
            return
        self._weight += came
        self.rows += sum(int(_changes(table).signs.sum()) for table in tables)
        whole = self._whole is None or self._weight > 2 * self.rows + FEW
        if whole and self._whole is not None:
            tables = self._net([*(entry.tables() for entry in self._log.load(batch)), tables])
            self._weight = self.rows
        self._log.write(batch, tables, following, whole=whole)
        self._whole = batch if whole else self._whole


class LastStages:
    """The last stages of all queries that have one, by their places among all that ever were; ``folder`` is theirs in the checkpoint."""

    def __init__(self, folder: Path, duck: Duck) -> None:
        self._folder = folder
        self._duck = duck
        self._stages: dict[int, LastStage] = {}

    def begin(
        self, program: Deployment, placed: Sequence[PlacedQuery], batch: int
    ) -> dict[str, int]:
        """The places of the queries in force in a batch, by name; the last stages of others are let go: their batches are complete."""
        active = program.active(program.epoch(batch))
        kept = {str(place) for place in active}
        self._stages = {place: stage for place, stage in self._stages.items() if str(place) in kept}
        for place in active:
            if placed[place].distribution.last is not None and place not in self._stages:
                stored = {
                    source.relation for source in placed[place].query.sources if source.stored
                }
                tables = {name: from_blob(program.tables[name]) for name in stored}
                self._stages[place] = LastStage(
                    placed[place], tables, self._folder / str(place), self._duck
                )
                self._stages[place].prepare(batch)
        for folder in self._folder.iterdir() if self._folder.is_dir() else ():
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)
        return {placed[place].query.name: place for place in active}

    def result(self, place: int, placed: PlacedQuery, batch: int, found: Found) -> pa.Table:
        """The results of a query in a batch; ``found`` gives the outputs of a kind under a name."""
        if placed.distribution.last is None:
            return merged(
                placed.query,
                found(RESULTS, placed.query.name),
                self._duck,
                apart=placed.distribution.apart,
            )
        changes = {part.name: found(RESULTS, part.name) for part in placed.parts}
        return self._stages[place].run(batch, changes, found(CLOCK, placed.query.name))

    def rows(self) -> dict[str, int]:
        """How many rows each has, by query."""
        return {stage.query.name: stage.rows for stage in self._stages.values()}


def _changes(table: pa.Table) -> Changes:
    """Results of parts as changes in the order of time."""
    signs = np.where(pc.equal(table.column("_op"), "+").to_numpy(), 1, -1)
    times = table.column("_ts").cast(pa.int64()).to_numpy()
    columns = table.select(range(2, table.num_columns))
    if len(times) > 1 and (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        return Changes(columns.take(pa.array(order)), times[order], signs[order])
    return Changes(columns, times, signs)


def _times(clock: Sequence[pa.Table]) -> tuple[int | None, int | None]:
    """When the first row came, and how far time has come."""
    if not clock:
        return None, None
    told = pa.concat_tables(clock)
    return pc.min(told.column("first")).as_py(), pc.max(told.column("closed")).as_py()
