"""One partition: the engines that run its share of every scheme. No Spark, no I/O: shares in, results out.

Time is the same in all partitions: the newest time of each stream comes with every share, from all tasks of the micro-batch. The
queries of a lane read the same streams; how far time has come for a lane follows from the newest times of these streams and
the program alone. A row is late for a lane when it comes behind the lane's watermark of the batches before.

What must be remembered to build the partition again is the shares themselves, from the oldest that a window still reaches on. A
:class:`Ledger` says which those are.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from muntin.engine.declaration_checks import SINK_OPTIONS
from muntin.engine.engine import Engine, OnRelease
from muntin.model.catalog import Stream
from muntin.model.clock import BEFORE_ALL
from muntin.model.settings import Settings
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow
from muntin.plan.query import Emit
from muntin.planner.overload_plan import is_adapting
from muntin.planner.partitioning import OWN, marked
from muntin.runtime.external_quota import Governed, LimitState
from muntin.runtime.suspended_query import reason_of
from muntin.spark.exchange.controls import CONTROLS, HELD, ControlRow
from muntin.spark.exchange.deployment import Deployment, Place, PlacedQuery
from muntin.spark.exchange.messages import (
    TIMELESS,
    Output,
    Part,
    PartitionBatch,
    from_blob,
    to_blob,
)
from muntin.spark.exchange.partition_metrics import PartitionMetrics, QueryClock
from muntin.spark.exchange.time_bounds import TimeBounds, bounds_after
from muntin.spark.partition.next_deadline import next_due

Rows = dict[tuple[int, str], pa.Table]
"""Rows of each scheme and stream."""
Since = dict[str, dict[str, int]]
"""For each query, how many of the rows of a snapshot came before it, stream by stream."""
LATE = "late"
RESULTS = "results"
CLOCK = "clock"
"""The kind of output that tells the last stage of a query how far time has come, and when its first row came, if one has."""


@dataclass(frozen=True)
class Clock:
    """How far time has come in a partition: the newest time of each stream, and the last moment.

    ``limits``: what limited queries are allowed, and how much of it is used, see :class:`muntin.runtime.external_quota.Governed`.
    ``ahead`` is for each stream how many rows in a row were too far ahead of it, see :mod:`muntin.spark.exchange.time_bounds`.
    ``positions`` is for each lane how many rows of its streams there were: FIRST and LAST in a last stage know rows by their positions.
    """

    newest: dict[str, int]
    moment: int
    limits: Mapping[str, LimitState] = field(default_factory=dict)
    positions: dict[str, dict[str, int]] | None = None
    ahead: Mapping[str, int] = field(default_factory=dict)


@dataclass
class _Lane:
    """An engine, the number of the scheme whose rows it gets, and how its streams go.

    ``final`` is the place up to which all is final for its queries, ``floor`` where that was before the share that is applied.
    """

    name: str
    engine: Engine
    scheme: int
    streams: frozenset[str]
    everywhere: frozenset[str]
    final: Place
    floor: Place
    tables: set[str] = field(default_factory=set)


class Partition:
    """The engines of one partition under a program."""

    def __init__(self, program: Deployment, number: int) -> None:
        self.number = number
        self.extend(program)
        self._lanes: dict[str, _Lane] = {}
        self._active: list[int] = []
        self.reach: dict[tuple[int, str], Reach] = {}
        """How far the queries in force reach."""
        self._epoch = -1
        self._time = TimeBounds({}, {}, {})
        self._rows_ahead: dict[str, int] = {}
        self._moment = BEFORE_ALL
        self._came: dict[str, int] = {}
        self._settings: dict[int, Settings] = {}
        self._limits: Mapping[str, LimitState] = {}
        """What was allowed before the first share, if it is not the first of all."""
        self._begins: dict[str, dict[str, int]] = {}
        self._refused: dict[str, str] = {}
        """Queries that could not be registered, and why."""

    # -- program -----------------------------------------------------------------------------------

    def extend(self, program: Deployment) -> None:
        """Take the program with further changes; they come into force with shares of their epochs."""
        self._program = program
        self._placed = program.placed()
        self._schemes = {
            placed.partitioning_number: frozenset(placed.streams) for placed in self._placed
        }

    def _follow(self, share: PartitionBatch) -> None:
        """Bring the queries up to the epoch of a share, one change after the other."""
        first = share.epoch if self._epoch < 0 else self._epoch + 1
        for epoch in range(first, share.epoch + 1):
            wanted = self._program.active(epoch)
            for place in [place for place in self._active if place not in wanted]:
                self._drop(self._placed[place])
            for place in [place for place in wanted if place not in self._active]:
                self._add(self._placed[place], share.carried)
            self._active, self._epoch = wanted, epoch
            self.reach = reach_of(self._placed[place] for place in wanted)
        self._begins = {}

    def _drop(self, placed: PlacedQuery) -> None:
        engine = self._lanes[placed.dataflow].engine
        if self._refused.pop(placed.query.name, None) is None:
            for part in placed.parts:
                engine.drop(part.name)
        if not engine.queries():
            del self._lanes[placed.dataflow]

    def _add(self, placed: PlacedQuery, carried: Iterable[tuple[str, Part]]) -> None:
        lane = self._lanes.get(placed.dataflow)
        if lane is None:
            lane = self._opened(placed, [part for name, part in carried if name == placed.dataflow])
        for source in placed.query.sources:
            if source.stored and source.relation not in lane.tables:
                lane.engine.table(source.relation, from_blob(self._program.tables[source.relation]))
                lane.tables.add(source.relation)
        self._register(placed, lane.engine)

    def _register(self, placed: PlacedQuery, engine: Engine) -> None:
        """Register the parts of a query, or none of them: then the query is suspended."""
        done = []
        try:
            for part in placed.parts:
                engine.register(part, placed.registered.settings)
                done.append(part.name)
        except Exception as error:  # noqa: BLE001 (whatever it is, the batch goes on for the others)
            self._refused[placed.query.name] = reason_of(error)
            for name in done:
                engine.drop(name)

    def suspended(self) -> dict[str, str]:
        """Return the queries that are suspended in this partition, and why."""
        found = {}
        for placed in (self._placed[place] for place in self._active):
            failed = self._lanes[placed.dataflow].engine.suspended()
            reasons = [failed[part.name] for part in placed.parts if part.name in failed]
            reason = self._refused.get(placed.query.name) or next(iter(reasons), None)
            if reason is not None:
                found[placed.query.name] = reason
        return found

    def _opened(self, placed: PlacedQuery, carried: list[Part]) -> _Lane:
        """A new lane; what was late for the partitions before is late for it, too."""
        everywhere = frozenset(
            route.stream for route in placed.partitioning.routes if route.everywhere
        )
        final = self._program.watermark(placed.streams, self._time.newest)
        engine = Engine.governed_from_outside()
        lane = _Lane(
            placed.dataflow,
            engine,
            placed.partitioning_number,
            frozenset(placed.streams),
            everywhere,
            final,
            final,
        )
        self._lanes[placed.dataflow] = lane
        for stream in self._program.streams:
            lane.engine.declare(_as_sent(stream, everywhere))
        lane.engine.begin_at(self._begins.get(placed.dataflow, {}))
        lane.engine.restore(
            {stream: table for (_, stream), table in _rows_of(carried).items()}, final, self._moment
        )
        return lane

    # -- rows --------------------------------------------------------------------------------------

    def apply(self, share: PartitionBatch, on_release: OnRelease | None = None) -> list[Output]:
        """Process a share and return what comes of it; ``on_release`` gets results before that, as soon as they are made."""
        arrival = time.monotonic()
        self._move(share)
        rows = _rows_of(share.parts)
        self._came = self._at_home(rows)
        rows, ahead = self._in_range(rows)
        self._rows_ahead = self._at_home(ahead)
        outputs = [
            Output(LATE, stream, table)
            for (scheme, stream), table in rows.items()
            if scheme == TIMELESS
        ]
        for lane in self._lanes.values():
            own = {
                stream: table for (scheme, stream), table in rows.items() if scheme == lane.scheme
            }
            late = lane.engine.feed(own, lane.final, arrival=arrival, on_release=on_release)
            if share.moment is not None:
                lane.engine.advance(share.moment, on_release=on_release)
            outputs += self._late(
                lane,
                {
                    stream: table
                    for (scheme, stream), table in ahead.items()
                    if scheme == lane.scheme
                },
            )
            outputs += self._late(lane, late)
        self._moment = max(self._moment, share.moment if share.moment is not None else BEFORE_ALL)
        suspended = self.suspended()
        running = [
            self._placed[place]
            for place in self._active
            if self._placed[place].query.name not in suspended
        ]
        return [*outputs, *(output for placed in running for output in self._results(placed))]

    def answers(self, controls: Iterable[str]) -> Iterator[Output]:
        """What control rows ask for: the rows that lanes hold; the first partition also tells that they came."""
        for control in map(ControlRow.from_text, controls):
            if self.number == 0:
                yield Output(CONTROLS, control.name, pa.table({}))
            for lane, stream in control.exports:
                yield Output(
                    HELD, json.dumps([control.name, lane, stream]), self.held(lane, stream)
                )

    def held(self, name: str, stream: str) -> pa.Table:
        """The rows of a stream that a lane holds, as far as they are at home here."""
        lane = self._lanes.get(name)
        if lane is None:
            return next(
                known for known in self._program.streams if known.name == stream
            ).schema.empty_table()
        rows = lane.engine.held(stream)
        return (
            rows.filter(rows.column(OWN)).drop_columns([OWN]) if stream in lane.everywhere else rows
        )

    def repeat(self, share: PartitionBatch) -> None:
        """Process a share whose results are known: only what stays of it in the windows."""
        self._move(share)
        rows, _ = self._in_range(_rows_of(share.parts))
        for lane in self._lanes.values():
            self._refill(
                lane,
                {
                    stream: table
                    for (scheme, stream), table in rows.items()
                    if scheme == lane.scheme
                },
                share.moment,
            )
        self._moment = max(self._moment, share.moment if share.moment is not None else BEFORE_ALL)
        self._forget_results()

    def snapshot(self, batch: int) -> tuple[PartitionBatch, Since]:
        """All rows that are held as one share, lane by lane, and how many of them came before each query."""
        carried, since = [], {}
        for name, lane in self._lanes.items():
            held, came = lane.engine.snapshot()
            carried += [
                (name, Part(lane.scheme, stream, 0, to_blob(table)))
                for stream, table in held.items()
            ]
            since.update(came)
        return PartitionBatch(
            batch, self._epoch, dict(self._time.newest), (), carried=tuple(carried)
        ), since

    def load(self, share: PartitionBatch, clock: Clock, since: Since) -> None:
        """Take a snapshot into a new partition. Time moves when the queries are there: so nothing of it is late."""
        self._follow(replace(share, carried=()))
        self.restore(
            replace(clock, positions=None)
        )  # rows that partitioned windows keep are counted anew
        for place in self._active:
            placed = self._placed[place]
            for part in placed.parts if placed.query.name not in self._refused else ():
                self._lanes[placed.dataflow].engine.let_come_before(part.name, since[part.name])
        for name, lane in self._lanes.items():
            rows = {part.stream: from_blob(part.blob) for of, part in share.carried if of == name}
            self._refill(lane, rows, clock.moment if clock.moment > BEFORE_ALL else None)
        self._forget_results()

    def _refill(self, lane: _Lane, rows: dict[str, pa.Table], moment: int | None) -> None:
        """Rows into the windows of a lane, without results."""
        lane.engine.feed(rows, lane.final, silent=True)
        if moment is not None:
            lane.engine.advance(moment, silent=True)

    def _move(self, share: PartitionBatch) -> None:
        """Bring program, limits and watermark up to a share."""
        self._follow(share)
        governed = self._governed()
        self.load_limits(self._limits)
        self._limits = {}
        for limits in (
            limits for text in share.controls for limits in ControlRow.from_text(text).limits
        ):
            if limits.query in governed:
                governed[limits.query].limit(limits.rates[self.number], limits.caps[self.number])
        self._time = bounds_after(self._time.newest, self._time.ahead, self._moment, share)
        for lane in self._lanes.values():
            lane.floor = lane.final
        self._move_lanes()

    def _move_lanes(self) -> None:
        for lane in self._lanes.values():
            lane.final = self._program.watermark(lane.streams, self._time.newest)

    def reached(self) -> dict[int, int]:
        """How far time has come by rows under every scheme that ever was."""
        return {
            number: self._program.watermark(streams, self._time.newest)[0]
            for number, streams in self._schemes.items()
        }

    def _in_range(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the rows in range of their streams, and those too far ahead."""
        times = {stream.name: stream.time for stream in self._program.streams}
        inside, ahead = {}, {}
        for (scheme, stream), table in rows.items():
            beyond = None
            if scheme != TIMELESS:
                table, beyond = self._time.split(table, stream, times[stream])  # noqa: PLW2901 - what is left of it
            inside[scheme, stream] = table
            if beyond is not None:
                ahead[scheme, stream] = beyond
        return inside, ahead

    def _governed(self) -> dict[str, Governed]:
        """The limited joins by the names of their queries."""
        return {
            name: one
            for lane in self._lanes.values()
            for name, one in lane.engine.governed().items()
        }

    def limits(self) -> dict[str, LimitState]:
        """What limited joins are allowed, and how much of it is used."""
        return {name: one.state() for name, one in self._governed().items()}

    def load_limits(self, limits: Mapping[str, LimitState]) -> None:
        """Let them go on from there."""
        for name, one in self._governed().items() if limits else ():
            if name in limits:
                one.load(limits[name])

    def _results(self, placed: PlacedQuery) -> Iterator[Output]:
        """The results of a query since the last share, or the changes of its parts for its last stage."""
        engine = self._lanes[placed.dataflow].engine
        for part in placed.parts:
            table = engine.handle(part.name).poll()
            if len(table):
                yield Output(RESULTS, part.name, table)
        if placed.distribution.last is not None and (
            placed.query.emit is Emit.SNAPSHOT or placed.distribution.last.has_beginning
        ):
            ask = engine.begun if placed.query.emit is Emit.SNAPSHOT else engine.seen
            first = min(
                (instant for part in placed.parts if (instant := ask(part.name)) is not None),
                default=None,
            )
            times = {
                "first": pa.array([first], pa.int64()),
                "closed": [max(self._lanes[placed.dataflow].final[0] - 1, self._moment)],
            }
            yield Output(CLOCK, placed.query.name, pa.table(times))

    def _forget_results(self) -> None:
        """Let go of what pipelines have before any row comes: it is known by now."""
        suspended = self.suspended()
        for placed in (self._placed[place] for place in self._active):
            for part in placed.parts if placed.query.name not in suspended else ():
                self._lanes[placed.dataflow].engine.handle(part.name).poll()

    def _late(self, lane: _Lane, late: dict[str, pa.Table]) -> list[Output]:
        """The late rows of a lane; of a stream that goes several ways the lane tells for which the most are late."""
        outputs = []
        for stream, table in late.items():
            if lane is not self._teller(stream):
                continue
            told = table
            if stream in lane.everywhere:
                # Every partition sees the row; the one in which it is at home tells.
                told = table.filter(table.column(OWN)).drop_columns([OWN])
            if len(told):
                outputs.append(Output(LATE, stream, told))
        return outputs

    def clock(self) -> Clock:
        """How far time has come."""
        positions = {name: lane.engine.positions() for name, lane in self._lanes.items()}
        return Clock(
            dict(self._time.newest), self._moment, self.limits(), positions, dict(self._time.ahead)
        )

    def _teller(self, stream: str) -> _Lane | None:
        """Return the lane that tells of a stream: the one that is furthest, for which every row is late that is late for any.

        All partitions choose the same one, whatever the order in which they opened their lanes.
        """
        readers = (lane for lane in self._lanes.values() if stream in lane.streams)
        return max(readers, key=lambda lane: (lane.floor, -lane.scheme, lane.name), default=None)

    def _at_home(self, rows: dict[tuple[int, str], pa.Table]) -> dict[str, int]:
        """How many rows of each stream are at home here: over all partitions every row counts once."""
        found = {}
        for (number, stream), table in rows.items():
            teller = self._teller(stream)
            if teller is not None and teller.scheme == number:
                found[stream] = (
                    pc.sum(table.column(OWN)).as_py() if stream in teller.everywhere else len(table)
                )
        return found

    def stats(self) -> PartitionMetrics:
        """What there is to tell of the last share."""
        held = sum(lane.engine.bytes_held() for lane in self._lanes.values())
        newest = max(self._time.newest.values(), default=BEFORE_ALL)
        queries = {}
        for lane in self._lanes.values():
            for name, (times, buffers) in lane.engine.take_measures().items():
                queries[name] = {"response": times.to_json(), "buffers": buffers}
        overload = {name: one.take() for name, one in self._governed().items()}
        final = max(
            min((lane.final[0] for lane in self._lanes.values()), default=BEFORE_ALL), self._moment
        )
        clocks = {
            placed.query.name: self._told_clock(placed)
            for placed in map(self._placed.__getitem__, self._active)
        }
        return PartitionMetrics(
            self._came, self.rows(), final, newest, held, self.number,
            queries=queries, overload=overload, suspended=self.suspended(), clocks=clocks, due=self._due(),
            rows_ahead=self._rows_ahead, times=dict(self._time.newest),
        )  # fmt: skip

    def _told_clock(self, placed: PlacedQuery) -> QueryClock:
        """How far time has come for a query, and which stream it waits for while rows of others wait."""
        lane = self._lanes[placed.dataflow]
        last = min(
            lane.streams, key=lambda stream: self._program.watermark((stream,), self._time.newest)
        )
        waiting = lane.engine.rows_waiting()
        waits = any(waiting[stream] for stream in lane.streams if stream != last)
        newest = self._time.newest.get(last, BEFORE_ALL)
        return QueryClock(max(lane.final[0], self._moment), last if waits else None, newest)

    def _due(self) -> int | None:
        """Return the first instant at which time alone can change a result, or None."""
        found = []
        suspended = self.suspended()
        for name, lane in self._lanes.items():
            places = [place for place in self._active if self._placed[place].dataflow == name]
            running = [
                (place, self._placed[place])
                for place in places
                if self._placed[place].query.name not in suspended
            ]
            due = next_due(
                lane.engine,
                [(placed.query, self._settings_of(place)) for place, placed in running],
                self._time.newest,
            )
            found += [] if due is None else [due]
            if any(self._is_to_begin(placed, lane.engine) for _, placed in running):
                found.append(lane.engine.closed() + 1)
        return min(found, default=None)

    @staticmethod
    def _is_to_begin(placed: PlacedQuery, engine: Engine) -> bool:
        """Whether a query has a result before any row comes and has not seen an instant yet."""
        begins = placed.query.has_beginning
        return begins and all(engine.seen(part.name) is None for part in placed.parts)

    def _settings_of(self, place: int) -> Settings:
        if place not in self._settings:
            self._settings[place] = _settings(self._placed[place])
        return self._settings[place]

    def restore(self, clock: Clock) -> None:
        """Begin where an older partition was, before the first share that is kept is applied again.

        Rows that still waited then belong to shares that are gone by now, so all rows that count come after them.
        """
        self._time = TimeBounds(dict(clock.newest), dict(clock.ahead), {})
        self._move_lanes()
        self._moment = clock.moment
        self._limits = clock.limits
        self._begins = clock.positions or {}

    def rows(self) -> int:
        """Rows that the engines hold."""
        return sum(lane.engine.rows_held() for lane in self._lanes.values())


