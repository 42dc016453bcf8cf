"""The results of a pipeline in the form that its query asks for.

Changes, inserts, snapshots, or the last answer of each window.

Results that exist before any row has come, such as a COUNT of 0, take effect at the first instant
since the query was registered. They are held until that instant is closed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.model.arrays import Integers
from muntin.operators.consolidate import consolidate
from muntin.operators.final_rows import final_rows
from muntin.operators.initial_results import Beginning
from muntin.operators.order_words import sort_rows
from muntin.operators.signed import Changes
from muntin.operators.snapshots import Snapshots
from muntin.plan.query import Emit, Query
from muntin.state.columns import sign_column, time_column


class PipelineOutput:
    """Makes the result tables of one pipeline from the changes of its operators.

    A ``part`` of a distributed pipeline emits its initial results at ``BEGINNING``: only the global
    stage, where all parts come together, has the first instant.
    """

    def __init__(
        self, query: Query, evaluator: Evaluator, duck: Duck, *, part: bool = False
    ) -> None:
        self._query = query
        self._duck = duck
        self._columns = query.root.schema
        self._schema = pa.schema([*list(query.output_schema)[:2], *self._columns])
        self._snapshots = Snapshots(self._columns, evaluator)
        self._next: int | None = None
        self._first: int | None = None
        self._beginning = None if part or query.emit is Emit.SNAPSHOT else Beginning(duck)

    @property
    def begun(self) -> int | None:
        """Return the instant of the first change; of EMIT SNAPSHOT, that of the next snapshot."""
        return self._next

    @property
    def following(self) -> int | None:
        """Return the first instant of the results, once out; of EMIT SNAPSHOT, the next one."""
        return self._next if self._query.emit is Emit.SNAPSHOT else self._first

    def resume(self, following: int | None) -> None:
        """Continue after results that were emitted before, where :attr:`following` had a value."""
        if self._query.emit is Emit.SNAPSHOT:
            self._next = following
        elif following is not None:
            self._beginning, self._first = None, following

    def begin(self, instant: int | None) -> None:
        """Set the instant of the first change, unless it is set."""
        self._next = instant if self._next is None else self._next

    def skip_empty_beginning(self) -> None:
        """Stop waiting for the first instant if there are no initial results."""
        if self._beginning is not None and self._beginning.is_empty():
            self._beginning = None

    def first_closed(self, seen: int | None, closed: int) -> int | None:
        """Return the first instant of results, if it is closed and its results are still held."""
        if self._beginning is None or seen is None:
            return None
        every = self._query.every
        first = seen if every is None else -(-seen // every) * every
        return first if first <= closed else None

    def take(self, changes: Changes, *, settled: bool, first: int | None = None) -> list[pa.Table]:
        """Return the results of changes; ``settled`` ones need no consolidation.

        ``first`` is the first instant, in the call in which it is closed.
        """
        snapshot = self._query.emit is Emit.SNAPSHOT
        if snapshot and (settled or changes.numbers is not None):
            self._snapshots.take(changes)
            return []
        table = self._table(changes)
        table = table if settled else consolidate(table, self._duck)
        if snapshot:
            signs = np.where(pc.equal(table.column("_op"), "+").to_numpy(), 1, -1)
            times = table.column("_ts").cast(pa.int64()).to_numpy()
            self._snapshots.take(Changes(table.drop_columns(["_op", "_ts"]), times, signs))
            return []
        if self._beginning is not None:
            table = self._beginning.hold(table)
            if first is not None:
                table = self._beginning.release(table, first)
                self._beginning, self._first = None, first
        if self._query.emit is Emit.INSERTS:
            table = table.filter(pc.equal(table.column("_op"), "+"))
        elif self._query.closes is not None:
            table = final_rows(table, self._query.closes, self._query.output_schema)
        return [table] if len(table) else []

    def _table(self, changes: Changes) -> pa.Table:
        columns = [
            sign_column(changes.signs.astype(np.int8), len(changes)),
            time_column(changes.times),
            *changes.columns.columns,
        ]
        return pa.table(columns, schema=self._schema)

    def show(self, closed: int) -> Iterator[pa.Table]:
        """Yield the answer at each multiple of EVERY that is closed, from the first change on."""
        every = self._query.every
        assert every is not None, "snapshots come with EVERY"
        if self._next is None or self._next > closed:
            return
        for answers, times in self._snapshots.show(self._next, every, closed):
            rows = self.shown(answers, times)
            columns = [sign_column(None, len(rows)), time_column(times), *rows.columns]
            table = pa.table(columns, schema=self._query.output_schema)
            if len(table):
                yield table
        self._next += ((closed - self._next) // every + 1) * every

    def shown(self, rows: pa.Table, times: Integers | None = None) -> pa.Table:
        """Return the rows of answers as users see them: each answer in its order, if it has one."""
        if self._query.sort:
            rows = sort_rows(rows, self._query.sort, times)
        return rows.select(range(rows.num_columns - self._query.hidden))

    def nothing(self) -> Changes:
        """Return no changes, in the columns of the query."""
        return Changes.none(self._columns)

    def nbytes(self) -> int:
        """Return the bytes of the answer that EMIT SNAPSHOT keeps."""
        return self._snapshots.nbytes() if self._query.emit is Emit.SNAPSHOT else 0
