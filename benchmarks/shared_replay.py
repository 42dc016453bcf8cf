"""A shared join over rows that arrive by a clock that can be measured or simulated."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from muntin.kernels import scheduler_state as at
from muntin.operators.join import JoinOperator, NewRows
from muntin.operators.join.released import ReleasedMatches
from muntin.operators.join.shared import SharedTactic

Integers = npt.NDArray[np.int64]

_LONGEST = (1 << 62) - 1


@dataclass
class Timing:
    """The clock of a replay, and when the replay yields.

    Parameters
    ----------
    gap : int
        The clock stands still when the machine does something else for more nanoseconds than that.
        Work looks at the clock every few microseconds.
    costs : tuple of int, optional
        Nanoseconds per row looked at and per match found. With them the clock moves by these alone:
        a simulation without overheads.
    turn : int
        Nanoseconds on the clock after which a replay yields.
    speed : float
        The speed of the clock relative to the machine's. It may change between turns, when the
        machine has become faster or slower.
    """

    gap: int = _LONGEST
    costs: tuple[int, int] | None = None
    turn: int = _LONGEST
    speed: float = 1.0


@dataclass(frozen=True)
class Replay:
    """A shared join and its tactic."""

    join: JoinOperator
    tactic: SharedTactic

    @classmethod
    def of(cls, join: JoinOperator) -> Replay:
        """Return the replay of a join that is scheduled."""
        assert isinstance(join.tactic, SharedTactic), "the join is scheduled"
        return cls(join, join.tactic)

    def run(
        self, news: Sequence[NewRows], arrivals: Integers, now: int, timing: Timing
    ) -> Iterator[ReleasedMatches | None]:
        """Work as if rows came at their arrivals, in total order, in nanoseconds from now on.

        The clock is put forward to the next arrival when there is nothing to do, and stands still
        between turns. Matches are written for each level apart, so the cost of an output stream is
        part of the measurement, as in the paper.
        """
        join, tactic = self.join, self.tactic
        join.take(news, now)
        state = tactic.work_queue.state
        state[[at.APART, at.PUNCTUAL, at.NOW, at.IDLE, at.LOST]] = 1, 1, 0, 0, 0
        state[at.CLOCK] = at.MEASURED if timing.costs is None else at.COUNTED
        if timing.costs is not None:
            state[[at.PROBE_COST, at.RESULT_COST]] = timing.costs
        tactic.arrivals = arrivals
        while tactic.is_busy():
            state[[at.UNTIL, at.GAP]] = min(state[at.NOW] + timing.turn, _LONGEST), timing.gap
            state[at.SPEED] = round(timing.speed * (1 << at.EVENLY))
            state[at.SINCE] = state[at.SEEN] = time.monotonic_ns()
            released = tactic.work()
            if timing.costs is None:
                state[at.NOW] += (state[at.SEEN] - state[at.SINCE]) * state[at.SPEED] >> at.EVENLY
            yield released
        state[at.GAP] = 0
        join.rest()


def response_times(released: ReleasedMatches, level: int) -> Integers:
    """Return the nanoseconds from the arrival of each match's newest row to its release."""
    rows = released.out[released.places(level)]
    first = 2 + released.sources
    times: Integers = rows[:, first + at.R_RELEASED] - rows[:, first + at.R_ARRIVAL]
    return times