def _as_sent(stream: Stream, everywhere: frozenset[str]) -> Stream:
    if stream.name not in everywhere:
        return stream
    return Stream(stream.name, marked(stream.schema), stream.time, stream.slack, stream.options)


def _rows_of(parts: Iterable[Part]) -> Rows:
    """The rows of each scheme and stream, tasks in their order."""
    grouped: dict[tuple[int, str], list[pa.Table]] = {}
    for part in sorted(parts, key=lambda part: (part.partitioning, part.stream, part.task)):
        grouped.setdefault((part.partitioning, part.stream), []).append(from_blob(part.blob))
    return {key: pa.concat_tables(tables).combine_chunks() for key, tables in grouped.items()}


# -- what has to be kept ------------------------------------------------------------------------------


_CYCLES = 3
_SHARE = 64
"""A share costs about as much to keep and to repeat as so many rows, however few it has."""


@dataclass(frozen=True)
class Kept:
    """A share that is kept: where time was before it, and for each scheme and stream how many rows surely count, oldest and newest time.

    With ``since`` it is a snapshot: it stands for all shares up to its batch, and time is as it was after that. ``after`` has what limited
    joins were allowed after it.
    """

    batch: int
    before: Clock
    extents: dict[tuple[int, str], tuple[int, int, int]]
    rows: int = 0
    since: Since | None = None
    after: Mapping[str, LimitState] = field(default_factory=dict)


