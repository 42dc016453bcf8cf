"""What an as-of join keeps: the rows of both sides, in order under their keys, and their values.

Invariant: every different row is kept once, with how often it is there; left rows know their match.
A key is known while it has rows of either side. Cost: O(log d) per change, where d is how many rows
of the key come behind it, so O(1) for rows in order, and O(1) per left row whose match changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from muntin.kernels.asof_join import (
    GONE_KEYS,
    GONE_LEFT,
    GONE_RIGHT,
    KEY_FIELDS,
    LEFT_AT,
    LEFT_OUT,
    META,
    OUT_FIELDS,
    PLACE,
    RIGHT_AT,
    RIGHT_OUT,
    TIME_OUT,
    TOUCHED,
    WEIGHT,
    WEIGHT_OUT,
    WORDS,
    WRITTEN,
    AsofArrays,
    SideChanges,
    join_asof,
    list_gone,
)
from muntin.kernels.ordered_rows import NONE
from muntin.model.arrays import Integers
from muntin.state.group_table import GroupTable, grown
from muntin.state.value_log import ValueLog

_ROOM = 1 << 10
Words = tuple[Integers, Integers]


class SideRows(NamedTuple):
    """Changes of one side: values, the words of keys and of rows, those of the order, and signs."""

    columns: pa.Table
    keys: Words
    rows: Words
    order: Integers
    times: Integers
    signs: Integers


class AsofRows:
    """The state of one as-of join; ``form`` are the flags of its kernel, ``words`` those of order.

    Nodes of left rows are even and those of right rows odd, so both can stand in one order.
    """

    def __init__(self, left: pa.Schema, right: pa.Schema, words: int, form: int) -> None:
        self._form = form
        self._keys = GroupTable()
        self._sides = GroupTable(), GroupTable()
        self._logs = ValueLog(left), ValueLog(right)
        self._kept = AsofArrays(
            np.zeros((0, WORDS + words), np.int64),
            np.zeros((0, KEY_FIELDS), np.int64),
            np.zeros(META, np.int64),
        )
        self._kept.meta[TOUCHED] = NONE

    def __len__(self) -> int:
        """Return the number of different rows and of keys."""
        return len(self._keys) + sum(len(side) for side in self._sides)

    def nbytes(self) -> int:
        """Return the bytes of all arrays and values."""
        tables = self._keys.nbytes() + sum(side.nbytes() for side in self._sides)
        logs = sum(log.nbytes() for log in self._logs)
        return tables + logs + sum(array.nbytes for array in self._kept)

    def run(self, left: SideRows, right: SideRows) -> tuple[pa.Table, pa.Table, Integers, Integers]:
        """Return the changes of the result by time: left and right values, times and signs."""
        lefts, rights = self._changes(0, left), self._changes(1, right)
        self._grow()
        out = self._join(lefts, rights)
        weights = out[:, WEIGHT_OUT]
        copies = np.abs(weights)
        found = [
            log.take(np.repeat(out[:, place], copies))
            for log, place in zip(self._logs, (LEFT_OUT, RIGHT_OUT), strict=True)
        ]
        times, signs = np.repeat(out[:, TIME_OUT], copies), np.repeat(np.sign(weights), copies)
        self._release(lefts, rights)
        self._clean()
        return found[0], found[1], times, signs

    def known(self, word: int) -> Integers:
        """Return the different values of a word of right rows, ascending."""
        used = self._kept.nodes[1::2]
        return np.unique(used[used[:, WEIGHT] > 0, WORDS + word])

    def rename(self, word: int, before: Integers, after: Integers) -> None:
        """Replace values of a word of right rows, in the same order; 0 before it: it is used."""
        used = self._kept.nodes[1::2]
        there = np.flatnonzero((used[:, WEIGHT] > 0) & (used[:, WORDS + word - 1] == 0))
        used[there, WORDS + word] = after[np.searchsorted(before, used[there, WORDS + word])]

    def _changes(self, side: int, rows: SideRows) -> SideChanges:
        return SideChanges(
            self._keys.find(*rows.keys),
            2 * self._sides[side].find(*rows.rows) + side,
            rows.order,
            rows.times,
            rows.signs,
            self._logs[side].append(rows.columns, rows.signs),
        )

    def _grow(self) -> None:
        nodes, keys, meta = self._kept
        wanted = 2 * max(side.capacity for side in self._sides)
        if len(nodes) < wanted:
            nodes = grown(nodes, wanted)
        if len(keys) < self._keys.capacity:
            keys = grown(keys, self._keys.capacity, fill=NONE)
        self._kept = AsofArrays(nodes, keys, meta)

    def _join(self, left: SideChanges, right: SideChanges) -> Integers:
        """Return the places, time and weight of each change of the result."""
        meta = self._kept.meta
        meta[LEFT_AT] = meta[RIGHT_AT] = 0
        room = 2 * (len(left.keys) + len(right.keys)) + _ROOM
        parts = []
        done = False
        while not done:
            out = np.empty((room, OUT_FIELDS), np.int64)
            meta[WRITTEN] = 0
            done = join_asof(left, right, self._kept, self._form, out)
            parts.append(out[: meta[WRITTEN]])
        return np.concatenate(parts)

    def _release(self, left: SideChanges, right: SideChanges) -> None:
        """Give back the numbers of rows and keys without anything left."""
        keys = np.empty(len(left.keys) + len(right.keys), np.int64)
        rows = np.empty(len(left.nodes), np.int64), np.empty(len(right.nodes), np.int64)
        list_gone(left, right, self._kept, keys, *rows)
        meta = self._kept.meta
        self._keys.give_back(keys[: meta[GONE_KEYS]])
        for side, gone, count in zip(
            self._sides, rows, (meta[GONE_LEFT], meta[GONE_RIGHT]), strict=True
        ):
            side.give_back(gone[:count])

    def _clean(self) -> None:
        """Drop the values of rows that have gone, once they are the most."""
        for side, log in enumerate(self._logs):
            if log.is_sparse(len(self._sides[side])):
                nodes = self._kept.nodes[side::2]
                there = np.flatnonzero(nodes[:, WEIGHT])
                log.keep(nodes[there, PLACE] - 1)
                nodes[there, PLACE] = np.arange(len(there)) + 1
            else:
                log.join_pieces()
