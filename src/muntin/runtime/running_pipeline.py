"""A pipeline while it runs: its leaves over joins of their own, the operators above them, and results not yet taken."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.model.clock import BEFORE_ALL
from muntin.operators.consolidate import consolidate
from muntin.operators.initial_results import Beginning
from muntin.operators.join import Matches
from muntin.operators.net_changes import left_of
from muntin.operators.pipeline import Drive, PipelineOperator
from muntin.operators.result import sign_column, time_column
from muntin.operators.signed import Changes, merged
from muntin.operators.snapshots import Snapshots
from muntin.plan.query import Emit, Query
from muntin.runtime.metrics import BUFFERS, ResponseTimes
from muntin.runtime.plan_stats import join_totals
from muntin.runtime.result_expiry import signed_rows
from muntin.runtime.running_join import RunningJoin
from muntin.runtime.running_query import RunningQuery

Arrivals: TypeAlias = tuple[npt.NDArray[np.float64] | float, int]
"""When rows came, and how many they were."""


class RunningLeaf(RunningQuery):
    """A join below a pipeline: hands on signed rows as they are; only the pipeline's result is consolidated."""

    def __init__(self, query: Query, join: RunningJoin, duck: Duck) -> None:
        super().__init__(query, join, duck)
        self._waiting: list[Changes] = []
        self._arrivals: list[Arrivals] = []
        self._turn = -1
        self._taken: tuple[Changes, list[Arrivals]] = Changes.none(self._columns), []

    @property
    def owner(self) -> str:
        """The name of the pipeline it was made for; its own has a number added."""
        return self.query.name.rpartition("/")[0]

    def is_fresh(self) -> bool:
        """Whether no row has come since it began, so that it has found nothing yet."""
        return all(state.log.next == since for state, since in self._since.items())

    def first_time(self) -> int | None:
        """Return the time of the first row that came after the query; asked for before logs are trimmed."""
        times = [
            state.log.time_at(since)
            for state, since in self._since.items()
            if state.log.next > since
        ]
        return min(times, default=None)

    def taken(self, matches: Matches) -> pa.Table | None:
        """Keep the changes of matches for the pipeline."""
        matches = self._maker.passing(self._since_registered(matches))
        if len(matches):
            self._note_arrivals(matches)
            if self._expiry is not None:
                self._remember(self._expiry, matches)
            else:
                self._waiting.append(signed_rows(matches, self._maker.select, self.query.every))
        return None

    def _note_arrivals(self, matches: Matches) -> None:
        arrivals, count = matches.arrivals, len(matches)
        if matches.signs is not None:
            added = matches.signs > 0
            count = int(added.sum())
            arrivals = arrivals if isinstance(arrivals, float) else arrivals[added]
        self._arrivals.append((arrivals, count))

    @property
    def remembers(self) -> bool:
        """Yes: so do the operators above it."""
        return True

    def changes(self) -> pa.Table | None:
        """Nothing: the pipeline takes them by :meth:`take`."""
        if self._expiry is not None:
            self._waiting.append(self._expiry.rows(self.join.now, self._maker.select))
        return None

    def take(self, turn: int) -> tuple[Changes, list[Arrivals]]:
        """The changes since the turn before, when the rows behind them came, and how many they were; once and for all in a turn."""
        if self._turn != turn:
            self._taken = self._changes_since(), self._arrivals
            self._arrivals = []
            self._turn = turn  # last: a pipeline that comes after a failure fails as well
        return self._taken

    def _changes_since(self) -> Changes:
        found = merged(self._waiting, self._columns)
        if len(found) and (found.times[1:] < found.times[:-1]).any():
            order = np.argsort(found.times, kind="stable")
            ends = None if found.ends is None else found.ends[order]
            found = Changes(
                found.columns.take(pa.array(order)), found.times[order], found.signs[order], ends
            )
        self._waiting.clear()
        return found


