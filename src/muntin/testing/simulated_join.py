"""A shared join by a clock that can be set: for measurements, and to compare its steps one by one.

The same schedule as the product's (:func:`muntin.kernels.shared_join.make_schedule`), compiled with
another clock. The clock either moves by the costs of looking at rows and of finding results alone,
a simulation, or it is the machine's, without the time that other processes took. Rows arrive when
the clock reaches their arrival, and every scan can be recorded.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from muntin.kernels import scheduler_state as at
from muntin.kernels.arrays import (
    Arena,
    EventArrays,
    Integers,
    LevelArrays,
    Output,
    Program,
    QueueArrays,
    Table,
)
from muntin.kernels.jit import inline, kernel, prepare_part
from muntin.kernels.level_scan import Clock, Scanned
from muntin.kernels.shared_join import make_schedule, read_machine
from muntin.operators.join import JoinOperator, NewRows, TacticOptions, Tools
from muntin.operators.join.driver import JoinTactic, KernelRun
from muntin.operators.join.registry import make_tactic
from muntin.operators.join.released import ReleasedMatches
from muntin.operators.join.schedule import Schedule
from muntin.operators.join.shared import SharedTactic
from muntin.operators.join.windows import JoinWindows
from muntin.operators.workspace import ResultBuffer
from muntin.plan.join import JoinPlan

# Kinds of clock: one that moves by the costs of looking and finding; the machine's.
COUNTED = 0
MEASURED = 1

# The clock.
KIND = 0
NOW = 1
"""The time of a counted clock; of a measured one, the time at ``SINCE``."""
SLICE = 2
"""Candidates after which a scan looks at arrivals."""
PROBE_COST = 3
RESULT_COST = 4
IDLE = 5
"""By how much the clock was advanced while there was nothing to do."""
GAP = 6
"""Nanoseconds between two reads of the machine's clock from which on they do not count as work."""
SEEN = 7
"""The last read of the machine's clock."""
LOST = 8
"""Nanoseconds that did not count as work."""
SPEED = 9
"""How fast the clock is: its units in ``1 << UNIT`` nanoseconds of the machine's."""
SINCE = 10
"""The machine's time when the clock was at ``NOW``."""
TRACED = 11
"""Scans that were recorded."""
CLOCK_FIELDS = 12
UNIT = 20

# Columns of a trace: outer row, level, candidates, whether it finished, begin and end on the clock.
T_OUTER = 0
T_LEVEL = 1
T_LOOKED = 2
T_FINISHED = 3
T_BEGIN = 4
T_END = 5
T_COLUMNS = 6

_LONGEST = (1 << 62) - 1
_TAKEN = 8
"""Rows that are taken between two reads of the machine's clock."""


class ClockArrays(NamedTuple):
    """The clock, and a row for every scan as far as there is room."""

    clock: Integers
    trace: Table


@inline
def _read(arrays: ClockArrays) -> Any:
    clock = arrays.clock
    if clock[KIND] == COUNTED:
        return clock[NOW]
    machine = read_machine(0)
    if machine - clock[SEEN] > clock[GAP]:
        # Another process had the processor: work reads the clock more often than that.
        clock[LOST] += machine - clock[SEEN]
        clock[SINCE] += machine - clock[SEEN]
    clock[SEEN] = machine
    return clock[NOW] + ((machine - clock[SINCE]) * clock[SPEED] >> UNIT)


@inline
def _is_measured(arrays: ClockArrays) -> Any:
    return arrays.clock[KIND] == MEASURED


@inline
def _spend(arrays: ClockArrays, looked: int, found: int) -> Any:
    clock = arrays.clock
    clock[NOW] += looked * clock[PROBE_COST] + found * clock[RESULT_COST]
    return clock[NOW]


@inline
def _most_candidates(arrays: ClockArrays) -> Any:
    return arrays.clock[SLICE]


@inline
def _has_come(_arrays: ClockArrays, arrival: int, now: int) -> bool:
    return arrival <= now


@inline
def _note_taken(arrays: ClockArrays, event: int) -> None:
    if (event + 1) % _TAKEN == 0 and arrays.clock[KIND] == MEASURED:
        _read(arrays)


@inline
def _wait(arrays: ClockArrays, arrival: int, _now: int) -> Any:
    clock = arrays.clock
    now = _read(arrays)
    if arrival > now:
        clock[NOW] += arrival - now
        clock[IDLE] += arrival - now
        now = arrival
    return now


@inline
def _record(arrays: ClockArrays, scanned: Scanned, begin: int) -> None:
    clock, trace = arrays.clock, arrays.trace
    place = clock[TRACED]
    if place < trace.shape[0]:
        trace[place, T_OUTER] = scanned.number
        trace[place, T_LEVEL] = scanned.level
        trace[place, T_LOOKED] = scanned.looked
        trace[place, T_FINISHED] = scanned.finished
        trace[place, T_BEGIN] = begin
        trace[place, T_END] = _read(arrays)
        clock[TRACED] = place + 1


