"""The schedulers LWO, SWF and MQT of [Hammad03] in their plainest form, step by step.

Compiled schedulers are tested against them.

One join of two streams serves several queries that differ in their windows. The simulation has a
simulated clock that moves only by the costs of probing and of making results, so every release has
an exact time. It keeps Python objects and looks at all of them.

**Rows** stand in their total order and are numbered in it. A row without arrival is history: it is
stored at the start and does not probe. Every other row is an *outer* row: it looks for its
partners among the older rows of the other stream, the newest first.

**Windows.** A partner is inside a window if its distance is less than the window's length: the
difference of times, or, where the window counts rows, the number of rows of its stream that came
between it and the outer row. A query has a length for each stream.

**Levels.** Queries with the same windows form a level. Levels are ordered by the sum of their
lengths (then by the lengths), so that a window comes after those it contains, and a level that
comes or goes leaves the order of the others as it is. An outer row *wants* a level if a query there
was added before the row. The *edge* of level ``l`` for an outer row is the largest window on the
other stream among the wanted levels up to ``l``. An outer row has *finished* level ``l`` when it
has looked at all candidates before that edge.

**Queues.** One for each level, first in first out. A row in queue ``l`` has finished all levels
before ``l`` that it wants and continues to the edge of ``l``; it keeps a resume pointer, the next
candidate to look at. The pointer first shows the newest candidate that is older than the row
itself, fixed when the row is taken: rows that are stored later are none of its partners (they find
it). Candidates are all stored rows of the other stream in a nested-loop join, those in the row's
bucket in a hash join. LWO has one queue; its rows continue to the edge of the last level.

**A step** of the machine:

1. *Take*: every row whose arrival is not after the clock is stored and put at the end of queue 0,
   in the total order. Changes of queries that are due before a row are made before it is taken.
   Nothing else looks at arrivals.
2. If all queues are empty, the clock moves to the next arrival and the step begins again; if there
   is none, the machine stops.
3. *Choose* a queue. SWF: the first that is not empty. MQT: see below.
4. *Scan*: the row at its head looks at candidates up to the edge of the queue's level. With
   ``slice`` it stops after that number of candidates and stays at the head, its pointer advanced;
   without, a scan is never interrupted.
5. When the edge is reached the row has finished the level, also if it found nothing. It goes to the
   end of the queue of the next level it wants, and is done when there is none.

The paper's SWF takes one row and scans with it at once. To take all that have arrived is the same:
only the head of a queue counts, and new rows go to the queue that SWF prefers. No row ever
overtakes an older one: rows in the queues of larger windows are older than those in the queues of
smaller ones, each queue holds consecutive rows, and every level is finished by the rows that want
it in their order.

**MaxQT.** For a row that has finished levels before ``i``, while the row before it has finished
those before ``j`` (all of them, if no row is before it), ``MaxQT(i, j) = max over k in i+1..j of
(weights of the queries of levels i..k-1) / (edge of level k-1 - edge of level i-1)``: queries
served for candidates looked at. With windows or ``rates`` that differ between the streams there is
one matrix for each scanned stream; ``rates`` make their units comparable. Ratios are exact; a level
without width has an infinite one. MQT goes through the queues from the largest window to the
smallest; for queue ``i`` the limit ``j`` is the queue that was not empty before it, or the number
of levels. The largest ratio wins, of equal ones the smaller window. It scans one level, whatever
``k`` gave the maximum, and chooses again.

**The router** keeps for each query the *front*: the oldest row, among those not older than the
query, that has not finished its level. A found pair goes to every query that is older than its
outer row and has the partner in its window.

* LWO releases it at once.
* SWF holds it. When an outer row finishes a level, whichever, what is held of it is released to
  every query for which no older row is unfinished: those whose front is this row, before the front
  moves on.
* MQT releases it at once to queries whose front is its outer row, and holds it for the others. When
  a row finishes a level, the front of that level's queries moves to the next row, and what is held
  of that row for them is released.

What is released at one instant comes by level, then by the order in which queries were added; what
one query gets comes in the order of outer rows, and of one outer row in the order in which partners
were found.

**Stores.** A row expires when it is outside the largest window both of the newest row taken and
of every outer row of the other stream that is not done, which may look farther back. A pointer to a
row that has expired is the end: all candidates behind it have expired too.

**Changes.** A query that is added is owed results of rows taken after it. Of the rows that were
there before, it sees those that a query present at that moment still sees, so what it gets does not
depend on the scheduler. A row in flight does not want a level that was not there when it was taken.
A query that is dropped gets nothing more. With its last query a level goes; rows in its queue go to
the end of the queue of the next level they want, where all that wait are older.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muntin.model.settings import Scheduler
from muntin.testing.schedule_levels import ActiveQuery, QueryLevels
from muntin.testing.schedule_trace import (
    FoundPair,
    Number,
    ReleasedPair,
    ScanStep,
    ScheduleRow,
    Setup,
    Trace,
    Viewer,
    Windows,
)


@dataclass
class _Outer:
    """A row that looks for partners, and the next candidate."""

    number: int
    resume: int | None


def simulate(setup: Setup, scheduler: Scheduler) -> Trace:
    """Run a setup to the end."""
    return _Machine(setup, scheduler).run()


class _Machine:
    def __init__(self, setup: Setup, scheduler: Scheduler) -> None:
        self._setup = setup
        self._scheduler = scheduler
        self._trace = Trace(setup)
        self._clock: Number = 0
        self._levels = QueryLevels()
        self._queues: list[deque[_Outer]] = [deque()] if scheduler is Scheduler.LWO else []
        self._next = 0
        self._changes = deque(setup.changes)
        self._stored: tuple[deque[int], deque[int]] = (deque(), deque())
        self._newest: dict[tuple[int, int | None], int] = {}
        self._previous: dict[int, int | None] = {}
        for viewer in setup.queries:
            self._add(viewer, setup.first, (0, 0))
        for number in range(setup.first):
            self._store(number)
        self._next = setup.first

    def run(self) -> Trace:
        while True:
            self._take()
            if any(self._queues):
                self._scan(self._choose())
            elif self._next < len(self._setup.rows):
                self._clock = self._arrival(self._next)
            else:
                return self._trace

    # -- input ------------------------------------------------------------------------------------

    def _arrival(self, number: int) -> Number:
        arrival = self._setup.rows[number].arrival
        assert arrival is not None, "history comes first"
        return arrival

    def _take(self) -> None:
        rows = self._setup.rows
        while self._next < len(rows) and self._arrival(self._next) <= self._clock:
            self._change()
            number = self._next
            outer = _Outer(number, self._candidate(number))
            self._store(number)
            self._next += 1
            if self._levels.queries:
                self._queues[0].append(outer)
        if self._next == len(rows):
            self._change()
        self._trace.most_waiting = max(self._trace.most_waiting, sum(map(len, self._queues)))

    def _candidate(self, number: int) -> int | None:
        """Return the newest candidate for a row that is not stored yet."""
        row = self._setup.rows[number]
        return self._newest.get((1 - row.stream, self._bucket(row)))

    def _bucket(self, row: ScheduleRow) -> int | None:
        """Return the bucket of a row; in a nested-loop join there is one."""
        if self._setup.buckets is None:
            return 0
        return None if row.key is None else row.key % self._setup.buckets

    def _store(self, number: int) -> None:
        row = self._setup.rows[number]
        chain = row.stream, self._bucket(row)
        self._stored[row.stream].append(number)
        if chain[1] is not None:
            self._previous[number] = self._newest.get(chain)
            self._newest[chain] = number
        self._let_go(number)

    def _let_go(self, newest: int) -> None:
        for stream, stored in enumerate(self._stored):
            while stored and not self._is_needed(stored[0], stream, newest):
                stored.popleft()
        self._trace.most_stored = max(self._trace.most_stored, sum(map(len, self._stored)))

    def _is_needed(self, number: int, stream: int, newest: int) -> bool:
        setup, largest = self._setup, self._levels.largest(stream)
        waiting = (outer.number for queue in self._queues for outer in queue)
        looking = (
            outer for outer in waiting if setup.rows[outer].stream != stream and outer > number
        )
        if any(setup.distance(outer, number) < largest for outer in looking):
            return True
        return setup.distance_at(newest + 1, setup.rows[newest].time, number) < largest

    # -- the scheduler ----------------------------------------------------------------------------

    def _choose(self) -> int:
        """Return the queue whose head scans next."""
        if self._scheduler is not Scheduler.MQT:
            return next(level for level, queue in enumerate(self._queues) if queue)
        setup = self._setup
        matrices = [self._levels.matrix(stream, setup.rates[stream]) for stream in (0, 1)]
        best, chosen, limit = None, 0, len(self._queues)
        for level in reversed(range(len(self._queues))):
            if not self._queues[level]:
                continue
            scanned = 1 - setup.rows[self._queues[level][0].number].stream
            ratio = matrices[scanned][level][limit - 1]
            assert ratio is not None, "a row is never as far as the row before it and still waiting"
            if best is None or ratio >= best:
                best, chosen = ratio, level
            limit = level
        return chosen

    def _scan(self, queue: int) -> None:
        setup, outer, begin = self._setup, self._queues[queue][0], self._clock
        level = len(self._levels.windows) - 1 if self._scheduler is Scheduler.LWO else queue
        stream = 1 - setup.rows[outer.number].stream
        edge = self._levels.edge(outer.number, level, stream)
        looked = 0
        while outer.resume is not None and self._is_before(outer, edge) and looked != setup.slice:
            self._clock += setup.probe
            if setup.matches(outer.number, outer.resume):
                self._find(outer.number, outer.resume)
            outer.resume = self._previous[outer.resume]
            looked += 1
        finished = not self._is_before(outer, edge)
        windows = self._levels.windows[level]
        if finished:
            self._queues[queue].popleft()
            self._enqueue(outer, level + 1)
            self._finish(outer.number, windows)
        held = tuple(self._held())
        self._trace.most_held = max(self._trace.most_held, len({pair[1:] for pair in held}))
        waiting = tuple(tuple(each.number for each in queue) for queue in self._queues)
        self._trace.steps.append(
            ScanStep(
                begin,
                self._clock,
                outer.number,
                windows,
                looked,
                outer.resume,
                finished,
                held,
                waiting,
            )
        )
        self._let_go(self._next - 1)

    def _is_before(self, outer: _Outer, edge: int) -> bool:
        """Return whether the next candidate is there and lies before an edge."""
        number = outer.resume
        return (
            number is not None
            and number in self._stored[self._setup.rows[number].stream]
            and self._setup.distance(outer.number, number) < edge
        )

    def _enqueue(self, outer: _Outer, level: int) -> None:
        """Queue a row for the first level from this one on that applies to it, if any."""
        following = [each for each in self._levels.wanted(outer.number) if each >= level]
        if following:
            self._queues[following[0]].append(outer)

    # -- the router -------------------------------------------------------------------------------

    def _in_order(self) -> Iterator[ActiveQuery]:
        for windows in self._levels.windows:
            yield from self._levels.of(windows)

    def _find(self, outer: int, partner: int) -> None:
        self._clock += self._setup.result
        self._trace.steps.append(FoundPair(self._clock, outer, partner))
        stream = self._setup.rows[partner].stream
        for query in self._in_order():
            seen = outer >= query.since and partner >= query.floors[stream]
            if not seen or self._setup.distance(outer, partner) >= query.viewer.windows[stream]:
                continue
            if self._scheduler is Scheduler.LWO or (
                self._scheduler is Scheduler.MQT and query.front == outer
            ):
                self._release(query, outer, [partner])
            else:
                query.held.setdefault(outer, []).append(partner)

    def _finish(self, outer: int, windows: Windows) -> None:
        """Finish a level of a row."""
        if self._scheduler is Scheduler.SWF:
            for query in self._in_order():
                if query.front == outer:
                    self._release(query, outer, query.held.pop(outer, []))
        for query in self._levels.of(windows):
            if query.since <= outer and self._scheduler is not Scheduler.LWO:
                assert query.front == outer, "rows finish a level in their order"
                query.front = outer + 1
                if self._scheduler is Scheduler.MQT:
                    self._release(query, query.front, query.held.pop(query.front, []))

    def _release(self, query: ActiveQuery, outer: int, partners: Sequence[int]) -> None:
        self._trace.steps += [
            ReleasedPair(self._clock, query.viewer.name, outer, partner) for partner in partners
        ]

    def _held(self) -> Iterator[tuple[str, int, int]]:
        for query in self._in_order():
            for outer, partners in query.held.items():
                yield from ((query.viewer.name, outer, partner) for partner in partners)

    # -- queries that come and go -----------------------------------------------------------------

    def _change(self) -> None:
        while self._changes and self._changes[0].before <= self._next:
            change = self._changes.popleft()
            if change.add is not None:
                present = [(query.viewer.windows, query.floors) for query in self._levels.queries]
                self._add(change.add, self._next, self._setup.floors(self._next, present))
            if change.drop is not None:
                self._drop(change.drop)

    def _add(self, viewer: Viewer, since: int, floors: tuple[int, int]) -> None:
        is_new = viewer.windows not in self._levels.windows
        self._levels.queries.append(ActiveQuery(viewer, since, floors, since))
        if is_new and self._scheduler is not Scheduler.LWO:
            self._queues.insert(self._levels.windows.index(viewer.windows), deque())

    def _drop(self, name: str) -> None:
        query = next(each for each in self._levels.queries if each.viewer.name == name)
        level = self._levels.windows.index(query.viewer.windows)
        self._levels.queries.remove(query)
        if self._scheduler is Scheduler.LWO:
            self._queues[0] = deque(
                outer for outer in self._queues[0] if self._levels.wanted(outer.number)
            )
        elif query.viewer.windows not in self._levels.windows:
            for outer in self._queues.pop(level):
                self._enqueue(outer, level)


def alone(setup: Setup, name: str) -> list[tuple[int, int]]:
    """Return the pairs that a query gets from an unshared join, in order, if never dropped.

    A query that is added while others run sees the older rows that any of them still sees.
    """
    present = {viewer.name: (viewer.windows, (0, 0)) for viewer in setup.queries}
    since = setup.first
    for change in setup.changes:
        if name in present:
            break
        if change.drop is not None:
            present.pop(change.drop)
        if change.add is not None:
            since = change.before
            present[change.add.name] = (
                change.add.windows,
                setup.floors(since, list(present.values())),
            )
    windows, floors = present[name]
    pairs = []
    for outer in range(since, len(setup.rows)):
        other = 1 - setup.rows[outer].stream
        for partner in reversed(range(floors[other], outer)):
            inside = (
                setup.rows[partner].stream == other
                and setup.distance(outer, partner) < windows[other]
            )
            if inside and setup.matches(outer, partner):
                pairs.append((outer, partner))
    return pairs
