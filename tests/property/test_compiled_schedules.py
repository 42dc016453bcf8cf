"""The compiled schedulers equal the reference step by step: same scans, releases and moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from muntin.engine.declarations import Declarations
from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.kernels import scheduler_state as at
from muntin.model.clock import BEFORE_ALL
from muntin.model.settings import Scheduler
from muntin.operators.join import NewRows, Tools
from muntin.operators.join.events import EventMaker, Events
from muntin.operators.join.schedule import Schedule
from muntin.operators.workspace import Workspace
from muntin.planner.join_planner import plan_join
from muntin.schedule.levels import Levels, level_counts
from muntin.sql.streams import make_stream
from muntin.state.batch import Batch
from muntin.testing import simulated_join as clock_of
from muntin.testing.schedule_trace import Number, ReleasedPair, ScanStep, ScheduleRow, Setup, Viewer
from muntin.testing.schedules import simulate
from muntin.testing.simulated_join import SimulatedJoin, SimulatedTactic

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
ROOM = 1 << 14


@dataclass(frozen=True)
class Seen:
    """Observed scans (begin, end, outer, level, candidates, finished) and releases.

    A release is (moment, level, outer, partner).
    """

    scans: Sequence[tuple[int, ...]]
    releases: Sequence[tuple[int, ...]]


def levels_of(setup: Setup) -> Levels:
    windows = sorted({query.windows for query in setup.queries}, key=lambda each: (sum(each), each))
    rates = int(setup.rates[0]), int(setup.rates[1])
    weights = [
        [Fraction(query.weight) for query in setup.queries if query.windows == each]
        for each in windows
    ]
    return Levels(tuple(windows), level_counts(weights), (1, 0), rates)


def made(setup: Setup, scheduler: Scheduler, *, checks: str) -> SimulatedTactic:
    """Return the operator of a setup, empty."""
    declared = Declarations()
    declared.set("join", "nested_loop" if setup.buckets is None else "hash")
    if setup.buckets is not None:
        declared.set("buckets", setup.buckets)
    for name in "AB":
        declared.add_stream(make_stream(name, SCHEMA, "ts", 0))
    levels = levels_of(setup)
    largest = levels.edges[-1]
    windows = [
        f"[ROWS {size}]" if counted else f"[RANGE {size} SECONDS]"
        for size, counted in zip(largest, setup.counted, strict=True)
    ]
    query = declared.read(f"SELECT A.k FROM A {windows[0]}, B {windows[1]} WHERE {checks}", "q")
    units = [1 if counted else 1_000_000 for counted in setup.counted]
    scaled = replace(
        levels, sizes=tuple((first * units[0], second * units[1]) for first, second in levels.sizes)
    )
    if units[0] != units[1]:
        # Seconds are microseconds there: a row of the one is then worth as much as in the
        # reference.
        scaled = replace(scaled, rates=(levels.rates[0] * units[1], levels.rates[1] * units[0]))
    plan = plan_join(query, declared.settings)
    join = SimulatedJoin(
        plan,
        ["A", "B"],
        {},
        Tools(Evaluator(Duck()), Workspace()),
        Schedule(scaled, scheduler.value),
    )
    return join.simulated


def positions_of(rows: tuple[ScheduleRow, ...]) -> list[int]:
    """Return the place of each row in its own stream."""
    counts = [0, 0]
    places = []
    for row in rows:
        places.append(counts[row.stream])
        counts[row.stream] += 1
    return places


def events_of(
    join: SimulatedTactic, rows: tuple[ScheduleRow, ...], first: int, last: int
) -> Events:
    """Return rows ``first`` to ``last - 1`` as events, in their order whatever their times."""
    places = positions_of(rows)
    chosen = [
        [number for number in range(first, last) if rows[number].stream == stream]
        for stream in (0, 1)
    ]
    maker = EventMaker(join.windows.plan, join.windows.state, Evaluator(Duck()))
    incoming, offsets = [], np.zeros(last - first, np.int64)
    begin = 0
    for stream, mine in enumerate(chosen):
        times = np.array([rows[number].time * 1_000_000 for number in mine], np.int64)
        table = pa.table(
            [[rows[number].key for number in mine], pa.array(times).cast(pa.timestamp("us"))],
            schema=SCHEMA,
        )
        batch = Batch(table, times, np.zeros(len(mine)))
        formatted, keep = maker.format(
            stream, NewRows(np.array([places[number] for number in mine], np.int64), batch, 0)
        )
        assert keep is None
        offsets[[number - first for number in mine]] = begin + np.arange(
            len(mine)
        ) * join.windows.state.width(stream)
        begin += len(formatted)
        incoming.append(formatted)
    counts = np.cumsum(
        [[row.stream == stream for stream in (0, 1)] for row in rows], axis=0, dtype=np.int64
    )[first:last]
    times = np.array([row.time * 1_000_000 for row in rows[first:last]], np.int64)
    sources = np.array([row.stream for row in rows[first:last]], np.int32)
    unused = np.full(last - first, -1, np.int64)
    return Events(
        sources,
        offsets,
        times,
        unused,
        np.ascontiguousarray(counts).reshape(-1, 2),
        np.concatenate(incoming),
        0.0,
    )


def run(setup: Setup, scheduler: Scheduler, *, checks: str = "A.k = B.k", room: int = ROOM) -> Seen:
    join = made(setup, scheduler, checks=checks)
    rows, first = setup.rows, setup.first
    if first:
        join.insert(events_of(join, rows, 0, first))
    join.windows.now = BEFORE_ALL
    join.trace = np.zeros((1000, clock_of.T_COLUMNS), np.int64)
    join.clock[[clock_of.KIND, clock_of.PROBE_COST, clock_of.RESULT_COST]] = (
        clock_of.COUNTED,
        int(setup.probe),
        int(setup.result),
    )
    if setup.slice is not None:
        join.clock[clock_of.SLICE] = setup.slice
    releases: list[tuple[int, ...]] = []
    if first < len(rows):
        arrivals = np.array([int(row.arrival or 0) for row in rows[first:]], np.int64)
        join.begin(events_of(join, rows, first, len(rows)), arrivals)
        numbers = {
            (row.stream, place): number
            for number, (row, place) in enumerate(zip(rows, positions_of(rows), strict=True))
        }
        while join.is_busy():
            released = join.work(room)
            if released is None:
                continue
            for tag, _, a, b, begin, until, _, moment in released.out[: released.count].tolist():
                outer = tag + first
                members = numbers[0, a], numbers[1, b]
                partner = members[0] if members[1] == outer else members[1]
                assert outer in members
                releases += [(moment, level, outer, partner) for level in range(begin, until)]
    scans = [
        (begin, end, outer + first, level, looked, finished)
        for outer, level, looked, finished, begin, end in join.trace[
            : int(join.clock[clock_of.TRACED])
        ].tolist()
    ]
    assert not join.work_queue.state[at.HELD]
    return Seen(scans, releases)


def expected(setup: Setup, scheduler: Scheduler) -> Seen:
    trace = simulate(setup, scheduler)
    windows = [*levels_of(setup).sizes]
    level_of = {query.name: windows.index(query.windows) for query in setup.queries}
    releases: dict[tuple[int, ...], None] = {}
    for step in trace.steps:
        if isinstance(step, ReleasedPair):
            releases[int(step.time), level_of[step.query], step.outer, step.partner] = None
    scans = [
        (
            int(step.begin),
            int(step.time),
            step.outer,
            windows.index(step.windows),
            step.candidates,
            int(step.finished),
        )
        for step in trace.steps
        if isinstance(step, ScanStep)
    ]
    return Seen(scans, list(releases))


LENGTHS = st.integers(1, 8)
WEIGHTS: st.SearchStrategy[Number] = st.sampled_from([1, 1, 1, 4, Fraction(1, 2), Fraction(5, 3)])
WINDOWS = st.one_of(LENGTHS.map(lambda length: (length, length)), st.tuples(LENGTHS, LENGTHS))


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    drawn = draw(
        st.lists(
            st.tuples(
                st.integers(0, 1),
                st.integers(0, 2),
                st.integers(0, 2),
                st.sampled_from([0, 0, 0, 1, 2, 9]),
            ),
            min_size=8,
            max_size=30,
        )
    )
    history = draw(st.integers(3, 8))
    rows, time, clock = [], 0, 0
    for number, (stream, gap, key, wait) in enumerate(drawn):
        time, clock = time + gap, clock + wait
        rows.append(ScheduleRow(stream, time, key, None if number < history else clock))
    counted = draw(st.sampled_from([(False, False), (True, True), (True, False)]))
    return Setup(
        tuple(rows),
        tuple(
            Viewer(f"q{number}", draw(WINDOWS), draw(WEIGHTS))
            for number in range(draw(st.integers(2, 6)))
        ),
        counted=counted,
        buckets=draw(st.sampled_from([None, None, 1, 2, 3])),
        result=draw(st.sampled_from([0, 0, 1])),
        slice=draw(st.sampled_from([None, None, 1, 2])),
        rates=draw(st.sampled_from([(1, 1), (1, 3)])),
    )


def in_order(releases: Sequence[tuple[int, ...]], level: int) -> list[tuple[int, ...]]:
    return [each for each in releases if each[1] == level]


@given(setups(), st.sampled_from(list(Scheduler)), st.sampled_from([ROOM, ROOM, 1, 2]))
def test_every_scan_and_release_is_that_of_the_reference(
    setup: Setup, scheduler: Scheduler, extra: int
) -> None:
    note(f"{scheduler}: {setup}")
    levels = len(levels_of(setup))
    room = extra if extra == ROOM else levels + extra - 1
    seen, wanted = run(setup, scheduler, room=room), expected(setup, scheduler)
    if room == ROOM:
        # LWO's one queue is that of all levels.
        assert [(*scan[:3], *scan[4:]) for scan in seen.scans] == [
            (*scan[:3], *scan[4:]) for scan in wanted.scans
        ]
        if scheduler is not Scheduler.LWO:
            assert [scan[3] for scan in seen.scans] == [scan[3] for scan in wanted.scans]
    for level in range(levels):
        mine, theirs = in_order(seen.releases, level), in_order(wanted.releases, level)
        assert [each[1:] for each in mine] == [each[1:] for each in theirs]
        if room == ROOM:
            assert [each[0] for each in mine] == [each[0] for each in theirs]


@pytest.mark.parametrize("scheduler", list(Scheduler))
@pytest.mark.parametrize("checks", ["A.k <= B.k", "A.k = B.k AND A.k + 1 > B.k"])
def test_any_condition_can_be_scheduled(scheduler: Scheduler, checks: str) -> None:
    rows = tuple(
        ScheduleRow(number % 2, number, number % 3, arrival=None if number < 9 else number // 4)
        for number in range(40)
    )
    queries = tuple(Viewer(f"q{size}", (size, size)) for size in (2, 5, 11))
    setup = Setup(rows, queries)
    seen = run(setup, scheduler, checks=checks)
    for level, size in enumerate((2, 5, 11)):
        pairs = [
            (outer, partner)
            for outer in range(9, 40)
            for partner in reversed(range(outer))
            if rows[partner].stream != rows[outer].stream
            and outer - partner < size
            and holds(
                checks,
                *(
                    rows[number].key or 0
                    for number in sorted((outer, partner), key=lambda number: rows[number].stream)
                ),
            )
        ]
        assert [each[2:] for each in in_order(seen.releases, level)] == pairs


def holds(checks: str, a: int, b: int) -> bool:
    return a <= b if "<=" in checks else a == b