_run = make_schedule(
    Clock(
        read=_read,
        is_measured=_is_measured,
        spend=_spend,
        most_candidates=_most_candidates,
        has_come=_has_come,
        note_taken=_note_taken,
        wait=_wait,
        record=_record,
    )
)


@kernel(
    Arena, Program, EventArrays, Integers, LevelArrays, QueueArrays, ClockArrays, Output,
    part="simulation",
)  # fmt: skip
def simulate_schedule(  # noqa: PLR0913 (a kernel takes its arrays in groups)
    arena: Arena, program: Program, events: EventArrays, arrivals: Integers,
    levels: LevelArrays, queues: QueueArrays, clock: ClockArrays, output: Output,
) -> Any:  # fmt: skip
    """Do what :func:`muntin.kernels.shared_join.run_schedule` does, by a clock that can be set."""
    return _run(arena, program, events, arrivals, levels, queues, clock, output)


@dataclass
class Timing:
    """How a replay measures time, and when it yields.

    Parameters
    ----------
    gap : int
        Nanoseconds between two reads of the machine's clock above which it stands still: the
        machine did something else. Work reads the clock every few microseconds.
    costs : tuple of int, optional
        Of looking at a row and of finding a result. With them the clock moves by these alone: a
        simulation without overheads.
    turn : int
        Nanoseconds on the clock after which a replay yields.
    speed : float
        How fast the clock is relative to the machine's. It may be changed between turns, when the
        machine has become faster or slower.
    """

    gap: int = _LONGEST
    costs: tuple[int, int] | None = None
    turn: int = _LONGEST
    speed: float = 1.0


class SimulatedTactic(SharedTactic):
    """The tactic of a shared join by a clock that can be set.

    ``trace`` has a row per scan as far as it has room.
    """

    def __init__(
        self, windows: JoinWindows, buffer: ResultBuffer, eager: JoinTactic, schedule: Schedule
    ) -> None:
        prepare_part("simulation")
        super().__init__(windows, buffer, eager, schedule)
        self.clock = np.zeros(CLOCK_FIELDS, np.int64)
        self.clock[[SLICE, GAP]] = _LONGEST
        self.trace = np.zeros((0, T_COLUMNS), np.int64)

    def run_schedule(self, run: KernelRun, output: Output) -> int:
        """Call the kernel with the clock and return why it stopped."""
        return int(
            simulate_schedule(
                self.windows.state.arena, self.windows.program, run.events.arrays, self.arrivals,
                self.level_arrays, self.work_queue.arrays, ClockArrays(self.clock, self.trace),
                output,
            )
        )  # fmt: skip


class SimulatedJoin(JoinOperator):
    """A shared join by a clock that can be set."""

    def __init__(
        self,
        plan: JoinPlan,
        streams: Sequence[str],
        tables: Mapping[str, pa.Table],
        tools: Tools,
        schedule: Schedule,
    ) -> None:
        windows = JoinWindows(plan, streams)
        buffer = ResultBuffer(tools.workspace, len(plan.sources))
        eager = make_tactic(windows, buffer, TacticOptions())
        self.simulated = SimulatedTactic(windows, buffer, eager, schedule)
        super().__init__(self.simulated, tools.evaluator, tables)

    def replay(
        self, news: Sequence[NewRows], arrivals: Integers, now: int, timing: Timing
    ) -> Iterator[ReleasedMatches | None]:
        """Work as if rows came at their arrivals, in total order, in nanoseconds from now on.

        The clock is advanced to the next arrival when there is nothing to do, and stands still
        between turns. Results are written for each level apart: what an output stream costs is then
        part of the measurement, as in [Hammad03].
        """
        tactic = self.simulated
        self.take(news, now)
        clock, state = tactic.clock, tactic.work_queue.state
        state[at.APART] = 1
        clock[[NOW, IDLE, LOST]] = 0
        clock[KIND] = MEASURED if timing.costs is None else COUNTED
        if timing.costs is not None:
            clock[[PROBE_COST, RESULT_COST]] = timing.costs
        tactic.arrivals = arrivals
        while tactic.is_busy():
            state[at.UNTIL] = min(int(clock[NOW]) + timing.turn, _LONGEST)
            clock[[GAP, SPEED]] = timing.gap, round(timing.speed * (1 << UNIT))
            clock[SINCE] = clock[SEEN] = time.monotonic_ns()
            released = tactic.work()
            if timing.costs is None:
                clock[NOW] += (clock[SEEN] - clock[SINCE]) * clock[SPEED] >> UNIT
            yield released
        self.rest()


def response_times(released: ReleasedMatches, level: int) -> Integers:
    """Return the nanoseconds from the arrival of each match's newest row to its release."""
    rows = released.out[released.places(level)]
    first = 2 + released.sources
    times: Integers = rows[:, first + at.R_RELEASED] - rows[:, first + at.R_ARRIVAL]
    return times
