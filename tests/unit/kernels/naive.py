"""A window join over plain Python lists, and a rig that runs the join kernels on the same rows.

Every source reads a separate stream, except stored ones. A row has a time, a code, a group (its
partition) and its position in the stream. Two sources ``i < j`` join where ``code_i operator
code_j``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from muntin.kernels import layout
from muntin.kernels.arrays import EventArrays, Output, Program, Span
from muntin.kernels.nway_join import expire_all, join_interval
from muntin.state.join_state import IndexSpec, JoinState, StoreSpec

Integers = npt.NDArray[np.int64]
Result = tuple[int, ...]
"""Time, then the position of every source's row."""

OPERATORS: dict[int, Callable[[int, int], bool]] = {
    layout.EQ: operator.eq, layout.NE: operator.ne, layout.LT: operator.lt,
    layout.LE: operator.le, layout.GT: operator.gt, layout.GE: operator.ge,
}  # fmt: skip
FLIPPED = {
    layout.EQ: layout.EQ, layout.NE: layout.NE, layout.LT: layout.GT,
    layout.LE: layout.GE, layout.GT: layout.LT, layout.GE: layout.LE,
}  # fmt: skip


@dataclass(frozen=True)
class Window:
    kind: int
    size: int


@dataclass(frozen=True)
class Row:
    source: int
    time: int
    code: int
    group: int
    position: int


@dataclass(frozen=True)
class Scene:
    """Windows, rows in total order, and the comparison between any two sources.

    The rows of stored windows come first.
    """

    windows: tuple[Window, ...]
    rows: tuple[Row, ...]
    operator: int = layout.EQ

    @property
    def stored(self) -> list[Row]:
        return [row for row in self.rows if self.windows[row.source].kind == layout.STORED]

    @property
    def arriving(self) -> list[Row]:
        return [row for row in self.rows if self.windows[row.source].kind != layout.STORED]

    def alive(self, source: int, seen: Sequence[Row], now: int) -> list[Row]:
        """Return the rows inside a source's window at ``now``, after exactly the rows ``seen``."""
        window = self.windows[source]
        mine = [row for row in seen if row.source == source]
        if window.kind == layout.TIME:
            return [row for row in mine if row.time > now - window.size]
        if window.kind == layout.COUNT:
            return mine[-window.size :]
        if window.kind == layout.PARTITIONED:
            return [
                row
                for row in mine
                if row in [other for other in mine if other.group == row.group][-window.size :]
            ]
        return mine

    def joins(self, members: Sequence[Row]) -> bool:
        holds = OPERATORS[self.operator]
        return all(
            holds(left.code, right.code)
            for at, left in enumerate(members)
            for right in members[at + 1 :]
        )

    def inserts(self) -> list[Result]:
        """Return the results that every row completes, in the defined order."""
        results = []
        for number, row in enumerate(self.arriving):
            seen = [*self.stored, *self.arriving[: number + 1]]
            pools = [
                [row] if s == row.source else self.alive(s, seen, row.time)[::-1]
                for s in range(len(self.windows))
            ]
            results += [
                (row.time, *(member.position for member in members))
                for members in product(*pools)
                if self.joins(members)
            ]
        return results

    def answer(self, now: int) -> list[Result]:
        """Return the combinations of rows inside their windows at the end."""
        pools = [self.alive(s, self.rows, now) for s in range(len(self.windows))]
        return sorted(
            tuple(member.position for member in members)
            for members in product(*pools)
            if self.joins(members)
        )

    def held(self, now: int) -> list[list[int]]:
        """Return the positions inside each window at the end."""
        return [
            [row.position for row in self.alive(s, self.rows, now)]
            for s in range(len(self.windows))
        ]

    def changes(self, now: int) -> list[tuple[str, Result]]:
        """Return every result, and the removals up to ``now``, sorted."""
        found = []
        for result in self.inserts():
            found.append(("+", result))
            ends = [
                end
                for s, position in enumerate(result[1:])
                if (end := self._end(s, position)) is not None
            ]
            if ends and min(ends) <= now:
                found.append(("-", (min(ends), *result[1:])))
        return sorted(found)

    def _end(self, source: int, position: int) -> int | None:
        window = self.windows[source]
        mine = [row for row in self.rows if row.source == source]
        row = mine[position]
        if window.kind == layout.TIME:
            return row.time + window.size
        if window.kind == layout.STORED:
            return None
        later = [
            other
            for other in mine[position + 1 :]
            if window.kind == layout.COUNT or other.group == row.group
        ]
        return later[window.size - 1].time if len(later) >= window.size else None