class RunningPipeline:
    """A pipeline over leaves that run in joins of their own; begins with what is there before any row has come.

    That is a part of the results from the first instant on. A ``part`` of a distributed pipeline
    sends it at ``BEGINNING``: the first instant is known only where all parts come together.
    """

    def __init__(  # noqa: PLR0913 - what it reads, what it shares, and whether it is whole
        self,
        query: Query,
        leaves: Sequence[RunningLeaf],
        tables: Mapping[str, pa.Table],
        duck: Duck,
        drive: Drive | None = None,
        *,
        part: bool = False,
    ) -> None:
        self.query = query
        self.leaves = leaves
        self.response = ResponseTimes()
        self.rows_out = 0
        self.keeps = True
        """Whether results are kept for poll."""
        self.failure: Exception | None = None
        """Why it makes no more results, until the engine suspends it."""
        self.evaluator = Evaluator(duck)
        self._duck = duck
        self._tables = tables
        self._operator = self._make(drive)
        self._columns = pa.schema(list(query.output_schema)[2:])
        self._results: list[pa.Table] = []
        self._snapshots = Snapshots(self._columns, self.evaluator)
        self._next: int | None = None
        self.seen: int | None = None
        """The first instant since the query was registered: of a row of its streams, or of ``advance``."""
        self._first: int | None = None
        self._beginning = None if part or query.emit is Emit.SNAPSHOT else Beginning(duck)
        self._keep(self._operator.begin(), settled=False)
        if leaves and self._beginning is not None and self._beginning.is_empty():
            self._beginning = None

    def _make(self, drive: Drive | None) -> PipelineOperator:
        return PipelineOperator(self.query, self._tables, self.evaluator, drive)

    def let_go(self) -> None:
        """Be no more."""
        self._operator.let_go()

    # -- results -----------------------------------------------------------------------------------

    def catch_up(self, closed: int, turn: int, advanced: int) -> Iterator[pa.Table]:
        """Take what the leaves have found, and yield the results; all leaves have come to the same instant.

        In one ``turn`` all pipelines are called that have anything in common. ``advanced`` is the
        instant to which event time was advanced.
        """
        self._see(advanced)
        taken = [leaf.take(turn) for leaf in self.leaves]
        changes = [found for found, _ in taken]
        came = any(len(part) for part in changes)
        if came and self._next is None:
            self._next = min(int(part.times[0]) for part in changes if len(part))
        if came or self._operator.is_probing:
            now = (
                closed
                if self.query.every is None
                else closed // self.query.every * self.query.every
            )
            found = self._operator.run(changes, now, turn)
            yield from self._keep(
                found,
                settled=self._operator.tidy,
                first=self._first_closed(self.seen, self._reached(closed)),
            )
            moment = time.monotonic()
            for _, noted in taken:
                for arrivals, count in noted:
                    self.response.add(moment, arrivals, count)
        elif (first := self._first_closed(self.seen, self._reached(closed))) is not None:
            yield from self._keep(Changes.none(self._columns), settled=True, first=first)
        if self.query.emit is Emit.SNAPSHOT:
            yield from self._show(self._reached(closed))

    def begin(self, advanced: int) -> None:
        """Send what is there before any row, if event time was advanced before the query was registered."""
        self._see(advanced)
        if (first := self._first_closed(self.seen, self._reached(advanced))) is not None:
            self._keep(Changes.none(self._columns), settled=True, first=first)

    def _reached(self, closed: int) -> int:
        """Return the instant up to which results are out, given the one that is closed."""
        return min(closed, self._operator.clock) if self._operator.is_triggered else closed

    def _see(self, advanced: int) -> None:
        """Note the first instant since the query was registered; rows are released in order, so it never changes."""
        if self.seen is None:
            times = [time for leaf in self.leaves if (time := leaf.first_time()) is not None]
            times += [advanced] if advanced > BEFORE_ALL else []
            self.seen = min(times, default=None)

    def _first_closed(self, seen: int | None, closed: int) -> int | None:
        """Return the first instant at which results show, if it is closed and nothing has shown yet."""
        if self._beginning is None or seen is None:
            return None
        every = self.query.every
        first = seen if every is None else -(-seen // every) * every
        return first if first <= closed else None

    @property
    def released(self) -> int | None:
        """The instant up to which all results are out where they come late; None where they never do."""
        return self._operator.clock if self._operator.is_triggered else None

    @property
    def begun(self) -> int | None:
        """The instant of the first change of a leaf; of EMIT SNAPSHOT, that of the next one to be shown."""
        return self._next

    def _keep(self, changes: Changes, *, settled: bool, first: int | None = None) -> list[pa.Table]:
        """Keep changes as results in the form that the query asks for; ``first`` is the first instant, once it is closed."""
        snapshot = self.query.emit is Emit.SNAPSHOT
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
        if self.query.emit is Emit.INSERTS:
            table = table.filter(pc.equal(table.column("_op"), "+"))
        return self._send(table)

    def _send(self, table: pa.Table) -> list[pa.Table]:
        if not len(table):
            return []
        self.rows_out += len(table)
        if self.keeps:
            self._results.append(table)
        return [table]

    def _table(self, changes: Changes) -> pa.Table:
        columns = [
            sign_column(changes.signs.astype(np.int8), len(changes)),
            time_column(changes.times),
            *changes.columns.columns,
        ]
        return pa.table(columns, schema=self.query.output_schema)

    def _show(self, closed: int) -> Iterator[pa.Table]:
        """The whole answer at each multiple of EVERY that is closed, from the first one at which a leaf has had a row on."""
        every = self.query.every
        assert every is not None, "snapshots come with EVERY"
        if self._next is None or self._next > closed:
            return
        for rows, times in self._snapshots.show(self._next, every, closed):
            columns = [sign_column(None, len(rows)), time_column(times), *rows.columns]
            yield from self._send(pa.table(columns, schema=self.query.output_schema))
        self._next += ((closed - self._next) // every + 1) * every

    def _net(self, changes: Changes) -> pa.Table:
        """The rows that are left of changes, in the order in which they came."""
        return changes.columns.take(pa.array(left_of(changes, self.evaluator)))

    def take_back(self, tables: Sequence[pa.Table]) -> None:
        """Let go of results that were just made and are known already."""
        for table in tables:
            self._results.pop()
            self.rows_out -= len(table)

    def poll(self) -> pa.Table:
        """The results since the last poll."""
        results, self._results = self._results, []
        return (
            results[0]
            if len(results) == 1
            else pa.concat_tables([self.query.output_schema.empty_table(), *results])
        )

    def put_back(self, polled: pa.Table) -> None:
        """Keep results that :meth:`poll` took but nobody got."""
        self._results.insert(0, polled)

    def answer(self) -> pa.Table:
        """The answer now: the same operators, made anew, over the answers of the leaves."""
        operator = self._make(None)
        begun = operator.begin()
        found = operator.run([Changes.coming(leaf.answer(), 0) for leaf in self.leaves])
        return self._net(merged([begun, found], self._columns))

    # -- what came before it -----------------------------------------------------------------------

    def came_before(self) -> dict[str, int]:
        """How many of the rows that are held came before the query, for each stream it reads."""
        return {
            stream: count for leaf in self.leaves for stream, count in leaf.came_before().items()
        }

    def let_come_before(self, counts: Mapping[str, int]) -> None:
        """Let so many rows of each stream count as older than the query; none has come yet."""
        for leaf in self.leaves:
            leaf.let_come_before(counts)

    # -- looking -----------------------------------------------------------------------------------

    def take_response_times(self) -> ResponseTimes:
        """The response times since the last call; those of :meth:`stats` begin anew."""
        taken, self.response = self.response, ResponseTimes()
        return taken

    def buffers(self) -> dict[str, int]:
        """Paper 1's buffers, in rows, of all leaves; what is not polled yet is the pipeline's."""
        found = Counter(
            {**dict.fromkeys(BUFFERS, 0), "output": sum(len(table) for table in self._results)}
        )
        for leaf in self.leaves:
            found.update(leaf.buffers())
        return dict(found)

    def state(self) -> list[tuple[str, int, int]]:
        """For each operator: what it is, how many entries it keeps, and how many bytes."""
        return [
            (type(node).__name__, entries, size) for node, entries, size in self._operator.state()
        ]

    def shared(self) -> list[bool]:
        """For each operator whether it is run for other pipelines too."""
        return self._operator.shared()

    def nbytes(self) -> int:
        """Bytes of its operators, of those that others have too a part, and of an answer that is shown whole."""
        return self._operator.nbytes() + (
            self._snapshots.nbytes() if self.query.emit is Emit.SNAPSHOT else 0
        )

    def stats(self) -> dict[str, object]:
        """Everything it counts, under the keys of a query that is a join alone.

        ``leaves`` has what each join below it counts; the other counts of joins are totals of those.
        """
        state = self.state()
        below = join_totals(self.query.name, self.leaves)
        return {
            **below,
            "query": self.query.name,
            "rows_out": self.rows_out,
            "rows_waiting_for_poll": sum(len(table) for table in self._results),
            "response_seconds": self.response.stats(),
            "buffers": self.buffers(),
            "state_bytes": below["state_bytes"] + sum(size for _, _, size in state),
            "expression_failures": below["expression_failures"] + self.evaluator.failures,
            "last_expression_failure": self.evaluator.last_failure
            or below["last_expression_failure"],
            "operators": [
                {"operator": name, "entries": entries, "bytes": size}
                for name, entries, size in state
            ],
            "leaves": [leaf.stats() for leaf in self.leaves],
        }
