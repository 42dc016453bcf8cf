"""A running query: it turns matches of its join into results.

Residual predicates come first, then the select list, gathered once and late. Only the columns that
residuals read are gathered for all candidates; the others only for those that pass. Plain columns
go straight from the stream log to the result; DuckDB computes expressions.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.expressions.predicate_order import MeasuredPredicate, PredicateOrder
from muntin.model.window import window_size
from muntin.operators.consolidate import consolidate
from muntin.operators.join import Matches
from muntin.operators.join.snapshot import answer_of
from muntin.plan.expression import POSITION, ColumnRef, Expression
from muntin.plan.join import JoinPlan
from muntin.plan.query import Emit, Query
from muntin.planner.sharing_groups import Member
from muntin.planner.strategies import drive_strategy
from muntin.runtime.made_matches import MadeMatches
from muntin.runtime.metrics import ResponseTimes
from muntin.runtime.own_ends import OwnEnds
from muntin.runtime.result_expiry import EXPIRIES, ResultExpiry
from muntin.runtime.running_join import RunningJoin
from muntin.state.columns import sign_column, time_column

Integers = npt.NDArray[np.int64]


class Gatherer(Protocol):
    """Where the rows of a source are: a stream log or a stored table."""

    def gather(self, positions: Integers, columns: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return the values of columns at positions."""


