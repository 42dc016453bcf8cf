"""The global stage of a query: the operators that need the rows of all partitions.

Partitions send the changes of their parts. Since all of them have reached the same instant, the
changes of an instant are complete within a batch. They are sorted by time and run through the
remaining operators. The state of those can be rebuilt from the rows that were taken, which a
:class:`muntin.spark.partition.global_stage_log.StageLog` keeps. So it does not matter which process
runs a stage: the driver, or the state server that :mod:`muntin.spark.partition.stage_task` asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.kernels.jit import prepare_part
from muntin.operators.net_changes import left_of
from muntin.operators.pipeline import PipelineOperator
from muntin.operators.signed import Changes
from muntin.plan.query import Emit, Query
from muntin.runtime.frames import CheckpointError
from muntin.runtime.pipeline_output import PipelineOutput
from muntin.spark.exchange.deployment import Deployment, PlacedQuery
from muntin.spark.exchange.messages import from_blob
from muntin.spark.partition.global_stage_log import StageLog
from muntin.spark.storage import Storage

FEW = 20_000
"""Changes beyond twice the rows left of them that may be kept before they are replaced."""


class _Operators:
    """The operators above all parts: in the place of leaves, the changes of parts are given."""

    def __init__(self, query: Query, tables: Mapping[str, pa.Table], duck: Duck) -> None:
        evaluator = Evaluator(duck)
        self._query = query
        self._operator = PipelineOperator(query, tables, evaluator)
        self.output = PipelineOutput(query, evaluator, duck)
        self._initial = self.output.take(self._operator.begin(), settled=False)

    def take(
        self, changes: Sequence[Changes], first: int | None, closed: int | None
    ) -> list[pa.Table]:
        """Process the changes of parts, and return results.

        ``first`` is the first instant, ``closed`` the one that all parts have reached.
        """
        tables, self._initial = self._initial, []
        shown = None
        snapshot = self._query.emit is Emit.SNAPSHOT
        if snapshot:
            self.output.begin(first)
        elif closed is not None:
            shown = self.output.first_closed(first, closed)
        if any(len(part) for part in changes) or shown is not None:
            found = self._operator.run(changes)
            tables += self.output.take(found, settled=self._operator.tidy, first=shown)
        if snapshot and closed is not None:
            tables += self.output.show(closed)
        return tables

    @property
    def following(self) -> int | None:
        """Return the first instant of the results, once out; of EMIT SNAPSHOT, the next one."""
        return self.output.following

    def resume(self, changes: Sequence[Changes], following: int | None) -> None:
        """Continue after the last batch, from the net changes so far; results are known."""
        self.take(changes, None, None)
        self.output.resume(following)


class GlobalStage:
    """The global stage of one query; ``rows`` is the number of rows it has of all parts.

    Entries of the ``log`` before the batch ``obsolete`` are not needed any more. The driver deletes
    them, see :mod:`muntin.spark.storage.fence`.
    """

    def __init__(
        self, placed: PlacedQuery, tables: Mapping[str, pa.Table], storage: Storage, duck: Duck
    ) -> None:
        assert placed.distribution.last is not None, "made for queries that have one"
        prepare_part("pipelines")
        self.query = placed.distribution.last
        self._parts = placed.parts
        self._tables = tables
        self._duck = duck
        self.log = StageLog(storage)
        self.obsolete: int | None = None
        self._operators: _Operators | None = None
        self._version = -1
        self._whole: int | None = None
        """The batch of the last complete entry."""
        self._weight = self.rows = 0

    @classmethod
    def of(
        cls, placed: PlacedQuery, deployment: Deployment, storage: Storage, duck: Duck
    ) -> GlobalStage:
        """Return the global stage of a query of a deployment, with its log in a storage."""
        stored = {source.relation for source in placed.query.sources if source.stored}
        tables = {name: from_blob(deployment.tables[name]) for name in stored}
        return cls(placed, tables, storage, duck)

    def run(
        self, batch: int, found: Mapping[str, Sequence[pa.Table]], clock: Sequence[pa.Table]
    ) -> pa.Table:
        """Return the results of a batch, and make its changes durable.

        ``found`` has the changes of parts by name, ``clock`` the clocks of partitions.
        """
        if self._operators is None or self._version >= batch:
            self.load(batch)
        # If this fails, it has to be rebuilt.
        operators, self._operators = self._operators, None
        assert operators is not None, "it was loaded"
        tables = [changes_of(part, found) for part in self._parts]
        before = operators.following
        results = operators.take([_changes(table) for table in tables], *_times(clock))
        self._note(batch, tables, operators.following, changed=before != operators.following)
        self._operators, self._version = operators, batch
        return pa.concat_tables([self.query.output_schema.empty_table(), *results])

    def prepare(self, batch: int) -> None:
        """Load the state before a batch; if that fails, :meth:`run` raises for this query alone."""
        try:
            self.load(batch)
        except (CheckpointError, OSError):
            raise
        except Exception:  # noqa: BLE001 (raised again by `run`)
            self._operators = None

    def load(self, batch: int) -> None:
        """Build the state before a batch."""
        entries = self.log.load(batch)
        self._operators = _Operators(self.query, self._tables, self._duck)
        self._whole, self._weight, self.rows = None, 0, 0
        if not entries:
            return
        tables = net([entry.tables() for entry in entries], self._duck)
        self._whole = entries[0].batch
        self._weight = sum(len(table) for entry in entries for table in entry.tables())
        self.rows = sum(map(len, tables))
        self._operators.resume([_changes(table) for table in tables], entries[-1].next)

    def _note(
        self, batch: int, tables: list[pa.Table], following: int | None, *, changed: bool
    ) -> None:
        """Write the changes of a batch, or the rows left of all changes once those are fewer."""
        self.obsolete = self._whole
        came = sum(map(len, tables))
        if not (came or changed or self._whole is None):
            return
        self._weight += came
        self.rows += sum(int(_changes(table).signs.sum()) for table in tables)
        whole = self._whole is None or self._weight > 2 * self.rows + FEW
        if whole and self._whole is not None:
            tables = net([*(entry.tables() for entry in self.log.load(batch)), tables], self._duck)
            self._weight = self.rows
        self.log.write(batch, tables, following, whole=whole)
        self._whole = batch if whole else self._whole


def changes_of(part: Query, found: Mapping[str, Sequence[pa.Table]]) -> pa.Table:
    """Return the changes of a part."""
    return pa.concat_tables([part.output_schema.empty_table(), *found.get(part.name, ())])


def net(entries: Sequence[Sequence[pa.Table]], duck: Duck) -> list[pa.Table]:
    """Return the rows that are left of changes, part by part."""
    found = []
    evaluator = Evaluator(duck)
    for tables in zip(*entries, strict=True):
        table = pa.concat_tables(tables)
        # Changes are sorted by time; the files of earlier batches have earlier times.
        order = np.argsort(table.column("_ts").cast(pa.int64()).to_numpy(), kind="stable")
        table = table.take(pa.array(order))
        found.append(table.take(pa.array(left_of(_changes(table), evaluator))))
    return found


def _changes(table: pa.Table) -> Changes:
    """Return results of parts as changes in the order of time."""
    signs = np.where(pc.equal(table.column("_op"), "+").to_numpy(), 1, -1)
    times = table.column("_ts").cast(pa.int64()).to_numpy()
    columns = table.select(range(2, table.num_columns))
    if len(times) > 1 and (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        return Changes(columns.take(pa.array(order)), times[order], signs[order])
    return Changes(columns, times, signs)


def _times(clock: Sequence[pa.Table]) -> tuple[int | None, int | None]:
    """Return the first instant and the one that is closed."""
    if not clock:
        return None, None
    clocks = pa.concat_tables(clock)
    return pc.min(clocks.column("first")).as_py(), pc.max(clocks.column("closed")).as_py()
