"""A scheduled join of three and more sources finds what each level finds alone, looking once.

Turns, result buffers, rings and pools are so small that the kernel returns for every reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from muntin.engine.declarations import Declarations
from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.kernels import layout
from muntin.operators.join import JoinOperator, NewRows, TacticOptions, Tools
from muntin.operators.join.registry import make_join
from muntin.operators.join.schedule import Schedule, TurnPace
from muntin.operators.join.shared import SharedTactic
from muntin.operators.workspace import Workspace
from muntin.planner.join_planner import plan_join
from muntin.schedule import work_queue
from muntin.schedule.levels import Levels
from muntin.sql.streams import make_stream
from muntin.state import join_state
from muntin.state.batch import Batch

SECOND = 1_000_000
SCHEMA = pa.schema([("k", pa.int64()), ("j", pa.int64()), ("ts", pa.timestamp("us"))])
Row = tuple[int, int, int, int]
"""Source, seconds since the row before, and the values of k and j."""
Sizes = tuple[int, ...]

CONDITIONS = {
    3: (
        "A.k = B.k AND B.k = C.k",
        "A.k = B.k AND B.j = C.j",
        "A.k = B.k AND B.j <= C.j",
        "A.j <> B.j AND B.k = C.k AND A.k < C.k + 2",
    ),
    4: ("A.k = B.k AND B.k = C.k AND C.k = D.k", "A.k = B.k AND B.j = C.j AND C.k = D.k"),
}


@dataclass(frozen=True)
class Case:
    """Rows in their order, cut into batches, and windows per level in seconds or rows."""

    rows: tuple[Row, ...]
    cuts: tuple[int, ...]
    levels: tuple[Sizes, ...]
    condition: str
    counted: bool = False
    join: str = "hybrid"
    buckets: int | None = None

    @property
    def names(self) -> str:
        return "ABCD"[: len(self.levels[0])]

    def operator(self, windows: Sizes, schedule: Schedule | None) -> JoinOperator:
        declared = Declarations()
        declared.set("join", self.join)
        declared.set("tree", "off")
        if self.buckets is not None:
            declared.set("buckets", self.buckets)
        for name in self.names:
            declared.add_stream(make_stream(name, SCHEMA, "ts", 0))
        sources = ", ".join(
            f"{name} [ROWS {size}]" if self.counted else f"{name} [RANGE {size} SECONDS]"
            for name, size in zip(self.names, windows, strict=True)
        )
        query = declared.read(f"SELECT A.k FROM {sources} WHERE {self.condition}", "q")
        plan = plan_join(query, declared.settings)
        tools = Tools(Evaluator(Duck()), Workspace())
        return make_join(plan, [*self.names], {}, tools, TacticOptions(schedule))

    def batches(self) -> Iterator[tuple[list[NewRows], int]]:
        times = list(accumulate(row[1] for row in self.rows))
        before = [0] * len(self.names)
        for start, stop in pairwise(sorted({0, *self.cuts, len(self.rows)})):
            news = []
            for source in range(len(self.names)):
                mine = [each for each in range(start, stop) if self.rows[each][0] == source]
                moments = np.array([SECOND * times[each] for each in mine], np.int64)
                columns = [
                    pa.array([self.rows[each][c] for each in mine], pa.int64()) for c in (2, 3)
                ]
                table = pa.table(
                    [*columns, pa.array(moments).cast(pa.timestamp("us"))], schema=SCHEMA
                )
                places = before[source] + np.arange(len(mine))
                batch = Batch(table, moments, np.zeros(len(mine)))
                news.append(NewRows(places, batch, before[source]))
                before[source] += len(mine)
            yield news, SECOND * times[stop - 1]

    def alone(self, windows: Sizes) -> list[list[int]]:
        """Return the matches of a level in order, as positions."""
        join = self.operator(windows, None)
        found: list[list[int]] = []
        for news, now in self.batches():
            for matches in join.join(news, now):
                found += np.array(matches.positions).T.tolist()
        return found

    def scheduled(self, scheduler: str) -> JoinOperator:
        unit = 1 if self.counted else SECOND
        sizes = tuple(tuple(unit * size for size in level) for level in self.levels)
        n = len(self.names)
        levels = Levels(sizes, (1,) * len(sizes), (1,) + (0,) * (n - 1), (1,) * n)
        largest = tuple(map(max, zip(*self.levels, strict=True)))
        return self.operator(largest, Schedule(levels, scheduler))

    def shared(
        self, scheduler: str, most: int = 1 << 18
    ) -> tuple[list[list[list[int]]], JoinOperator]:
        """Return the matches of each level in order, and the join; it works ``most`` at a time.

        Batches come while the join works on those before.
        """
        join = self.scheduled(scheduler)
        found: list[list[list[int]]] = [[] for _ in self.levels]
        pace = TurnPace(1, 1, most)
        for news, now in self.batches():
            pieces = [join.work.turn(pace)] if join.is_busy() else []
            for piece in pieces:
                self._keep(piece, found)
            for piece in join.absorb(news, now):
                self._keep(piece, found)
        while join.is_busy():
            self._keep(join.work.turn(pace), found)
        return found, join

    @staticmethod
    def _keep(released: object, found: list[list[list[int]]]) -> None:
        if released is not None:
            for level in range(len(found)):
                found[level] += released.of_level(level).positions.T.tolist()  # type: ignore[attr-defined]


@contextmanager
def tiny_arrays() -> Iterator[None]:
    with (
        patch.object(join_state, "_LEAST", 2),
        patch.object(work_queue, "_LEAST_PLACES", 2),
        patch.object(work_queue, "_LEAST_ROWS", 2),
    ):
        yield


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n = draw(st.sampled_from([3, 3, 4]))
    values = st.integers(0, 2)
    row = st.tuples(st.integers(0, n - 1), st.sampled_from([0, 1, 1, 2]), values, values)
    rows = draw(st.lists(row, min_size=5, max_size=40))
    size = st.integers(1, 9)
    level = st.one_of(size.map(lambda each: (each,) * n), st.tuples(*[size] * n))
    levels = draw(st.lists(level, min_size=1, max_size=5, unique=True))
    return Case(
        tuple(rows),
        tuple(draw(st.lists(st.integers(1, len(rows)), max_size=4))),
        tuple(sorted(levels, key=lambda each: (sum(each), each))),
        draw(st.sampled_from(CONDITIONS[n])),
        counted=draw(st.booleans()),
        join=draw(st.sampled_from(["hybrid", "hybrid", "nested_loop"])),
        buckets=draw(st.sampled_from([None, None, 1, 2])),
    )


@given(cases(), st.sampled_from(["swf", "mqt"]), st.sampled_from([1, 3, 1 << 18]))
def test_every_level_gets_what_it_gets_alone_in_order(
    case: Case, scheduler: str, most: int
) -> None:
    note(str(case))
    with tiny_arrays():
        found, join = case.shared(scheduler, most)
    for windows, mine in zip(case.levels, found, strict=True):
        assert mine == case.alone(windows), windows
    assert join.tactic.stats().work_queue["results_held"] == 0


def many_rows(rows: int, keys: int, seed: int = 1) -> tuple[Row, ...]:
    generator = np.random.default_rng(seed)
    columns = generator.integers(0, 3, rows), generator.integers(0, keys, (2, rows))
    sources, (ks, js) = columns
    return tuple(
        (int(source), 1, int(k), int(j)) for source, k, j in zip(sources, ks, js, strict=True)
    )


@pytest.mark.parametrize("condition", CONDITIONS[3][:3])
@pytest.mark.parametrize("scheduler", ["swf", "mqt"])
def test_levels_look_at_each_candidate_once_however_many_they_are(
    scheduler: str, condition: str
) -> None:
    """Searching again for each of the seven windows would look more than twice as often."""
    rows = many_rows(400, 4)
    one = Case(rows, (100, 200, 300), ((70, 70, 70),), condition)
    seven = Case(rows, one.cuts, tuple((size,) * 3 for size in range(10, 80, 10)), condition)
    looked = []
    for case in (one, seven):
        found, join = case.shared(scheduler)
        assert found[-1] == one.alone((70, 70, 70))
        counters = join.state.counters
        looked.append([int(counters[each]) for each in (layout.N_SCANNED, layout.N_PROBES)])
    assert looked[0] == looked[1]


def test_search_trees_end_with_their_rows() -> None:
    """The pool is as large as what waits at a time needs, however many rows have passed."""
    case = Case(
        many_rows(1_000, 3), tuple(range(10, 1_000, 10)), ((3, 3, 3), (9, 9, 9)), CONDITIONS[3][1]
    )
    places = []
    with tiny_arrays():
        join = case.scheduled("mqt")
        assert isinstance(join.tactic, SharedTactic)
        for news, now in case.batches():
            join.take(news, now)
            while join.is_busy():
                join.work.turn(TurnPace(1, 1, 1))
            places.append(len(join.tactic.work_queue.pool))
    assert max(places) <= 64
    assert join.tactic.stats().work_queue["most_results_held"] > 0


def test_partial_matches_that_cannot_be_extended_leave_the_tree() -> None:
    """A row with many partners in B, of which none has one in C, keeps none of them."""
    rows: list[Row] = [(1, 0, 7, 0)] * 500 + [(0, 1, 7, 1), (0, 1, 7, 1)]
    case = Case(tuple(rows), (500,), ((5, 5, 5), (9, 9, 9)), "A.k = B.k AND B.j = C.j")
    with tiny_arrays():
        found, join = case.shared("swf")
    assert found == [[], []]
    assert isinstance(join.tactic, SharedTactic)
    assert len(join.tactic.work_queue.pool) <= 8