@dataclass
class Ledger:
    """The shares that are kept, oldest first."""

    kept: deque[Kept] = field(default_factory=deque)
    weight: int = 0
    """Rows that are kept, and something for each share."""

    def keep(self, note: Kept) -> None:
        """Take a note."""
        self.kept.append(note)
        self.weight += note.rows + _SHARE

    def add(
        self,
        share: PartitionBatch,
        before: Clock,
        streams: Sequence[Stream],
        reached: Mapping[int, int],
    ) -> Kept:
        """Note a share; ``reached`` is how far time had come by rows under each scheme before it."""
        floors = {scheme: max(final, before.moment) for scheme, final in reached.items()}
        self.keep(self._note(share, before, streams, None, floors))
        return self.kept[-1]

    def allow(self, after: Mapping[str, LimitState]) -> None:
        """Note with the last share what limited joins were allowed after it."""
        self.kept[-1] = replace(self.kept[-1], after=after)

    def replace_all(
        self, snapshot: PartitionBatch, since: Since, now: Clock, streams: Sequence[Stream]
    ) -> list[int]:
        """Note a snapshot in the place of all shares; the batches of those before its own."""
        gone = [note.batch for note in self.kept if note.batch != snapshot.batch]
        self.kept.clear()
        self.weight = 0
        self.keep(self._note(snapshot, now, streams, since, {}))
        return gone

    def _note(
        self, share: PartitionBatch, before: Clock, streams: Sequence[Stream], since: Since | None, floors: Mapping[int, int]
    ) -> Kept:  # fmt: skip
        times = {stream.name: stream.time for stream in streams}
        bounds = bounds_after(before.newest, before.ahead, before.moment, share)
        extents = {}
        rows = 0
        for key, table in _rows_of(share.all_parts()).items():
            rows += len(table)
            if key[0] == TIMELESS:
                continue
            table, _ = bounds.split(table, key[1], times[key[1]])  # noqa: PLW2901 - what is left of it
            if not len(table):
                continue
            instants = table.column(times[key[1]])
            column = instants.cast(pa.timestamp("us", instants.type.tz)).cast(pa.int64()).to_numpy()
            # Rows that may be late push nothing out of a window.
            extents[key] = (
                int((column > floors.get(key[0], BEFORE_ALL)).sum()),
                int(column.min()),
                int(column.max()),
            )
        return Kept(share.batch, before, extents, rows, since)

    def expire(self, now: Mapping[int, int], reach: dict[tuple[int, str], Reach]) -> list[int]:
        """Let go of the oldest shares that no window reaches any more; their batches.

        ``now`` is how far time has come by rows under each scheme.
        """
        gone = []
        while len(self.kept) > 1 and self._unreachable(self.kept[0], now, reach):
            let_go = self.kept.popleft()
            self.weight -= let_go.rows + _SHARE
            gone.append(let_go.batch)
        return gone

    def _unreachable(
        self, oldest: Kept, now: Mapping[int, int], reach: dict[tuple[int, str], Reach]
    ) -> bool:
        for key, (_, _, newest) in oldest.extents.items():
            known = reach.get(key)
            if known is None:
                continue  # no query in force reads it this way
            # What happens at `now` itself, and with EVERY since its last multiple, may still be to come.
            done = now[key[0]] - known.every
            if known.forever or newest >= done - known.micros:
                return False
            if known.rows and not self._outnumbered(key, newest, done, known.rows):
                return False
        return True

    def _outnumbered(self, key: tuple[int, str], newest: int, now: int, wanted: int) -> bool:
        """Whether shares with later rows only have as many of a stream as a window counts."""
        count = 0
        for kept in islice(self.kept, 1, None):
            rows, first, last = kept.extents.get(key, (0, 0, 0))
            count += rows if newest < first and last < now else 0
            if count >= wanted:
                return True
        return False


