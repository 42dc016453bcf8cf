"""The streams, windows and queries of [Hammad03], run under all three schedulers at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.declarations import Declarations
from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.kernels import scheduler_state as at
from muntin.kernels.layout import N_SCANNED
from muntin.operators.join import NewRows, Tools
from muntin.operators.join.released import ReleasedMatches
from muntin.operators.join.schedule import Schedule
from muntin.operators.workspace import Workspace
from muntin.planner.join_planner import plan_join
from muntin.schedule.levels import Levels
from muntin.sql.streams import make_stream
from muntin.state.batch import Batch
from muntin.testing import simulated_join as clock_of
from muntin.testing.simulated_join import SimulatedJoin, Timing, response_times

Integers = npt.NDArray[np.int64]

SCHEDULERS = ("lwo", "swf", "mqt")
WINDOWS = {
    "Uniform": (1, 100, 200, 300, 400, 500, 600),
    "Mostly-Small": (1, 5, 15, 30, 60, 300, 600),
    "Mostly-Large": (1, 60, 300, 420, 510, 570, 600),
    "Small-Large": (1, 5, 15, 300, 510, 570, 600),
}
"""Table 1: windows in seconds."""
DISTINCT = 500
"""Values, so that two rows agree with probability 0.002."""
_SECOND = 1_000_000
_LARGEST = 600
_SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
_GAP = 20_000
"""Nanoseconds between two readings of the clock that are never work: another process ran."""
_COSTS = (1_000, 0)
_TURN = 5_000_000
"""Nanoseconds per turn of a scheduler: long enough for warm caches, short enough to be fair."""
_LONG_TURN = 1_000 * _TURN
_BEAT = 1_500_000
_FIRST_BEATS = 60


@dataclass(frozen=True)
class Streams:
    """Two streams: a largest window of history, then ``rows`` new rows of both together.

    Parameters
    ----------
    rate
        Rows per second of each stream, in the time of the streams.
    rows
        New rows.
    burst
        The mean size of bursts: Pareto, with gaps between them so that the rate stays.
    at_once
        When not 0, the number of rows that arrive together, with the last of them; their times do
        not change.
    seed
        Of the generator.
    """

    rate: int
    rows: int
    burst: float = 1.0
    at_once: int = 0
    seed: int = 1

    @cached_property
    def _drawn(self) -> list[tuple[Integers, Integers]]:
        """For each stream times in microseconds and values."""
        generator = np.random.default_rng(self.seed)
        parts = []
        for _ in range(2):
            before = self._times(generator, self.rate * _LARGEST)
            after = self._times(generator, self.rows // 2) + _LARGEST * _SECOND
            times = np.concatenate([before, after])
            parts.append((times, generator.integers(0, DISTINCT, len(times))))
        return parts

    def _times(self, generator: np.random.Generator, rows: int) -> Integers:
        """Return arrivals of a number of rows from 0 on, at the rate."""
        sizes = np.ones(rows, np.int64)
        if self.burst > 1:
            # Pareto from 1 on, with the mean wanted; parts of rows become rows by chance, so the
            # mean stays.
            drawn = 1 + generator.pareto(self.burst / (self.burst - 1), rows)
            sizes = np.minimum(drawn + generator.random(rows), rows).astype(np.int64)
            sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), rows)) + 1]
        moments = np.cumsum(generator.exponential(1.0, len(sizes) + 1))
        spread = moments[:-1] / moments[-1] * (rows / self.rate * _SECOND)
        return np.repeat(spread.astype(np.int64), sizes)[:rows]

    def rows_of(self, *, new: bool) -> list[NewRows]:
        """Return the history or the new rows."""
        parts = []
        for times, values in self._drawn:
            history = self.rate * _LARGEST
            chosen = slice(history, None) if new else slice(0, history)
            mine = times[chosen]
            table = pa.table(
                [values[chosen], pa.array(mine).cast(pa.timestamp("us"))], schema=_SCHEMA
            )
            before = history if new else 0
            parts.append(
                NewRows(
                    before + np.arange(len(mine)), Batch(table, mine, np.zeros(len(mine))), before
                )
            )
        return parts

    def arrivals(self, second: float) -> Integers:
        """Return arrival times of the new rows in total order, for a given stream second."""
        history = self.rate * _LARGEST
        times = (
            np.sort(np.concatenate([times[history:] for times, _ in self._drawn]))
            - _LARGEST * _SECOND
        )
        if self.at_once:
            numbers = np.arange(len(times))
            times = times[
                np.minimum(numbers - numbers % self.at_once + self.at_once, len(times)) - 1
            ]
        return (times * (second / _SECOND)).astype(np.int64)


@dataclass(frozen=True)
class Sharing:
    """Queries over one join: windows in seconds, queries per window, and the access method."""

    windows: tuple[int, ...]
    queries: tuple[int, ...]
    join: str = "hash"
    buckets: int | None = None

    def operator(self, scheduler: str, streams: Streams) -> SimulatedJoin:
        """Return the join, with history."""
        declared = Declarations()
        declared.set("join", self.join)
        if self.buckets is not None:
            declared.set("buckets", self.buckets)
        for name in "AB":
            declared.add_stream(make_stream(name, _SCHEMA, "ts", 0))
        window = f"[RANGE {self.windows[-1]} SECONDS]"
        query = declared.read(f"SELECT A.k FROM A {window}, B {window} WHERE A.k = B.k", "q")
        sizes = tuple((size * _SECOND, size * _SECOND) for size in self.windows)
        levels = Levels(sizes, tuple(self.queries), looks=(1, 0), rates=(1, 1))
        tools = Tools(Evaluator(Duck()), Workspace())
        join = SimulatedJoin(
            plan_join(query, declared.settings), ["A", "B"], {}, tools, Schedule(levels, scheduler)
        )
        history = streams.rows_of(new=False)
        join.fill(history, max(int(part.batch.times[-1]) for part in history))
        return join


@dataclass
class Times:
    """Response times of one scheduler by window: results, sum and maximum of times, counters."""

    queries: tuple[int, ...]
    results: Integers = field(init=False)
    total: Integers = field(init=False)
    most: Integers = field(init=False)
    busy: int = 0
    span: int = 0
    lost: int = 0
    rows_waiting: int = 0
    results_held: int = 0
    rows_stored: int = 0

    def __post_init__(self) -> None:
        self.results, self.total, self.most = (
            np.zeros(len(self.queries), np.int64) for _ in range(3)
        )

    def add(self, released: ReleasedMatches) -> None:
        """Take results."""
        for level in range(len(self.queries)):
            times = response_times(released, level)
            if len(times):
                self.results[level] += len(times)
                self.total[level] += times.sum()
                self.most[level] = max(int(self.most[level]), int(times.max()))

    @property
    def means(self) -> npt.NDArray[np.float64]:
        """Of each window, in nanoseconds."""
        return self.total / np.maximum(self.results, 1)

    @property
    def by_query(self) -> float:
        """The paper's measure: each query's mean response time, averaged over the queries."""
        return float(np.average(self.means, weights=self.queries))

    @property
    def by_result(self) -> float:
        """The mean over all results of all queries."""
        return float((self.total * self.queries).sum() / (self.results * self.queries).sum())


class Metronome:
    """Measures the speed of the machine, which varies by a third per second when it is shared.

    It is a join under LWO over the same rows that is always busy. How many rows it looks at in a
    millisecond or two, beside how many it did at first, is the speed of the clock by which
    schedulers are measured.
    """

    def __init__(self, sharing: Sharing, streams: Streams) -> None:
        self._sharing, self._streams = sharing, streams
        self._start()
        self._reference = float(np.median([self._rate() for _ in range(_FIRST_BEATS)]))

    def _start(self) -> None:
        self._join = self._sharing.operator("lwo", self._streams)
        news = self._streams.rows_of(new=True)
        now = max(int(part.batch.times[-1]) for part in news)
        self._going = self._join.replay(
            news, self._streams.arrivals(0.0), now, Timing(_GAP, turn=_BEAT)
        )

    def _rate(self) -> float:
        """Return rows looked at in a nanosecond."""
        counters, clock = self._join.state.counters, self._join.simulated.clock
        looked, before = int(counters[N_SCANNED]), int(clock[clock_of.NOW])
        if next(self._going, None) is None and not self._join.simulated.is_busy():
            self._start()
            return self._rate()
        return (int(counters[N_SCANNED]) - looked) / (int(clock[clock_of.NOW]) - before)

    def speed(self) -> float:
        """Return the speed of the machine relative to its speed at the start."""
        return self._rate() / self._reference


def run(join: SimulatedJoin, streams: Streams, second: float, timing: Timing) -> Iterator[Times]:
    """Yield after every turn, and at the end what there is to know."""
    tactic = join.simulated
    assert tactic.schedule is not None, "a simulated join is scheduled"
    times = Times(tactic.schedule.levels.counts)
    news, arrivals = streams.rows_of(new=True), streams.arrivals(second)
    now = max(int(part.batch.times[-1]) for part in news)
    for released in join.replay(news, arrivals, now, timing):
        if released is not None:
            times.add(released)
            times.span = max(
                times.span, int(released.out[: released.count, 4 + at.R_RELEASED].max())
            )
        yield times
    times.busy = times.span - int(tactic.clock[clock_of.IDLE])
    times.lost = int(tactic.clock[clock_of.LOST])
    stats = tactic.work_queue.stats()
    times.rows_waiting, times.results_held = stats["most_rows_waiting"], stats["most_results_held"]
    times.rows_stored = sum(join.rows())
    yield times


def run_together(
    sharing: Sharing,
    streams: Streams,
    second: float,
    schedulers: Sequence[str],
    metronome: Metronome | None = None,
) -> dict[str, Times]:
    """Run several schedulers in turn, some milliseconds each, so that all see the same conditions.

    Without a metronome the clock moves by the rows that are looked at alone: a simulation.
    """
    timing = Timing(_GAP, None if metronome else _COSTS, _TURN if metronome else _LONG_TURN)
    going = {
        name: run(sharing.operator(name, streams), streams, second, timing) for name in schedulers
    }
    found: dict[str, Times] = {}
    while going:
        if metronome:
            timing.speed = metronome.speed()
        for name in tuple(going):
            times = next(going[name], None)
            if times is None:
                del going[name]
            else:
                found[name] = times
    return found


def service_time(sharing: Sharing, streams: Streams, metronome: Metronome | None = None) -> float:
    """Nanoseconds that a row costs under LWO when the others have their turns, too."""
    return run_together(sharing, streams, 0.0, SCHEDULERS, metronome)["lwo"].busy / streams.rows
