"""The n-way window join (papers 3 and 4): new rows in, matches out.

Computes every combination of rows, one per source, that satisfies the codes' checks and whose members are
inside their windows when the newest of them arrives; with retractions also the moment each combination
ends. State: one ring per source (:mod:`muntin.state.join_state`). Cost: O(1) a row for insert and expiry,
plus the rows that the steps look at.

The operator sees integers only. It yields matches as stream positions; residual predicates and the select
list are the business of :mod:`muntin.operators.result`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.kernels import layout
from muntin.kernels.arrays import Output, Span
from muntin.kernels.changelog_join import join_signed
from muntin.kernels.equi_join import join_pair
from muntin.kernels.nway_join import expire_all, join_arrivals, join_interval, join_snapshot
from muntin.kernels.result_order import sort_matches
from muntin.kernels.tree_join import join_tree
from muntin.model.clock import BEFORE_ALL
from muntin.model.settings import Algorithm, Expiry
from muntin.model.statistics import JoinStatistics
from muntin.model.window import PartitionedWindow
from muntin.operators.code_reader import CodeReader
from muntin.operators.events import EventMaker, Events, NewRows
from muntin.operators.join_program import make_program, store_specs
from muntin.operators.join_tree import Tree
from muntin.operators.statistics import Meter
from muntin.operators.workspace import Workspace
from muntin.plan.join import JoinPlan
from muntin.state.batch import Batch
from muntin.state.join_state import JoinState

Integers = npt.NDArray[np.int64]

_POLICIES = {
    Expiry.OWN: layout.OWN,
    Expiry.EAGER: layout.EAGER,
    Expiry.LAZY: layout.LAZY,
    Expiry.PROBE: layout.PROBE,
    Expiry.PROBE_INSERT: layout.PROBE_INSERT,
    Expiry.PROBE_ALL: layout.PROBE_ALL,
    Expiry.ALL: layout.ALL,
}
_MARGIN = 1 << 14
_SECOND = 1_000_000


@dataclass(frozen=True)
class Matches:
    """Results of a join: when each takes effect, its sign, the positions of its members (a row per source)."""

    times: Integers
    signs: npt.NDArray[np.int8] | None
    positions: Integers
    arrivals: npt.NDArray[np.float64] | float

    def __len__(self) -> int:
        return len(self.times)

    def where(self, mask: npt.NDArray[np.bool_]) -> Matches:
        """Some of them; by their places, which takes a fraction of the time that numpy needs for masks."""
        places = np.flatnonzero(mask)
        signs = None if self.signs is None else self.signs.take(places)
        arrivals = self.arrivals if isinstance(self.arrivals, float) else self.arrivals.take(places)
        return Matches(
            self.times.take(places), signs, self.positions.take(places, axis=1), arrivals
        )


def is_pair(plan: JoinPlan) -> bool:
    """Whether the kernel written for two windows with one equality applies."""
    return (
        plan.algorithm is Algorithm.EAGER
        and plan.tree is None
        and plan.expiry is Expiry.OWN
        and len(plan.sources) == 2
        and all(
            len(source.codes) == 1
            and [(index.codes, index.buckets) for index in source.indexes] == [((0,), None)]
            for source in plan.sources
        )
        and all(
            len(step.checks) == 1 and step.checks[0].operator == "="
            for order in plan.orders
            for step in order
        )
        and not any(isinstance(source.window, PartitionedWindow) for source in plan.query.sources)
    )


@dataclass(frozen=True)
class Tools:
    """What operators of an engine share."""

    evaluator: Evaluator
    workspace: Workspace


class JoinOperator:
    """Runs one join plan over the streams it reads, numbered in the order of their declaration."""

    def __init__(
        self, plan: JoinPlan, streams: Sequence[str], tables: Mapping[str, pa.Table], tools: Tools
    ) -> None:
        self.plan = plan
        self._workspace = tools.workspace
        self._room = 0
        self.now = BEFORE_ALL
        self._retracting = plan.retracting
        self.state = JoinState(
            store_specs(plan, {name: number for number, name in enumerate(streams)}),
            plan.expiry.cleans_buckets,
        )
        self._program = make_program(plan, plan.orders, self.state.first_index)
        origin, steps = plan.snapshot
        self._snapshot = make_program(
            plan,
            [steps if source == origin else () for source in range(len(plan.sources))],
            self.state.first_index,
        )
        readers = [
            CodeReader(
                number,
                planned,
                source.window.columns if isinstance(source.window, PartitionedWindow) else (),
                tools.evaluator,
            )
            for number, (planned, source) in enumerate(
                zip(plan.sources, plan.query.sources, strict=True)
            )
        ]
        self._maker = EventMaker(
            self.state,
            readers,
            counting=plan.algorithm is not Algorithm.EAGER,
            retracting=self._retracting,
        )
        self._is_pair = is_pair(plan)
        self._tree = self._make_tree(plan)
        self._meter = Meter(self.state, plan.equal)
        self._seen = np.zeros(len(streams), np.int64)
        self._scratch = np.zeros(5 * len(plan.sources) + layout.SCRATCH, np.int64)
        interval = plan.expiry_interval or plan.reevaluation or _SECOND
        self._expiry = np.array([BEFORE_ALL, interval], np.int64)
        for number, source in enumerate(plan.query.sources):
            if source.stored:
                self._load_table(number, tables[source.relation])

    def _make_tree(self, plan: JoinPlan) -> Tree | None:
        return Tree(plan.tree, self.state) if plan.tree else None

    def _load_table(self, source: int, table: pa.Table) -> None:
        positions = np.arange(len(table), dtype=np.int64)
        rows, _ = self._maker.format(
            source, NewRows(positions, Batch(table, positions, np.zeros(len(table))), 0)
        )
        width = self.state.width(source)
        count = len(rows) // width
        unused = np.full(count, -1, np.int64)
        offsets = np.arange(count, dtype=np.int64) * width
        events = Events(
            np.full(count, source, np.int32),
            offsets,
            np.zeros(count, np.int64),
            unused,
            np.zeros((1, 1), np.int64),
            rows,
            0.0,
        )
        self._insert_only(events)

    # -- input -------------------------------------------------------------------------------------

    def fill(self, news: Sequence[NewRows], now: int) -> None:
        """Take rows that came before this operator did: they are remembered, their results are not made."""
        self._refer_to(news)
        self._insert_only(self._maker.make(news))
        self._advance(news, now)

    def repeat(self, news: Sequence[NewRows], now: int) -> None:
        """Take rows whose results are known from a run before; what that had kept is kept again."""
        self.fill(news, now)

    def run(self, news: Sequence[NewRows], now: int) -> Iterator[Matches]:
        """Take new rows, given per stream, and yield their matches in order; time moves on to ``now``.

        The yielded arrays are valid until the next one is asked for.
        """
        events = self._maker.make(news)
        self._refer_to(news)
        if self._retracting:
            yield from self._run_signed(events, now)
        elif self.plan.algorithm in {Algorithm.LAZY, Algorithm.GENERAL_LAZY}:
            yield from self._run_intervals(events)
        elif self._tree:
            yield from self._run_tree(self._tree, events, silent=False)
        else:
            yield from self._run_arrivals(events)
        self._advance(news, now)

    def _refer_to(self, news: Sequence[NewRows]) -> None:
        """Tell the stores which position comes next: they keep only the low halves of positions."""
        for source, spec in enumerate(self.state.specs):
            if spec.stream >= 0 and len(news[spec.stream].batch):
                before = int(news[spec.stream].positions[0]) - 1
                self.state.stores[source, layout.LAST] = max(
                    before, int(self.state.stores[source, layout.LAST])
                )

    def _output(self) -> Output:
        return Output(self._out, self.state.counters, self._scratch)

    def _run_arrivals(self, events: Events) -> Iterator[Matches]:
        naive = int(self.plan.algorithm is Algorithm.NAIVE)
        policy = _POLICIES[self.plan.expiry]
        event, resume = 0, 0
        while True:
            span = Span(event, len(events), resume, self._enough())
            if self._is_pair:
                status, event, count, need, resume = join_pair(
                    self.state.arena, events.arrays, span, self._output()
                )
            else:
                status, event, count, need, resume = join_arrivals(
                    self.state.arena, self._program, events.arrays, naive, policy, self._expiry,
                    span, self._output(),
                )  # fmt: skip
            if count:
                yield self._matches(events, count)
            if status == layout.DONE:
                return
            self._make_room(status, need, events, event)

    def _run_signed(self, events: Events, now: int) -> Iterator[Matches]:
        event, resume = 0, 0
        while True:
            span = Span(event, len(events), resume, self._enough())
            status, event, count, need, resume = join_signed(
                self.state.arena, self._program, events.arrays, span, now, self._output()
            )
            if count:
                yield self._matches(events, count)
            if status == layout.DONE:
                return
            self._make_room(status, need, events, event)

    def _run_intervals(self, events: Events) -> Iterator[Matches]:
        """Join what has come at each multiple of the interval, and at the end of the batch."""
        if not len(events):
            return
        cuts, instants = [0, len(events)], [int(events.times[-1])]
        if self.plan.reevaluation:
            evaluations = -(-events.times // self.plan.reevaluation)
            inner = np.flatnonzero(np.diff(evaluations))
            cuts = [0, *(inner + 1).tolist(), len(events)]
            instants = [*(evaluations[inner] * self.plan.reevaluation).tolist(), *instants]
        limits = self.limits()
        for (start, stop), instant in zip(pairwise(cuts), instants, strict=True):
            arrived = np.bincount(
                events.sources[start:stop][events.offsets[start:stop] >= 0],
                minlength=len(self.plan.sources),
            )
            for source, rows in enumerate(arrived.tolist()):
                self.state.reserve(source, rows, int(limits[source]))
            order = np.empty(int(arrived.sum()), np.int64)
            resume = 0
            while True:
                span = Span(start, stop, resume, 0)
                status, _, count, need, resume = join_interval(
                    self.state.arena, self._program, events.arrays, span, order, self._output()
                )
                if status == layout.DONE:
                    break
                self._make_room(status, need, events, start)
            if count:
                yield self._matches(events, count)
            limits = self._limits(int(events.times[stop - 1]), events.counts[stop - 1])
            self._expire(limits, instant)

    def _run_tree(self, tree: Tree, events: Events, *, silent: bool) -> Iterator[Matches]:
        event, resume, count = 0, 0, 0
        partial_matches = tree.partial_matches
        while True:
            span = Span(event, len(events), resume, self._enough())
            status, event, count, need, resume = join_tree(
                self.state.arena, tree.climbs, partial_matches.arrays, events.arrays,
                span, count, int(silent), self._output(),
            )  # fmt: skip
            if status == layout.WIDEN:
                # The results so far stay where they are: nodes are full too often to hand on a few results each time.
                counts = events.counts[event] if len(events.counts) > event else events.counts[0]
                partial_matches.make_room(need, self._limits(int(events.times[event]), counts))
                continue
            if count:
                yield self._matches(events, count)
                count = 0
            if status == layout.DONE:
                return
            self._make_room(status, need, events, event)

    def _insert_only(self, events: Events) -> None:
        if self._tree:
            assert not list(self._run_tree(self._tree, events, silent=True)), (
                "a silent run makes no results"
            )
            return
        arrived = np.bincount(events.sources[events.offsets >= 0], minlength=len(self.plan.sources))
        self.state.reserve_all(arrived.tolist(), layout.EVER)
        order = np.empty(int(arrived.sum()), np.int64)
        span = Span(0, len(events), layout.SILENT, 0)
        join_interval(self.state.arena, self._program, events.arrays, span, order, self._output())

    # -- room and expiry ---------------------------------------------------------------------------

    @property
    def _out(self) -> Integers:
        """Where kernels write results; shared with other operators, so valid only while this one runs."""
        return self._workspace.results(2 + len(self.plan.sources), self._room)

    def _enough(self) -> int:
        """So many results are worth handing on; the rest of the room is for those of one more row."""
        return int(self._out.shape[1]) - _MARGIN

    def _make_room(self, status: int, need: int, events: Events, event: int) -> None:
        if status == layout.GROW:
            source = int(events.sources[event])
            counts = events.counts[event] if len(events.counts) > event else events.counts[0]
            self.state.grow(source, int(self._limits(int(events.times[event]), counts)[source]))
        elif status == layout.OVERFLOW and need > self._out.shape[1]:
            self._room = need + _MARGIN

    def _limits(self, time: int, counts: Integers) -> Integers:
        """What the rows of each store must be above to be inside their windows at an instant."""
        limits = np.full(len(self.state.specs), layout.EVER, np.int64)
        for source, spec in enumerate(self.state.specs):
            if spec.kind == layout.TIME:
                limits[source] = time - spec.size
            elif spec.kind == layout.COUNT:
                limits[source] = counts[source] - spec.size - 1
            elif spec.kind == layout.PARTITIONED:
                # With retractions a row is marked in the moment it leaves; otherwise with the count at which it does.
                limits[source] = layout.NEVER - 1 if self._retracting else counts[source]
        return limits

    def limits(self) -> Integers:
        """The limits as of now."""
        counts = np.array(
            [self._seen[spec.stream] if spec.stream >= 0 else 0 for spec in self.state.specs],
            np.int64,
        )
        return self._limits(self.now, counts)

    def _advance(self, news: Sequence[NewRows], now: int) -> None:
        self.now = max(self.now, now)
        self._seen[:] = [new.before + len(new.batch) for new in news]
        self._meter.start(self.now)
        limits = self.limits()
        self._expire(limits, self.now)
        self.state.fit(limits)
        if self._tree:
            self._tree.partial_matches.fit(limits)

    def _expire(self, limits: Integers, instant: int) -> None:
        policy = _POLICIES[self.plan.expiry]
        if policy == layout.LAZY:
            if instant < self._expiry[0]:
                return
            self._expiry[0] = instant - instant % self._expiry[1] + self._expiry[1]
            policy = layout.OWN
        expire_all(self.state.arena, limits, policy, self.state.counters)

    # -- output ------------------------------------------------------------------------------------

    def _matches(self, events: Events, count: int) -> Matches:
        out = self._out[:, :count]
        tags = out[0]
        signs = None
        if self._retracting:
            signs = np.where(tags < 0, -1, 1).astype(np.int8)
            tags = np.where(tags < 0, ~tags, tags)
        elif not self.plan.results_in_order:
            if self.plan.algorithm is not Algorithm.EAGER:
                # Lazy algorithms join source by source: bring the results of an event together first.
                out = out[:, np.argsort(tags, kind="stable")]
            sort_matches(out, np.empty(count, np.int64), np.empty(count, np.int64))
            tags = out[0]
        arrivals = events.arrivals
        if not isinstance(arrivals, float):
            # A retraction at the end of a batch belongs to no event.
            arrivals = arrivals[np.minimum(tags, len(arrivals) - 1)] if len(arrivals) else 0.0
        self.state.counters[layout.N_RESULTS] += count
        return Matches(out[1], signs, out[2:], arrivals)

    def answer(self) -> Iterator[Matches]:
        """All combinations of rows inside their windows now, in no particular order."""
        origin, _ = self.plan.snapshot
        state, limits = self.state, self.limits()
        unused = np.zeros(layout.COUNTERS, np.int64)
        seq, stop = int(state.stores[origin, layout.TAIL]), int(state.stores[origin, layout.NEXT])
        while True:
            output = Output(self._out, unused, self._scratch)
            status, seq, count, need, _ = join_snapshot(
                state.arena, self._snapshot, origin, limits, Span(seq, stop, 0, 0), output
            )
            if count:
                yield Matches(self._out[1, :count], None, self._out[2:, :count], 0.0)
            if status == layout.DONE:
                return
            if need > self._out.shape[1]:
                self._room = need

    # -- planning while it runs --------------------------------------------------------------------

    def rates(self) -> list[float] | None:
        """Rows per second of each source since the last measurement; None when no time has passed."""
        return self._meter.rates(self.now)

    def measure(self) -> JoinStatistics | None:
        """What was measured since this was last asked; None when that is too little."""
        return self._meter.read(self.now)

    def reorder(self, plan: JoinPlan) -> None:
        """Go on with the orders of another plan of the same query; the state stays as it is."""
        assert plan.sources == self.plan.sources, "only plans that store the same can be exchanged"
        self.plan = plan
        self._program = make_program(plan, plan.orders, self.state.first_index)

    # -- size --------------------------------------------------------------------------------------

    def rows(self) -> list[int]:
        """Rows inside the window of each source."""
        limits = self.limits()
        return [
            self.state.inside(source, int(limits[source]))
            for source in range(len(self.plan.sources))
        ]

    def kept(self, source: int) -> Integers:
        """The positions of the rows in the partitioned window of a source, also of those that do not join and only count."""
        return self._maker.kept(source)

    def first_kept(self, source: int) -> int | None:  # noqa: ARG002 (some operators keep more)
        """The position of the first row of a source that is kept beyond its window; None if none is."""
        return None

    def nbytes(self) -> int:
        """Bytes of state, without the rows themselves."""
        partial_matches = self._tree.partial_matches.nbytes() if self._tree else 0
        return self.state.nbytes() + self._maker.nbytes() + partial_matches

    def partial_matches(self) -> int:
        """Intermediate results that are held."""
        return self._tree.partial_matches.rows() if self._tree else 0
