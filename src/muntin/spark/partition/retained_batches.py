"""The batches that are retained to rebuild a partition: those that a window still reaches."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType

from muntin.model.catalog import Stream
from muntin.model.clock import BEFORE_ALL
from muntin.runtime.external_quota import LimitState
from muntin.spark.exchange.messages import PartitionBatch, rows_of
from muntin.spark.exchange.time_bounds import bounds_after
from muntin.spark.partition.partition_clock import CameBefore, PartitionClock
from muntin.spark.partition.window_reach import WindowReach
from muntin.state.batch import times_of

_BATCH = 64
"""The fixed cost of retaining and replaying a batch, in rows."""


@dataclass(frozen=True)
class RetainedBatch:
    """A note on a retained batch: the clock before it, and its extents.

    An extent is, for a partitioning and a stream, how many rows certainly count, and the oldest and
    newest time. With ``since`` the batch is a snapshot: it replaces all batches up to its number,
    and the clock is the one after it. ``after`` has the probe budgets of limited joins after it.
    """

    batch: int
    before: PartitionClock
    extents: dict[tuple[int, str], tuple[int, int, int]]
    rows: int = 0
    since: CameBefore | None = None
    after: Mapping[str, LimitState] = field(default_factory=dict)


def note_of(
    batch: PartitionBatch,
    before: PartitionClock,
    streams: Sequence[Stream],
    *,
    since: CameBefore | None = None,
    floors: Mapping[int, int] = MappingProxyType({}),
) -> RetainedBatch:
    """Return the note on a batch, or on a snapshot with ``since``.

    Rows up to the floor of their partitioning may be late.
    """
    times = {stream.name: stream.time for stream in streams}
    bounds = bounds_after(before.bounds, before.moment, batch)
    extents = {}
    rows = 0
    for key, table in rows_of(batch.all_parts()).items():
        rows += len(table)
        if key[0] < 0:
            continue
        table, _ = bounds.split(table, key[1], times[key[1]])  # noqa: PLW2901
        if not len(table):
            continue
        column = times_of(table, times[key[1]])
        # Rows that may be late push nothing out of a window.
        extents[key] = (
            int((column > floors.get(key[0], BEFORE_ALL)).sum()),
            int(column.min()),
            int(column.max()),
        )
    return RetainedBatch(batch.batch, before, extents, rows, since)


@dataclass
class RetainedBatches:
    """The notes on all retained batches, oldest first."""

    kept: deque[RetainedBatch] = field(default_factory=deque)
    weight: int = 0
    """The retained rows, plus a constant for each batch."""

    def keep(self, note: RetainedBatch) -> None:
        """Add a note."""
        self.kept.append(note)
        self.weight += note.rows + _BATCH

    def add(
        self,
        batch: PartitionBatch,
        before: PartitionClock,
        streams: Sequence[Stream],
        reached: Mapping[int, int],
    ) -> RetainedBatch:
        """Note a batch; ``reached`` is the watermark of each partitioning before it."""
        floors = {number: max(final, before.moment) for number, final in reached.items()}
        self.keep(note_of(batch, before, streams, floors=floors))
        return self.kept[-1]

    def allow(self, after: Mapping[str, LimitState]) -> None:
        """Note with the last batch the probe budgets of limited joins after it."""
        self.kept[-1] = replace(self.kept[-1], after=after)

    def replace_all(
        self,
        snapshot: PartitionBatch,
        since: CameBefore,
        now: PartitionClock,
        streams: Sequence[Stream],
    ) -> list[int]:
        """Note a snapshot in place of all batches; return the numbers of the batches before it."""
        gone = [note.batch for note in self.kept if note.batch != snapshot.batch]
        self.kept.clear()
        self.weight = 0
        self.keep(note_of(snapshot, now, streams, since=since))
        return gone

    def expire(
        self, now: Mapping[int, int], reach: dict[tuple[int, str], WindowReach]
    ) -> list[int]:
        """Remove the oldest batches that no window reaches any more; return their numbers.

        ``now`` is the watermark of each partitioning.
        """
        gone = []
        while len(self.kept) > 1 and self._unreachable(self.kept[0], now, reach):
            oldest = self.kept.popleft()
            self.weight -= oldest.rows + _BATCH
            gone.append(oldest.batch)
        return gone

    def _unreachable(
        self,
        oldest: RetainedBatch,
        now: Mapping[int, int],
        reach: dict[tuple[int, str], WindowReach],
    ) -> bool:
        for key, (_, _, newest) in oldest.extents.items():
            known = reach.get(key)
            if known is None:
                continue  # no query in force reads it this way
            # Results at `now`, and with EVERY since its last multiple, may still be to come.
            done = now[key[0]] - known.every
            if known.forever or newest >= done - known.micros:
                return False
            if known.rows and not self._outnumbered(key, newest, done, known.rows):
                return False
        return True

    def _outnumbered(self, key: tuple[int, str], newest: int, now: int, wanted: int) -> bool:
        """Return whether batches with later rows only have as many rows as a window counts."""
        count = 0
        for kept in islice(self.kept, 1, None):
            rows, first, last = kept.extents.get(key, (0, 0, 0))
            count += rows if newest < first and last < now else 0
            if count >= wanted:
                return True
        return False