@st.composite
def scenes(
    draw: st.DrawFn,
    sources: int = 3,
    kinds: Sequence[int] = (0, 1, 2, 3),
    operators: Sequence[int] = tuple(OPERATORS),
) -> Scene:
    count = draw(st.integers(1, sources))
    windows = [Window(draw(st.sampled_from(kinds)), draw(st.integers(1, 5))) for _ in range(count)]
    if all(window.kind == layout.STORED for window in windows):
        windows[0] = Window(layout.TIME, 3)
    drawn = draw(
        st.lists(
            st.tuples(
                st.integers(0, count - 1), st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)
            ),
            max_size=28,
        )
    )
    drawn.sort(key=lambda row: windows[row[0]].kind != layout.STORED)
    rows: list[Row] = []
    time = draw(st.sampled_from([-7, 0]))
    for source, gap, code, group in drawn:
        time += gap if windows[source].kind != layout.STORED else 0
        rows.append(Row(source, time, code, group, sum(row.source == source for row in rows)))
    return Scene(tuple(windows), tuple(rows), draw(st.sampled_from(operators)))


@dataclass
class Rig:
    """The arrays of a scene and the loop that every caller of a join kernel runs.

    ``room`` is the number of columns of the first output buffer; ``seen`` collects why kernels
    returned.
    """

    scene: Scene
    indexed: bool = True
    buckets: int | None = None
    cleaning: bool = False
    room: int = 4
    retracting: bool = False
    first: int = 0
    seen: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        scene = self.scene
        self.n = len(scene.windows)
        index = (
            (IndexSpec((0,), self.buckets),) if self.indexed and scene.operator == layout.EQ else ()
        )
        self.state = JoinState(
            tuple(
                StoreSpec(
                    window.kind, window.size, -1 if window.kind == layout.STORED else s, 1, index
                )
                for s, window in enumerate(scene.windows)
            ),
            self.cleaning,
        )
        self.state.stores[:, layout.NEXT] = self.state.stores[:, layout.TAIL] = self.first
        self.scratch = np.zeros(5 * self.n + layout.SCRATCH, np.int64)
        self.out = np.empty((2 + self.n, self.room), np.int64)
        self.stride = layout.STEP_ARGUMENTS + 2 + 4 * self.n
        self._fill_stored()
        self._make_events()

    # -- arrays ------------------------------------------------------------------------------------

    def _format(self, row: Row) -> list[int]:
        window = self.scene.windows[row.source]
        words = [0] * self.state.width(row.source)
        words[layout.COORD] = row.time if window.kind == layout.TIME else row.position
        words[layout.PLACE] = row.position
        words[layout.CODES] = row.code
        if window.kind == layout.PARTITIONED:
            words[int(self.state.stores[row.source, layout.END])] = layout.NEVER
        return words

    def _fill_stored(self) -> None:
        rows = self.scene.stored
        words = [self._format(row) for row in rows]
        offsets = np.cumsum([0, *map(len, words)])[:-1].astype(np.int64)
        for s in range(self.n):
            self.state.reserve(s, sum(row.source == s for row in rows), layout.EVER)
        count = len(rows)
        events = EventArrays(
            np.array([row.source for row in rows], np.int32), offsets, np.zeros(count, np.int64),
            np.zeros((1, 1), np.int64), np.full(count, -1, np.int64),
            np.array([word for row in words for word in row], np.int64),
        )  # fmt: skip
        unused = Program(np.zeros(1, np.int64), self.stride)
        span = Span(0, count, layout.SILENT, 0)
        join_interval(
            self.state.arena, unused, events, span, np.empty(count, np.int64), self.output
        )
        self.state.counters[:] = 0

    def _make_events(self) -> None:
        groups: dict[tuple[int, int], list[int]] = {}
        events: list[tuple[int, int, int, int, list[int]]] = []
        words: list[int] = []
        counts = [0] * self.n
        for row in self.scene.arriving:
            counts[row.source] += 1
            window = self.scene.windows[row.source]
            if window.kind == layout.PARTITIONED:
                members = groups.setdefault((row.source, row.group), [])
                members.append(row.position)
                if len(members) > window.size:
                    events.append((row.source, -1, row.time, members.pop(0), list(counts)))
            events.append((row.source, len(words), row.time, -1, list(counts)))
            words += self._format(row)
        self.sources = np.array([event[0] for event in events], np.int32)
        self.offsets = np.array([event[1] for event in events], np.int64)
        self.times = np.array([event[2] for event in events], np.int64)
        self.pushed = np.array([event[3] for event in events], np.int64)
        self.counts = np.array([event[4] for event in events], np.int64).reshape(
            len(events), self.n
        )
        self.incoming = np.array(words, np.int64)

    @property
    def events(self) -> EventArrays:
        return EventArrays(
            self.sources, self.offsets, self.times, self.counts, self.pushed, self.incoming
        )

    @property
    def output(self) -> Output:
        return Output(self.out, self.state.counters, self.scratch)

    def program(self, order: Sequence[int] | None = None) -> Program:
        """Return the join orders.

        The origin comes first and the others in FROM order; or ``order``, with the origin
        in it, for all.
        """
        table = np.zeros((self.n, self.n, self.stride), np.int64)
        for origin in range(self.n):
            steps = [s for s in range(self.n) if s != origin] if order is None else list(order)
            for place, s in enumerate(steps):
                bound = [*([origin] if order is None else []), *steps[:place]]
                uses = bool(bound) and bool(self.state.specs[s].indexes)
                numbers = [
                    s,
                    int(self.state.first_index[s]) if uses else -1,
                    int(uses),
                    len(bound),
                    0,
                ]
                numbers += [bound[0], layout.CODES] if uses else []
                for other in bound:
                    comparison = self.scene.operator if s < other else FLIPPED[self.scene.operator]
                    numbers += [comparison, layout.CODES, other, layout.CODES]
                table[origin, place, : len(numbers)] = numbers
        return Program(table.reshape(-1), self.stride)

    # -- running -----------------------------------------------------------------------------------

    def limits(self, time: int, counts: Sequence[int]) -> Integers:
        found = np.full(self.n, layout.EVER, np.int64)
        for s, window in enumerate(self.scene.windows):
            if window.kind == layout.TIME:
                found[s] = time - window.size
            elif window.kind == layout.COUNT:
                found[s] = counts[s] - window.size - 1
            elif window.kind == layout.PARTITIONED:
                found[s] = layout.NEVER - 1 if self.retracting else counts[s]
        return found

    def final_limits(self, now: int) -> Integers:
        return self.limits(
            now, [sum(row.source == s for row in self.scene.rows) for s in range(self.n)]
        )

    def drive(
        self,
        call: Callable[[int, int, int], tuple[int, int, int, int, int]],
        grow: Callable[[int], None] | None = None,
    ) -> Iterator[list[int]]:
        """Call a kernel with (event, resume, enough) until it is done, and meet its requests.

        Yield columns of results. ``grow`` makes room where one row's is not enough.
        """
        event, resume = 0, 0
        while True:
            status, event, count, need, resume = call(event, resume, max(1, self.out.shape[1] - 1))
            yield from self.out[:, :count].T.tolist()
            self.seen.add(int(status))
            if status == layout.DONE:
                return
            if status == layout.GROW and grow is not None:
                grow(event)
            elif status == layout.GROW:
                self.state.grow(
                    int(self.sources[event]),
                    int(
                        self.limits(int(self.times[event]), self.counts[event])[self.sources[event]]
                    ),
                )
            elif status == layout.OVERFLOW and need > self.out.shape[1]:
                self.out = np.empty((2 + self.n, need), np.int64)

    def expire(self, now: int, policy: int) -> None:
        expire_all(self.state.arena, self.final_limits(now), policy, self.state.counters)

    def held(self, now: int) -> list[list[int]]:
        """Return the positions inside each window."""
        limits = self.final_limits(now)
        return [self.state.positions(s, int(limits[s])).tolist() for s in range(self.n)]