class ResultMaker:
    """Makes the result rows of one query.

    ``select`` and ``residuals`` read the sources of the join, whose ``rows`` these are.
    """

    def __init__(
        self,
        query: Query,
        select: Sequence[Expression],
        residuals: Sequence[Expression],
        rows: Sequence[Gatherer],
        evaluator: Evaluator,
    ) -> None:
        self._every = query.every
        self._schema = query.output_schema
        self._columns = pa.schema(list(self._schema)[2:])
        self._select = select
        self._selected = _by_source(select)
        self.residuals = PredicateOrder(residuals, evaluator)
        self._tested = _by_source(residuals)
        self._rows = rows
        self._evaluator = evaluator

    def make(self, matches: Matches) -> pa.Table:
        """Return the result rows of matches that pass, in their order."""
        times = (
            matches.times if self._every is None else -(-matches.times // self._every) * self._every
        )
        return self._table(matches.signs, times, self._values(matches))

    def table(self, signs: Integers, times: Integers, rows: pa.Table) -> pa.Table:
        """Return the result rows of changes of rows."""
        return self._table(signs.astype(np.int8), times, rows.columns)

    def _table(
        self, signs: npt.NDArray[np.int8] | None, times: Integers, values: list[pa.ChunkedArray]
    ) -> pa.Table:
        return pa.table(
            [sign_column(signs, len(times)), time_column(times), *values], schema=self._schema
        )

    def select(self, matches: Matches) -> pa.Table:
        """Return the columns of the select list, of matches that pass."""
        return pa.table(self._values(matches), schema=self._columns)

    def passing(self, matches: Matches) -> Matches:
        """Return the matches that satisfy the residual predicates."""
        if not self.residuals.predicates:
            return matches
        keep = self.residuals.holds(self._gather(self._tested, matches))
        return matches if keep.all() else matches.where(keep)

    def _values(self, matches: Matches) -> list[pa.ChunkedArray]:
        return self._evaluator.columns(self._select, self._gather(self._selected, matches))

    def _gather(self, by_source: Mapping[int, Sequence[ColumnRef]], matches: Matches) -> pa.Table:
        """Return columns of each source under their flat names."""
        columns: dict[str, pa.ChunkedArray] = {}
        for source, wanted in by_source.items():
            positions = matches.positions[source]
            own = [reference for reference in wanted if reference.column != POSITION]
            values = self._rows[source].gather(positions, [reference.column for reference in own])
            columns.update(zip((reference.flat for reference in own), values, strict=True))
            if len(own) < len(wanted):
                columns[ColumnRef(source, POSITION).flat] = pa.chunked_array(
                    [pa.array(np.array(positions))]
                )
        if not columns:
            return pa.table({"rows": np.zeros(len(matches), np.int8)})
        return pa.table(columns)


def _by_source(expressions: Iterable[Expression]) -> dict[int, list[ColumnRef]]:
    """Return the columns that expressions read, source by source."""
    by_source: dict[int, list[ColumnRef]] = {}
    for reference in sorted(
        {reference for expression in expressions for reference in expression.references}
    ):
        by_source.setdefault(reference.source, []).append(reference)
    return by_source


class RunningQuery:
    """A query over a join that it may share; it can run once it is bound by :meth:`bind`."""

    def __init__(self, query: Query, join: RunningJoin, duck: Duck) -> None:
        self.query = query
        self.join = join
        self.response = ResponseTimes()
        self.rows_out = 0
        self.weight = Fraction(1)
        """How much it counts for the scheduler of its join."""
        self.failure: Exception | None = None
        """Why it makes no more results, until the engine suspends it."""
        self._duck = duck
        self._since = {state: state.log.next for state, _ in join.cursors.positions()}
        self._changes: list[pa.Table] = []
        self._columns = pa.schema(list(query.output_schema)[2:])
        self.expiry: ResultExpiry | None = None
        """Keeps results and retracts them where the join does not."""
        if query.emit is Emit.CHANGES and query.retracts and not join.plan.retracting:
            self.expiry = EXPIRIES[drive_strategy(join.settings)](query)
        self._own_ends = OwnEnds(query, join)
        self.only: MadeMatches | None = None
        """While state is filled again, the matches that were made before; None: all."""
        self._binding: tuple[object, ...] = ()

    def bind(self, member: Member | None) -> None:
        """Bind to a member of the join's group as it is now; None: the join has no other query."""
        join = self.join
        residuals = (
            join.plan.residuals if member is None else (*join.plan.residuals, *member.residuals)
        )
        select = self.query.select if member is None else member.select
        binding = select, residuals, join.rows
        if binding != self._binding:
            self._maker = ResultMaker(
                self.query,
                [column.expression for column in select],
                residuals,
                join.rows,
                join.evaluator,
            )
            self._binding = binding
        self.sizes = () if member is None else member.sizes
        limiting, fresh = join.plan.limiting, () if member is None else member.freshness
        self.fresher = () if limiting is None else _smaller(fresh, limiting.freshness)
        """Where its rows must be fresher than those of the join: pairs of source and age."""

    @property
    def narrow(self) -> tuple[tuple[int, int], ...]:
        """Return the windows that are smaller than the join's, as pairs of source and size."""
        largest = [window_size(source.window) for source in self.join.query.sources]
        return _smaller(self.sizes, largest)

    @property
    def reached(self) -> int:
        """Return the instant up to which it has got all matches."""
        return self.join.progress.reached(self.sizes)

    @property
    def owner(self) -> str:
        """Return the name of the query as users know it."""
        return self.query.name

    @property
    def plan(self) -> JoinPlan:
        """Return the plan of its join."""
        return self.join.plan

    # -- results -----------------------------------------------------------------------------------

    def taken(self, matches: Matches) -> pa.Table | None:
        """Return the results of matches inside the windows; changes wait for :meth:`changes`."""
        if self.query.emit is Emit.CHANGES or self.query.every is not None:
            matches = self._since_registered(matches)
        matches = self._maker.passing(matches)
        self.response.add(time.monotonic(), *matches.added())
        if self.expiry is not None:
            self._remember(self.expiry, matches)
            return None
        table = self._maker.make(matches)
        if self.query.emit is Emit.CHANGES:
            self._changes.append(table)
            return None
        return self._counted(table)

    def changes(self) -> pa.Table | None:
        """Return the changes since the last call, without those that cancel out."""
        if self.expiry is not None:
            found = self.expiry.changes(self.reached, self._maker.select)
            if len(found):
                self._changes.append(self._maker.table(found.signs, found.times, found.columns))
        if not self._changes:
            return None
        table = consolidate(pa.concat_tables(self._changes), self._duck)
        self._changes.clear()
        return self._counted(table)

    def release(self) -> None:
        """Let the next call of :meth:`changes` return what waits for rows to come."""
        if self.expiry is not None:
            self.expiry.release()

    @property
    def remembers(self) -> bool:
        """True if it keeps results, so rows cannot be stored without computing them."""
        return self.expiry is not None

    def _remember(self, expiry: ResultExpiry, matches: Matches) -> None:
        """Keep matches, with their ends, for the next call of :meth:`changes`."""
        sizes = self.sizes or [window_size(source.window) for source in self.query.sources]
        ends = self._own_ends.limit(self.join.distances.ends(matches, sizes), matches)
        expiry.take(matches, ends, self._maker.select)

    def _counted(self, table: pa.Table) -> pa.Table | None:
        if not len(table):
            return None
        self.rows_out += len(table)
        return table

    def _since_registered(self, matches: Matches) -> Matches:
        """Return matches with a row that came after the query was registered."""
        if self.only is not None:
            matches = self.only.of(matches)
        if not any(self._since.values()):
            return matches
        since = {state.stream.name: position for state, position in self._since.items()}
        new = np.zeros(len(matches), bool)
        for place, source in enumerate(self.join.query.sources):
            if not source.stored:
                new |= matches.positions[place] >= since[source.relation]
        return matches if new.all() else matches.where(new)

    def answer(self) -> pa.Table:
        """Return the select list over the rows inside their windows now."""
        parts = []
        for found in answer_of(self.join.operator):
            inside = self.join.distances.narrowing(self.join.now).apply(self.narrow, found)
            inside = self._own_ends.present(inside, self.join.now)
            parts.append(self._maker.select(self._maker.passing(self._since_registered(inside))))
        return pa.concat_tables([self._columns.empty_table(), *parts])

    # -- rows from before its registration ---------------------------------------------------------

    def came_before(self) -> dict[str, int]:
        """Return by stream how many of the rows that are held came before the query."""
        return {state.stream.name: state.log.rank(since) for state, since in self._since.items()}

    def let_come_before(self, counts: Mapping[str, int]) -> None:
        """Treat the next rows of each stream as older than the query; none has come yet."""
        self._since = {state: counts[state.stream.name] for state in self._since}

    # -- reports -----------------------------------------------------------------------------------

    def shares_with(self) -> Sequence[str]:
        """Return the names of the queries of its join, including this one."""
        return [member.query.name for member in self.join.members]

    def take_response_times(self) -> ResponseTimes:
        """Return the response times since the last call; those of :meth:`stats` begin again."""
        taken, self.response = self.response, ResponseTimes()
        return taken

    def buffers(self) -> dict[str, int]:
        """Return the buffers of [Hammad03] in rows: waiting, in windows, held back, not polled."""
        return {**self.queues(), "join": sum(self.join.state_rows().values())}

    def queues(self) -> dict[str, int]:
        """Return the same without the rows in windows, which take time to count."""
        work_queue = self.join.operator.tactic.stats().work_queue
        return {
            "input": sum(state.waiting() for state, _ in self.join.cursors.positions())
            + work_queue["rows_waiting"],
            "most_input": work_queue["most_rows_waiting"],
            "held": work_queue["results_held"],
            "most_held": work_queue["most_results_held"],
            "output": sum(map(len, self._changes)),
        }

    @property
    def without_effect(self) -> dict[str, str]:
        """Return the settings that have no effect on it, each with the reason."""
        join, found = self.join, self.join.metrics.without_effect
        reason = join.scheduling.weight_without_effect(join.plan, join.group)
        return {**found, "weight": reason} if self.weight != 1 and reason else found

    def measured_residuals(self) -> list[MeasuredPredicate]:
        """Return its residual predicates in the order in which they are tested, if measured."""
        return self._maker.residuals.measured

    def stats(self) -> dict[str, object]:
        """Return everything it counts; the counts of its join are those of all its queries.

        Queries with operators above joins have the same keys; here ``operators`` and ``leaves`` are
        empty.
        """
        return {
            "query": self.query.name,
            "shares_with": [name for name in self.shares_with() if name != self.query.name],
            "rows_out": self.rows_out,
            "response_seconds": self.response.stats(),
            "results_remembered": 0 if self.expiry is None else len(self.expiry),
            "buffers": self.buffers(),
            "operators": [],
            "leaves": [],
            **self.join.metrics.stats(),
            "weight": float(self.weight),
            "without_effect": self.without_effect,
        }


def _smaller(own: Sequence[int], largest: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the sizes that are smaller than the largest ones, each with its source."""
    pairs = enumerate(zip(own, largest, strict=False))
    return tuple((source, size) for source, (size, most) in pairs if size < most)
