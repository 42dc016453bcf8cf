"""One bucket: the engines that run its share of every scheme. No Spark, no I/O: shares in, results out.

Time is the same in all buckets: the newest time of each stream comes with every share, from all tasks of the micro-batch, and
the watermark follows from it and the program alone. A row is late when it comes behind the watermark of the batches before.

What must be remembered to build the bucket again is the shares themselves, from the oldest that a window still reaches on. A
:class:`Ledger` says which those are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from muntin.engine.engine import Engine
from muntin.model.catalog import Stream
from muntin.model.clock import BEFORE_ALL
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow
from muntin.plan.query import Query
from muntin.planner.distribution import OWN, marked
from muntin.spark.messages import Output, Part, Share, from_blob, to_blob
from muntin.spark.program import Program, Registered
from muntin.spark.tally import Stats

Place = tuple[int, int]
LATE = "late"
RESULTS = "results"


@dataclass
class _Lane:
    """The engine of one scheme, and how its streams go."""

    engine: Engine
    everywhere: frozenset[str]
    tables: set[str] = field(default_factory=set)


class Bucket:
    """The engines of one bucket under a program."""

    def __init__(self, program: Program, number: int) -> None:
        self.number = number
        self._program = program
        self._schemes = program.schemes()
        self._placed = program.placed()
        self._lanes: dict[int, _Lane] = {}
        self._active: list[int] = []
        self._epoch = -1
        self._newest: dict[str, int] = {}
        self._came: dict[str, int] = {}
        self.final: Place = (BEFORE_ALL, -1)

    # -- program -----------------------------------------------------------------------------------

    def _follow(self, epoch: int) -> None:
        """Bring the queries up to an epoch of the program."""
        if epoch == self._epoch:
            return
        wanted = self._program.active(epoch)
        for place in [place for place in self._active if place not in wanted]:
            registered, _, _, scheme = self._placed[place]
            self._lane(scheme).engine.drop(registered.name)
        for place in [place for place in wanted if place not in self._active]:
            registered, query, how, scheme = self._placed[place]
            self._register(self._lane(scheme), registered, how.local(query))
        self._active, self._epoch = wanted, epoch

    def _lane(self, number: int) -> _Lane:
        lane = self._lanes.get(number)
        if lane is None:
            everywhere = frozenset(route.stream for route in self._schemes[number].routes if route.everywhere)
            lane = self._lanes[number] = _Lane(Engine(), everywhere)
            for stream in self._program.streams:
                lane.engine.declare(_as_sent(stream, everywhere))
        return lane

    def _register(self, lane: _Lane, registered: Registered, query: Query) -> None:
        for source in query.sources:
            if source.stored and source.relation not in lane.tables:
                lane.engine.table(source.relation, from_blob(self._program.tables[source.relation]))
                lane.tables.add(source.relation)
        lane.engine.register(query, registered.settings)

    # -- rows --------------------------------------------------------------------------------------

    def apply(self, share: Share) -> list[Output]:
        """Process a share and return what comes of it."""
        self._follow(share.epoch)
        for stream, newest in share.newest.items():
            self._newest[stream] = max(self._newest.get(stream, BEFORE_ALL), newest)
        self.final = max(self.final, self._watermark())
        rows = _rows_of(share.parts)
        self._came = self._at_home(rows)
        outputs = []
        for number, lane in sorted(self._lanes.items()):
            late = lane.engine.feed({stream: table for (scheme, stream), table in rows.items() if scheme == number}, self.final)
            if share.moment is not None:
                lane.engine.advance(share.moment)
            outputs += self._late(number, late)
        outputs += [output for place in self._active if (output := self._results(place)) is not None]
        return outputs

    def _watermark(self) -> Place:
        """How far the total order is final: the least, over the streams that queries read, of newest time minus slack."""
        read = {source.relation for place in self._active for source in self._placed[place][1].sources if not source.stored}
        places = []
        for order, stream in enumerate(self._program.streams):
            if stream.name in read:
                newest = self._newest.get(stream.name, BEFORE_ALL)
                places.append((newest - stream.slack if newest > BEFORE_ALL else BEFORE_ALL, order))
        return min(places, default=(BEFORE_ALL, -1))

    def _results(self, place: int) -> Output | None:
        registered, _, _, scheme = self._placed[place]
        name = registered.name
        table = self._lanes[scheme].engine.handle(name).poll()
        return Output(RESULTS, name, to_blob(table), len(table)) if len(table) else None

    def _late(self, number: int, late: dict[str, pa.Table]) -> list[Output]:
        """The late rows of a lane; a stream that goes several ways is told of by the first."""
        outputs = []
        for stream, table in late.items():
            if number != self._teller(stream):
                continue
            told = table
            if stream in self._lanes[number].everywhere:
                # Every bucket sees the row; the one in which it is at home tells.
                told = table.filter(table.column(OWN)).drop_columns([OWN])
            if len(told):
                outputs.append(Output(LATE, stream, to_blob(told), len(told)))
        return outputs

    def _teller(self, stream: str) -> int:
        """The lane that tells of a stream which may go several ways."""
        return min(lane for lane, scheme in enumerate(self._schemes) if lane in self._lanes and scheme.route(stream))

    def _at_home(self, rows: dict[tuple[int, str], pa.Table]) -> dict[str, int]:
        """How many rows of each stream are at home here: over all buckets every row counts once."""
        return {
            stream: pc.sum(table.column(OWN)).as_py() if stream in self._lanes[number].everywhere else len(table)
            for (number, stream), table in rows.items()
            if number in self._lanes and number == self._teller(stream)
        }

    def stats(self) -> Stats:
        """What there is to tell of the last share."""
        return Stats(self._came, self.rows(), self.final[0])

    def restore(self, final: Place, newest: dict[str, int]) -> None:
        """Begin where an older bucket was, before the first share that is kept is applied again."""
        self.final = final
        self._newest = dict(newest)

    def newest(self) -> dict[str, int]:
        """The newest time seen of each stream."""
        return dict(self._newest)

    def rows(self) -> int:
        """Rows that the engines hold."""
        return sum(lane.engine.rows_held() for lane in self._lanes.values())


def _as_sent(stream: Stream, everywhere: frozenset[str]) -> Stream:
    if stream.name not in everywhere:
        return stream
    return Stream(stream.name, marked(stream.schema), stream.time, stream.slack, stream.options)


def _rows_of(parts: Iterable[Part]) -> dict[tuple[int, str], pa.Table]:
    """The rows of each scheme and stream, tasks in their order."""
    grouped: dict[tuple[int, str], list[pa.Table]] = {}
    for part in sorted(parts, key=lambda part: (part.scheme, part.stream, part.task)):
        grouped.setdefault((part.scheme, part.stream), []).append(from_blob(part.blob))
    return {key: pa.concat_tables(tables).combine_chunks() for key, tables in grouped.items()}


# -- what has to be kept ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """A share that is kept: where the bucket was before it, and for each scheme and stream its rows, oldest and newest time."""

    batch: int
    before: Place
    newest: dict[str, int]
    extents: dict[tuple[int, str], tuple[int, int, int]]


@dataclass
class Ledger:
    """The shares that are kept, oldest first."""

    kept: list[Kept] = field(default_factory=list)

    def add(self, share: Share, before: Place, newest: dict[str, int], streams: Sequence[Stream]) -> None:
        """Note a share."""
        times = {stream.name: stream.time for stream in streams}
        extents = {}
        for key, table in _rows_of(share.parts).items():
            column = table.column(times[key[1]]).cast(pa.int64()).to_numpy()
            extents[key] = (len(column), int(column.min()), int(column.max()))
        self.kept.append(Kept(share.batch, before, newest, extents))

    def expire(self, now: int, reach: dict[tuple[int, str], Reach]) -> list[int]:
        """Let go of the oldest shares that no window reaches any more; their batches."""
        gone = []
        while len(self.kept) > 1 and self._unreachable(self.kept[0], now, reach):
            gone.append(self.kept.pop(0).batch)
        return gone

    def _unreachable(self, oldest: Kept, now: int, reach: dict[tuple[int, str], Reach]) -> bool:
        for key, (_, _, newest) in oldest.extents.items():
            known = reach.get(key, Reach())
            if known.forever or newest > now - known.micros:
                return False
            later = [kept.extents[key] for kept in self.kept[1:] if key in kept.extents]
            if known.rows and sum(rows for rows, first, _ in later if newest < first <= now) < known.rows:
                return False
        return True


@dataclass(frozen=True)
class Reach:
    """How far back windows reach into a stream: microseconds, rows, or without end."""

    micros: int = 0
    rows: int = 0
    forever: bool = False

    def with_window(self, window: object) -> Reach:
        """The reach with one more window."""
        if isinstance(window, TimeWindow):
            return Reach(max(self.micros, window.micros), self.rows, self.forever)
        if isinstance(window, RowsWindow):
            return Reach(self.micros, max(self.rows, window.rows), self.forever)
        assert isinstance(window, PartitionedWindow), "a stream has one of three windows"
        return Reach(self.micros, self.rows, forever=True)


def reach_of(program: Program) -> dict[tuple[int, str], Reach]:
    """The reach into every stream under every scheme, over all queries that ever were."""
    found: dict[tuple[int, str], Reach] = {}
    for _, query, _, scheme in program.placed():
        for source in query.sources:
            if not source.stored:
                key = (scheme, source.relation)
                found[key] = found.get(key, Reach()).with_window(source.window)
    return found