@dataclass(frozen=True)
class Reach:
    """How far back windows reach into a stream: microseconds, rows, or without end; ``every``: how long results may wait."""

    micros: int = 0
    rows: int = 0
    forever: bool = False
    every: int = 0

    def times(self, number: int) -> Reach:
        """The reach so many times as far."""
        return replace(self, micros=number * self.micros, rows=number * self.rows)

    def with_window(self, window: object, every: int) -> Reach:
        """The reach with one more window, of a query that is brought up to date at multiples of ``every``."""
        known = replace(self, every=max(self.every, every))
        if isinstance(window, TimeWindow):
            return replace(known, micros=max(self.micros, window.micros))
        if isinstance(window, RowsWindow):
            return replace(known, rows=max(self.rows, window.rows))
        assert isinstance(window, PartitionedWindow), "a stream has one of three windows"
        return replace(known, forever=True)

    def joined(self, other: Reach) -> Reach:
        """The reach of both."""
        return Reach(
            max(self.micros, other.micros),
            max(self.rows, other.rows),
            self.forever or other.forever,
            max(self.every, other.every),
        )

    def covers(self, other: Reach) -> bool:
        """Whether it reaches at least as far."""
        return self.forever or (
            not other.forever and self.micros >= other.micros and self.rows >= other.rows
        )


