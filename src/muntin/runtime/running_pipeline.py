"""A pipeline while it runs: leaves, each over a join, the operators above them, and the output."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.model.clock import BEFORE_ALL
from muntin.operators.net_changes import first_instant, left_of
from muntin.operators.operator import TimedOperator
from muntin.operators.pipeline import Drive, PipelineOperator
from muntin.operators.signed import BEGINNING, Changes, merged
from muntin.plan.nodes import Scan
from muntin.plan.query import Emit, Query
from muntin.runtime.metrics import BUFFERS, ResponseTimes
from muntin.runtime.pipeline_output import PipelineOutput
from muntin.runtime.plan_stats import join_totals
from muntin.runtime.running_leaf import RunningLeaf
from muntin.runtime.table_change import TableChange, by_table


class RunningPipeline:
    """The operators of a pipeline above its leaves; ``part``: of a pipeline that is distributed."""

    def __init__(  # noqa: PLR0913
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
        self.weight = Fraction(1)
        """How much it counts for the scheduler of its joins."""
        self.failure: Exception | None = None
        """The failure after which it produces no more results."""
        self.evaluator = Evaluator(duck)
        self._tables = tables
        self._operator = self._make(drive)
        self.output = PipelineOutput(query, self.evaluator, duck, part=part)
        self._columns = query.root.schema
        self.pending: list[TableChange] = []
        """Changes of stored tables that are not shown yet."""
        self.seen: int | None = None
        """The first instant since registration: of a row of its streams, or of ``advance``."""

    def _make(self, drive: Drive | None) -> PipelineOperator:
        return PipelineOperator(self.query, self._tables, self.evaluator, drive)

    def let_go(self) -> None:
        """Release the operators that it shares with others."""
        self._operator.let_go()

    # -- results -----------------------------------------------------------------------------------

    def begin(self, advanced: int) -> list[pa.Table]:
        """Return the results from before any row, once; event time was advanced to ``advanced``."""
        tables = self.output.take(self._operator.begin(), settled=False)
        if self.leaves:
            self.output.skip_empty_beginning()
        self._see(advanced)
        if (first := self.output.first_closed(self.seen, self._reached(advanced))) is not None:
            tables += self.output.take(self.output.nothing(), settled=True, first=first)
        return self._counted(tables)

    def catch_up(self, closed: int, turn: int, advanced: int) -> Iterator[pa.Table]:
        """Process the changes of the leaves, which have all reached ``closed``; yield results.

        In one ``turn`` all pipelines that have anything in common are called. ``advanced`` is the
        instant to which event time was advanced.
        """
        self._see(advanced)
        taken = [leaf.take(turn, closed) for leaf in self.leaves]
        changes = [found for found, _ in taken]
        came = any(len(part) for part in changes)
        if came and self.output.begun is None:
            self.output.begin(first_instant(changes, self.evaluator))
        every = self.query.every
        now = closed if every is None else closed // every * every
        self._operator.move(now)
        came |= self._change_tables(now)
        if came or self._operator.is_due(now, turn):
            found = self._operator.run(changes, now, turn)
            first = self.output.first_closed(self.seen, self._reached(closed))
            yield from self._counted(
                self.output.take(found, settled=self._operator.tidy, first=first)
            )
            moment = time.monotonic()
            for _, noted in taken:
                for arrivals, count in noted:
                    self.response.add(moment, arrivals, count)
        elif (first := self.output.first_closed(self.seen, self._reached(closed))) is not None:
            yield from self._counted(
                self.output.take(self.output.nothing(), settled=True, first=first)
            )
        if self.query.emit is Emit.SNAPSHOT:
            for table in self.output.show(self._reached(closed)):
                yield from self._counted([table])

    def change_table(self, change: TableChange, closed: int) -> None:
        """Take a change of a stored table, which takes effect where the query has come to."""
        if any(source.relation == change.table for source in self.query.sources):
            self.pending.append(change.shown(closed, self.query.every))

    def _change_tables(self, now: int) -> bool:
        """Give the operators the changes of tables up to an instant; return whether there are."""
        due = [one for one in self.pending if one.at <= max(now, BEGINNING)]
        self.pending = [one for one in self.pending if one.at > max(now, BEGINNING)]
        self._operator.change_tables(by_table(due))
        return bool(due)

    def _counted(self, tables: list[pa.Table]) -> list[pa.Table]:
        self.rows_out += sum(map(len, tables))
        return tables

    def _reached(self, closed: int) -> int:
        """Return the instant up to which results are out, given the one that is closed."""
        return min(closed, self._operator.clock) if self._operator.is_triggered else closed

    def _see(self, advanced: int) -> None:
        """Note the first instant since registration; rows come in order, so it never changes."""
        if self.seen is None:
            times = [time for leaf in self.leaves if (time := leaf.first_time()) is not None]
            times += [advanced] if advanced > BEFORE_ALL else []
            self.seen = min(times, default=None)

    def release(self) -> None:
        """Let the next call of :meth:`catch_up` return what waits for rows to come."""
        self._operator.release()

    @property
    def released(self) -> int | None:
        """Return the instant up to which all results are out where they may be late; else None."""
        return self._operator.clock if self._operator.is_triggered else None

    @property
    def begun(self) -> int | None:
        """Return the instant of a leaf's first change; of EMIT SNAPSHOT, of the next snapshot."""
        return self.output.begun

    def answer(self) -> pa.Table:
        """Return the answer now: the same operators, made again, over the leaves' answers."""
        operator = self._make(Drive(answers=self._operator))
        begun = operator.begin()
        operator.change_tables(by_table(one.undone() for one in self.pending))
        found = operator.run([Changes.coming(leaf.answer(), 0) for leaf in self.leaves])
        changes = merged([begun, found], self._columns)
        rows = changes.columns.take(pa.array(left_of(changes, self.evaluator)))
        return self.output.shown(rows)

    def keepers(self, stream: str) -> list[TimedOperator]:
        """Return the operators that keep rows of a stream which are older than windows reach."""
        return [
            timed
            for node, timed in self._operator.timed()
            if any(isinstance(scan, Scan) and scan.relation == stream for scan in node.walk())
        ]

    # -- rows from before its registration ---------------------------------------------------------

    def came_before(self) -> dict[str, int]:
        """Return how many of the rows that are held came before the query, for each stream."""
        return {
            stream: count for leaf in self.leaves for stream, count in leaf.came_before().items()
        }

    def let_come_before(self, counts: Mapping[str, int]) -> None:
        """Treat the next rows of each stream as older than the query; none has come yet."""
        for leaf in self.leaves:
            leaf.let_come_before(counts)

    # -- inspection --------------------------------------------------------------------------------

    def take_response_times(self) -> ResponseTimes:
        """Return the response times since the last call; those of :meth:`stats` start again."""
        taken, self.response = self.response, ResponseTimes()
        return taken

    def buffers(self) -> dict[str, int]:
        """Return the buffers of [Hammad03], in rows, of all leaves."""
        found = Counter(dict.fromkeys(BUFFERS, 0))
        for leaf in self.leaves:
            found.update(leaf.buffers())
        return dict(found)

    def queues(self) -> dict[str, int]:
        """Return the same without the rows in windows, which take time to count."""
        found: Counter[str] = Counter()
        for leaf in self.leaves:
            found.update(leaf.queues())
        return {name: found[name] for name in BUFFERS if name != "join"}

    def state(self) -> list[tuple[str, int, int]]:
        """Return for each operator its name, the number of its entries, and its bytes."""
        return [
            (type(node).__name__, entries, size) for node, entries, size in self._operator.state()
        ]

    def shared(self) -> list[bool]:
        """Return for each operator whether it also runs for other pipelines."""
        return self._operator.shared()

    def nbytes(self) -> int:
        """Return the bytes of operators, a part of those that are shared, and of snapshots."""
        return self._operator.nbytes() + self.output.nbytes()

    def stats(self) -> dict[str, object]:
        """Return all counts, under the keys of a query that is a single join.

        ``leaves`` has the counts of each join below; the other counts of joins are their totals.
        """
        state = self.state()
        below = join_totals(self.query.name, self.leaves)
        return {
            **below,
            "query": self.query.name,
            "rows_out": self.rows_out,
            "weight": float(self.weight),
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
