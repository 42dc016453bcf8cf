"""A query while it runs: what of its join's matches it takes, how it shows them, and results not yet taken."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.model.settings import Strategy
from muntin.operators.consolidate import consolidate
from muntin.operators.expire import Expire
from muntin.operators.expire_matches import ExpireMatches
from muntin.operators.join import Matches
from muntin.operators.result import ResultMaker
from muntin.operators.signed import Changes, merged
from muntin.plan.join import JoinPlan
from muntin.plan.query import Emit, Query
from muntin.planner.sharing_groups import Member, window_size
from muntin.planner.strategies import drive_strategy
from muntin.runtime.metrics import Measured, ResponseTimes
from muntin.runtime.running_join import RunningJoin


class RunningQuery:
    """A query over a join that it has for itself or shares; it can run once it has been told its place by :meth:`sit`."""

    def __init__(self, query: Query, join: RunningJoin, duck: Duck) -> None:
        self.query = query
        self.join = join
        self.response = ResponseTimes()
        self.rows_out = 0
        self.keeps = True
        """Whether results are kept for poll."""
        self.failure: Exception | None = None
        """Why it makes no more results, until the engine suspends it."""
        self._duck = duck
        self._since = {state: state.log.next for state, _ in join.read_so_far()}
        self._results: list[pa.Table] = []
        self._changes: list[pa.Table] = []
        self._columns = pa.schema(list(query.output_schema)[2:])
        self._came: list[Changes] = []
        self._expire: Expire | ExpireMatches | None = None
        if query.emit is Emit.CHANGES and not join.plan.retracting:
            horizon = max(window_size(source.window) for source in query.sources)
            by_rows = drive_strategy(join.settings) is not Strategy.NEGATIVE
            self._expire = (
                Expire(self._columns) if by_rows else ExpireMatches(len(query.sources), horizon)
            )
        self._seat: tuple[object, ...] = ()

    def sit(self, member: Member | None) -> None:
        """Take the place of a member of the join's group as it is now; None: the join is for this query alone."""
        join = self.join
        residuals = (
            join.plan.residuals if member is None else (*join.plan.residuals, *member.residuals)
        )
        select = self.query.select if member is None else member.select
        seat = select, residuals, join.rows
        if seat != self._seat:
            self._maker = ResultMaker(
                self.query,
                [column.expression for column in select],
                residuals,
                join.rows,
                join.evaluator,
            )
            self._seat = seat
        self.sizes = () if member is None else member.sizes

    @property
    def narrow(self) -> tuple[tuple[int, int], ...]:
        """The windows that are smaller than the join's, as pairs of source and size."""
        largest = (window_size(source.window) for source in self.join.query.sources)
        return tuple(
            (source, own)
            for source, (own, most) in enumerate(zip(self.sizes, largest, strict=False))
            if own < most
        )

    @property
    def owner(self) -> str:
        """The name of the query as users know it."""
        return self.query.name

    @property
    def plan(self) -> JoinPlan:
        """The plan of its join."""
        return self.join.plan

    # -- results -----------------------------------------------------------------------------------

    def taken(self, matches: Matches) -> pa.Table | None:
        """The results of matches inside the windows, if there are any now; changes are put together first, see :meth:`changes`."""
        if self.query.emit is Emit.CHANGES:
            matches = self._since_registered(matches)
        matches = self._maker.passing(matches)
        self._note_response(matches)
        if self._expire is not None:
            self._remember(matches)
            return None
        table = self._maker.make(matches)
        if self.query.emit is Emit.CHANGES:
            self._changes.append(table)
            return None
        return self._kept(table)

    def changes(self) -> pa.Table | None:
        """The changes since the last call, without those that cancel out."""
        if isinstance(self._expire, ExpireMatches):
            found = self._expire.run(self.join.now)
            self._changes += [self._maker.make(found)] if len(found) else []
        elif self._expire is not None:
            came = self._take_came()
            if drive_strategy(self.join.settings) is Strategy.INPUT:
                if not len(came):
                    return None  # what ends waits until a row comes
                until = int(came.times[-1])
            else:
                until = self.join.now
            changes = self._expire.run(came, until)
            self._changes += (
                [self._maker.table(changes.signs, changes.times, changes.columns)]
                if len(changes)
                else []
            )
        if not self._changes:
            return None
        table = consolidate(pa.concat_tables(self._changes), self._duck)
        self._changes.clear()
        return self._kept(table)

    @property
    def remembers(self) -> bool:
        """Whether what it keeps depends on rows that are in no window's store: then they cannot be taken silently."""
        return self._expire is not None

    def remembered_bytes(self) -> int:
        """Bytes of the results that are kept until they end."""
        return self._expire.nbytes() if self._expire else 0

    def remembered_results(self) -> int:
        """How many results are kept until they end."""
        return len(self._expire) if self._expire else 0

    def _remember(self, matches: Matches) -> None:
        """Keep matches, with their ends, for the next call of :meth:`changes`."""
        sizes = self.sizes or [window_size(source.window) for source in self.query.sources]
        ends = self.join.ends(matches, sizes)
        if not isinstance(self._expire, ExpireMatches):
            ones = np.ones(len(matches), np.int64)
            self._came.append(
                Changes(self._maker.select(matches), np.array(matches.times), ones, ends)
            )
            return
        times, positions, every = matches.times, matches.positions, self.query.every
        if every is not None:
            times, ends = -(-times // every) * every, -(-ends // every) * every
            shown = np.flatnonzero(ends > times)  # what ends before it is shown is never there
            times, ends, positions = times[shown], ends[shown], positions.take(shown, axis=1)
        self._expire.take(times, ends, positions)

    def _take_came(self) -> Changes:
        """What has come since the last call, at the instants at which it is shown and is no longer."""
        came, self._came = self._came, []
        return self._every(merged(came, self._columns))

    def _every(self, changes: Changes) -> Changes:
        """Changes at the instants at which the query shows them."""
        every = self.query.every
        if every is None:
            return changes
        times = -(-changes.times // every) * every
        if changes.ends is None:
            return replace(changes, times=times)
        ends = -(-changes.ends // every) * every
        return replace(changes, times=times, ends=ends).where(
            ends > times
        )  # what ends before it is shown is never there

    def take_back(self, table: pa.Table) -> None:
        """Let go of results that were just made and are known already."""
        self.rows_out -= len(table)
        if self.keeps:
            self._results.pop()

    def _kept(self, table: pa.Table) -> pa.Table | None:
        if not len(table):
            return None
        self.rows_out += len(table)
        if self.keeps:
            self._results.append(table)
        return table

    def _note_response(self, matches: Matches) -> None:
        """Count how long results took; a retraction is caused by time, not by a row that waits for it."""
        arrivals, count = matches.arrivals, len(matches)
        if matches.signs is not None:
            added = matches.signs > 0
            count = int(added.sum())
            arrivals = arrivals if isinstance(arrivals, float) else arrivals[added]
        self.response.add(time.monotonic(), arrivals, count)

    def _since_registered(self, matches: Matches) -> Matches:
        """Without results whose rows all came before the query: they were never produced for it."""
        if not any(self._since.values()):
            return matches
        since = {state.stream.name: position for state, position in self._since.items()}
        new = np.zeros(len(matches), bool)
        for place, source in enumerate(self.join.query.sources):
            if not source.stored:
                new |= matches.positions[place] >= since[source.relation]
        return matches if new.all() else matches.where(new)

    def poll(self) -> pa.Table:
        """The results since the last poll."""
        results, self._results = self._results, []
        return pa.concat_tables(results) if results else self._maker.empty()

    def put_back(self, polled: pa.Table) -> None:
        """Keep results that :meth:`poll` took but nobody got."""
        self._results.insert(0, polled)

    def answer(self) -> pa.Table:
        """The select list over the rows inside their windows now."""
        parts = [
            self._maker.select(
                self._maker.passing(self._since_registered(found.inside(self.narrow)))
            )
            for found in self.join.answer()
        ]
        return pa.concat_tables([self._columns.empty_table(), *parts])

    # -- what came before it -----------------------------------------------------------------------

    def came_before(self) -> dict[str, int]:
        """How many of the rows that are held came before the query, for each stream it reads."""
        return {state.stream.name: state.log.rank(since) for state, since in self._since.items()}

    def let_come_before(self, counts: Mapping[str, int]) -> None:
        """Let so many rows of each stream count as older than the query; none has come yet."""
        self._since = {state: counts[state.stream.name] for state in self._since}

    # -- looking -----------------------------------------------------------------------------------

    def shares_with(self) -> Sequence[str]:
        """The names of the queries of its join, its own included."""
        return [member.query.name for member in self.join.members]

    def take_response_times(self) -> ResponseTimes:
        """The response times since the last call; those of :meth:`stats` begin anew."""
        taken, self.response = self.response, ResponseTimes()
        return taken

    def buffers(self) -> dict[str, int]:
        """Paper 1's buffers, in rows: waiting for their turn, inside the windows, held back for older ones; and what is not polled yet."""
        work_queue = self.join.work_queue()
        return {
            "input": sum(state.waiting() for state, _ in self.join.read_so_far())
            + work_queue["rows_waiting"],
            "most_input": work_queue["most_rows_waiting"],
            "join": sum(self.join.state_rows().values()),
            "held": work_queue["results_held"],
            "most_held": work_queue["most_results_held"],
            "output": sum(len(table) for table in (*self._results, *self._changes)),
        }

    def measured(self) -> Measured | None:
        """The work of its join since that runs by its present plan; None while no event time has passed."""
        return self.join.measured()

    def stats(self) -> dict[str, object]:
        """Everything it counts; what its join counts is that of all queries that share it.

        Pipelines have the same keys: ``operators`` and ``leaves`` are empty where there is nothing above the join.
        """
        return {
            "query": self.query.name,
            "shares_with": [name for name in self.shares_with() if name != self.query.name],
            "rows_out": self.rows_out,
            "rows_waiting_for_poll": sum(len(table) for table in self._results),
            "response_seconds": self.response.stats(),
            "results_remembered": self.remembered_results(),
            "buffers": self.buffers(),
            "operators": [],
            "leaves": [],
            **self.join.stats(),
        }