def reach_of(queries: Iterable[PlacedQuery]) -> dict[tuple[int, str], Reach]:
    """The reach of queries into every stream under every scheme."""
    found: dict[tuple[int, str], Reach] = {}
    for placed in queries:
        for stream in placed.streams:
            key = (placed.partitioning_number, stream)
            found[key] = reach_into(stream, placed, found.get(key, Reach()))
    return found


def reach_into(stream: str, placed: PlacedQuery, known: Reach) -> Reach:
    """The reach into a stream with the windows of one more query.

    In a limited join of k streams, what an intermediate result of n members may do depends on those of n - 1 members that came in its
    cycle, and these on others up to a window before: so choices are the same when rows of k - 1 windows are repeated. How many are
    expected in a cycle, and what is left of a limit, depends on the cycle before.
    """
    settings = _settings(placed)
    every = max(placed.query.every or 0, settings.join.reevaluation or 0)
    sources = placed.query.sources
    if not is_adapting(settings):
        for source in sources:
            known = known.with_window(source.window, every) if source.relation == stream else known
        return known
    fresh, own = dict(placed.query.freshness), Reach()
    for place, source in enumerate(sources):
        own = (
            own.with_window(fresh.get(place, source.window), every)
            if source.relation == stream
            else own
        )
    own = own.times(max(len(sources) - 1, 1))
    return known.joined(replace(own, micros=own.micros + _CYCLES * settings.overload.monitoring))


def _settings(placed: PlacedQuery) -> Settings:
    return Settings.of(**placed.registered.settings).of_query(placed.query.options, SINK_OPTIONS)
