"""The window stores of one join: an arena of flat arrays, one ring per source.

Invariant: a store's ring holds the rows ``TAIL <= seq < NEXT`` in the order they were inserted,
every index of the store chains them from new to old, and no kernel ever follows a link below
``TAIL``. Insert is O(1), expiry is O(expired) and deletes nothing. A ring that is full moves to one
twice its size; once rows expire as fast as they come it moves to one that fits, so that in the
steady state a row costs its words plus a bucket head, and little slack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.kernels.arrays import Arena
from muntin.kernels.resize import count_inside, link_rows, mark_codes, move_rows, positions_inside
from muntin.model.arrays import Integers

Words = npt.NDArray[np.int64]
Halves = npt.NDArray[np.int32]

_LEAST = 256
_SLACK = 1.06
"""Capacity over live rows after a fit."""
_LOOSE = 1.24
"""Capacity over the peak of live rows above which a ring is fitted again."""
_BUCKETS_PER_SLOT = 2
"""Two heads a row cost 8 bytes and save a quarter of the rows that a probe looks at in vain."""
_LINE = 64


def _aligned(words: int) -> Words:
    """Zeroed words that begin at a cache line, so that kernels know which rows lie across two."""
    space = np.zeros(words + _LINE // 8, np.int64)
    start = -space.ctypes.data % _LINE // 8
    return space[start : start + words]


@dataclass(frozen=True)
class IndexSpec:
    """An index of a store over some of its codes.

    ``buckets`` is fixed by the user; None means two per slot.
    """

    codes: tuple[int, ...]
    buckets: int | None = None


@dataclass(frozen=True)
class StoreSpec:
    """One window: its kind and size, how many codes a row has, and its indexes."""

    kind: int
    size: int
    stream: int
    codes: int
    indexes: tuple[IndexSpec, ...] = ()

    def code_word(self, code: int) -> int:
        """Return the word of a row that holds a code."""
        return layout.CODES + code


@dataclass
class JoinState:
    """The stores of one join.

    ``cleaning`` adds the per-bucket old ends that the policies of [Kostowski06] need.
    """

    specs: tuple[StoreSpec, ...]
    cleaning: bool = False
    arena: Arena = field(init=False)
    words: Words = field(init=False)
    halves: Halves = field(init=False)
    stores: Integers = field(init=False)
    indexes: Integers = field(init=False)
    first_index: Integers = field(init=False)
    counters: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.counters = np.zeros(layout.COUNTERS, np.int64)
        self._last_peak = [0] * len(self.specs)
        self._lay_out([_LEAST] * len(self.specs))

    # -- layout ------------------------------------------------------------------------------------

    @property
    def _side_by_side(self) -> bool:
        """Return whether all stores have one index on one key with buckets of our choice.

        Then their heads stand together.
        """
        return not self.cleaning and all(
            [(len(index.codes), index.buckets) for index in spec.indexes] == [(1, None)]
            for spec in self.specs
        )

    def _lay_out(self, capacities: list[int]) -> None:
        """Make an empty arena for the given numbers of rows."""
        together = self._side_by_side
        keys = max((len(index.codes) for spec in self.specs for index in spec.indexes), default=0)
        total_indexes = sum(len(spec.indexes) for spec in self.specs)
        stores = np.zeros((len(self.specs), layout.STORE_FIELDS), np.int64)
        indexes = np.zeros((max(total_indexes, 1), layout.KEYS + max(keys, 1)), np.int64)
        first_index = np.zeros(len(self.specs) + 1, np.int64)
        word = 0
        x = 0
        heads: list[tuple[int, int]] = []
        for s, (spec, capacity) in enumerate(zip(self.specs, capacities, strict=True)):
            store = stores[s]
            width = layout.CODES + spec.codes
            end = -1
            if spec.kind == layout.PARTITIONED:
                end = width
                width += 1
            further = max(len(spec.indexes) - 1, 0) + int(self.cleaning)
            first_half = 2 * width
            width += (further + 1) // 2
            store[[layout.ROWS, layout.WIDTH, layout.CAP]] = word, width, capacity
            store[[layout.KIND, layout.SIZE, layout.END, layout.STREAM]] = (
                spec.kind,
                spec.size,
                end,
                spec.stream,
            )
            store[[layout.LAST, layout.PRIMARY, layout.FORWARD]] = -1, -1, -1
            word += width * capacity
            for i, index in enumerate(spec.indexes):
                buckets = index.buckets or _BUCKETS_PER_SLOT * (
                    max(capacities) if together else capacity
                )
                row = indexes[x]
                row[[layout.OWNER, layout.BUCKETS, layout.KEY_COUNT]] = s, buckets, len(index.codes)
                row[layout.LINK] = layout.LINK0 if i == 0 else first_half + i - 1
                row[layout.MODULAR] = index.buckets is not None
                row[layout.KEYS : layout.KEYS + len(index.codes)] = [
                    spec.code_word(code) for code in index.codes
                ]
                heads.append((x, layout.HEADS))
                if i == 0 and self.cleaning and spec.kind != layout.STORED:
                    store[[layout.PRIMARY, layout.FORWARD]] = x, first_half + further - 1
                    heads.append((x, layout.OLDEST))
                x += 1
            first_index[s + 1] = x
        half = 2 * word
        for number, (x, which) in enumerate(heads):
            indexes[x, layout.HEAD_STEP] = len(self.specs) if together else 1
            indexes[x, which] = half + number if together else half
            half += 0 if together else int(indexes[x, layout.BUCKETS])
        half += _BUCKETS_PER_SLOT * max(capacities) * len(self.specs) if together else 0
        words = _aligned((half + 1) // 2)
        self.arena = Arena(words, words.view(np.int32), stores, indexes, first_index)
        self.words, self.halves, self.stores, self.indexes, self.first_index = self.arena

    def width(self, s: int) -> int:
        """Return the words of a row of a store."""
        return int(self.stores[s, layout.WIDTH])

    # -- capacity ----------------------------------------------------------------------------------

    def rows(self, s: int) -> int:
        """Return the rows that a ring spans, those waiting to be expired included."""
        return self.rows_of(self.stores[s])

    @staticmethod
    def rows_of(store: Integers) -> int:
        """Return the rows that the ring of a store spans, from its fields."""
        return int(store[layout.NEXT] - store[layout.TAIL])

    def grow(self, s: int, limit: int) -> None:
        """Give a full store more room.

        What a partitioned window has pushed out by ``limit`` is left behind.
        """
        wanted = {s: max(_LEAST, 2 * self._needed(s, limit))}
        # The arena moves, so stores that will soon be full grow along.
        for other, spec in enumerate(self.specs):
            full = 4 * self.rows(other) > 3 * self.stores[other, layout.CAP]
            if (
                other != s
                and full
                and spec.kind != layout.PARTITIONED
                and self.rows(other) > _LEAST
            ):
                wanted[other] = 2 * self.rows(other)
        self._resize(wanted, limit)

    def reserve(self, s: int, rows: int, limit: int) -> None:
        """Make sure that ``rows`` more rows fit into a store; ``limit`` as in :meth:`grow`.

        A store that has rows doubles, as it may fill on.
        """
        if self.rows(s) + rows > self.stores[s, layout.CAP]:
            held = self._needed(s, limit)
            self._resize({s: max(int((held + rows) * _SLACK) + _LEAST, 2 * held)}, limit)

    def reserve_all(self, arriving: Sequence[int], limit: int) -> None:
        """Make room for ``arriving`` more rows in each store, all in one move.

        A store that has rows doubles, as it may fill on.
        """
        if any(self.rows(s) + rows > self.stores[s, layout.CAP] for s, rows in enumerate(arriving)):
            held = [self._needed(s, limit) for s in range(len(arriving))]
            tight = [
                int((before + rows) * _SLACK) + _LEAST
                for before, rows in zip(held, arriving, strict=True)
            ]
            self._resize(
                {s: max(tight[s], 2 * held[s]) for s, rows in enumerate(arriving) if rows}, limit
            )

    def _needed(self, s: int, limit: int) -> int:
        """Return the number of rows that a store must keep.

        All in the ring, or those that a partitioned window still holds.
        """
        return self.inside(s, limit) if self.specs[s].kind == layout.PARTITIONED else self.rows(s)

    def fit(self, limits: Integers) -> None:
        """Return memory that the last two batches did not need; called between batches.

        Only once rows have expired: before that the window is still filling, and room will be used.
        """
        for s in range(len(self.specs)):
            peak = int(self.stores[s, layout.PEAK])
            recent = max(peak, self._last_peak[s])
            self._last_peak[s] = peak
            self.stores[s, layout.PEAK] = self.rows(s)
            held = int(self.stores[s, layout.HELD])
            if self.specs[s].kind == layout.PARTITIONED and self.rows(s) > 2 * held + _LEAST:
                self._resize({s: max(_LEAST, 2 * held)}, int(limits[s]))
            elif self.stores[s, layout.TAIL] and self.stores[s, layout.CAP] > max(
                2 * _LEAST, int(recent * _LOOSE)
            ):
                self._resize({s: max(_LEAST, int(recent * _SLACK))}, int(limits[s]))

    def _resize(self, wanted: dict[int, int], limit: int) -> None:
        capacities = [wanted.get(s, int(store[layout.CAP])) for s, store in enumerate(self.stores)]
        if self._side_by_side and max(capacities) != self.stores[:, layout.CAP].max():
            wanted = dict(enumerate(capacities))
        old = self.arena
        self._lay_out(capacities)
        for s, spec in enumerate(self.specs):
            if s not in wanted:
                self._copy_store(s, old)
            elif self.cleaning or spec.kind == layout.PARTITIONED:
                self._select_store(s, limit, old)
            else:
                self._copy_rows(s, old)

    def _copy_rows(self, s: int, arena: Arena) -> None:
        """Copy all rows to the start of the new ring and chain them again."""
        old, new = arena.stores[s], self.stores[s]
        width, rows, start = self.width(s), self.rows_of(old), int(old[layout.TAIL_SLOT])
        ring = arena.words[old[layout.ROWS] : old[layout.ROWS] + old[layout.CAP] * width].reshape(
            -1, width
        )
        target = self.words[new[layout.ROWS] : new[layout.ROWS] + rows * width].reshape(-1, width)
        straight = min(rows, len(ring) - start)
        target[:straight] = ring[start : start + straight]
        target[straight:] = ring[: rows - straight]
        keep = [layout.TAIL, layout.NEXT, layout.LAST, layout.HELD, layout.PEAK]
        new[keep] = old[keep]
        link_rows(self.arena, s)

    def _select_store(self, s: int, limit: int, arena: Arena) -> None:
        """Insert those rows into the new ring that the window still needs."""
        old, new = arena.stores[s], self.stores[s]
        # `insert` counts positions up from LAST: start below the first row that moves.
        new[layout.LAST] = old[layout.LAST] - ((1 << 32) - 1)
        unused = np.zeros(layout.COUNTERS, np.int64)
        moved = move_rows(arena, s, limit, self.arena, unused)
        new[[layout.LAST, layout.HELD, layout.PEAK]] = (
            old[layout.LAST],
            moved,
            max(int(old[layout.PEAK]), moved),
        )

    def _copy_store(self, s: int, arena: Arena) -> None:
        """Copy a store as it is."""
        old, new = arena.stores[s], self.stores[s]
        size = int(old[layout.WIDTH] * old[layout.CAP])
        start, origin = int(new[layout.ROWS]), int(old[layout.ROWS])
        self.words[start : start + size] = arena.words[origin : origin + size]
        keep = [layout.TAIL, layout.TAIL_SLOT, layout.NEXT, layout.LAST, layout.HELD, layout.PEAK]
        new[keep] = old[keep]
        for x in range(self.first_index[s], self.first_index[s + 1]):
            for which in (layout.HEADS, layout.OLDEST):
                start, origin, buckets = (
                    int(self.indexes[x, which]),
                    int(arena.indexes[x, which]),
                    int(arena.indexes[x, layout.BUCKETS]),
                )
                if start:
                    step = int(arena.indexes[x, layout.HEAD_STEP]) if which == layout.HEADS else 1
                    self.halves[start : start + buckets * step : step] = arena.halves[
                        origin : origin + buckets * step : step
                    ]

    # -- size --------------------------------------------------------------------------------------

    def inside(self, s: int, limit: int) -> int:
        """Return the number of rows of a store that are inside their window."""
        return int(count_inside(self.arena, s, limit))

    def positions(self, s: int, limit: int) -> Integers:
        """Stream positions of the rows of a store that are inside their window, ascending."""
        out = np.empty(self.rows(s), np.int64)
        low = out[: positions_inside(self.arena, s, limit, out)]
        last = int(self.stores[s, layout.LAST])
        return last - ((last - low) & 0xFFFFFFFF)

    def distinct(self, s: int, code: int) -> float:
        """Estimate how many distinct values a code has among the rows of a store.

        By linear counting, with an error of a few percent.
        """
        rows = self.rows(s)
        places = 1 << max(10, (4 * rows).bit_length())
        marks = np.zeros(places, np.uint8)
        marked = int(mark_codes(self.arena, s, self.specs[s].code_word(code), marks))
        return float(-places * np.log1p(-marked / places))

    def sample(self, s: int, code: int, most: int) -> Integers:
        """Return a code of at most ``most`` rows of a store, evenly spread over the ring."""
        rows, width, capacity = self.rows(s), self.width(s), int(self.stores[s, layout.CAP])
        start = int(self.stores[s, layout.ROWS])
        ring = self.words[start : start + capacity * width].reshape(-1, width)
        steps = np.linspace(0, rows - 1, min(most, rows)).astype(np.int64)
        found: Words = ring[
            (self.stores[s, layout.TAIL_SLOT] + steps) % capacity, self.specs[s].code_word(code)
        ]
        return found

    def nbytes(self) -> int:
        """Return the bytes of the arena and its tables."""
        return int(
            self.words.nbytes + self.stores.nbytes + self.indexes.nbytes + self.first_index.nbytes
        )
