"""The open sessions of keys, and their rows.

Invariant: a row is kept while its session is open; values stand in a log, from which those of
sessions that are over are taken out when they are the most. Rows stand in the order in which they
came, so the next session to end is found by one pointer. Cost: O(1) per row, and per row of a
session whose rows are shown again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from muntin.kernels.sessions import (
    DEAD,
    END_OUT,
    FREE,
    FREE_NEXT,
    GONE,
    HEAD,
    META,
    NEEDED,
    NEXT,
    OLDEST,
    OPEN,
    OUT_FIELDS,
    POSITION,
    READ,
    ROW_FIELDS,
    ROW_OUT,
    ROWS,
    SESSION,
    SESSION_FIELDS,
    SHOWN,
    SIGN_OUT,
    START,
    START_OUT,
    TAIL,
    TIME,
    TIME_OUT,
    WRITTEN,
    SessionArrays,
    SessionTime,
    follow_sessions,
)
from muntin.model.arrays import Integers
from muntin.state.columns import take_rows
from muntin.state.group_table import GroupTable, grown

_LEAST = 1 << 10
_PIECES = 64
"""Pieces of the log from which on they are concatenated: lookups take longer the more there are."""

Words = tuple[Integers, Integers]


class SessionChanges(NamedTuple):
    """Rows that come and go, by time, with the bounds of their sessions."""

    rows: pa.Table
    times: Integers
    signs: Integers
    starts: Integers
    ends: Integers


class SessionRows:
    """The state of the sessions of rows of a schema; ``mode`` is one of the kernel's."""

    def __init__(self, schema: pa.Schema, gap: int, every: int | None, mode: int) -> None:
        self._gap, self._every, self._mode = gap, every or 1, mode
        self._keys = GroupTable()
        self._kept = SessionArrays(
            np.zeros((0, ROW_FIELDS), np.int64),
            np.zeros((0, SESSION_FIELDS), np.int64),
            np.zeros(0, np.int64),
            np.zeros(META, np.int64),
        )
        self._log = schema.empty_table()

    def __len__(self) -> int:
        """Return the number of rows of open sessions."""
        return int(self._kept.meta[ROWS] - self._kept.meta[DEAD])

    def nbytes(self) -> int:
        """Return the bytes of all arrays and values."""
        arrays = sum(array.nbytes for array in self._kept)
        return self._keys.nbytes() + arrays + int(self._log.nbytes)

    def due(self) -> int | None:
        """Return the instant at which a session ends next, at the latest; None if none is open."""
        rows, _, _, meta = self._kept
        if not meta[OPEN]:
            return None
        return int(rows[meta[OLDEST], TIME]) + self._gap

    def positions(self) -> Integers:
        """Return the positions of the rows of open sessions in their stream."""
        found: Integers = self._kept.rows[self._present(), POSITION]
        return found

    def run(
        self, rows: pa.Table, words: Words, placed: tuple[Integers, Integers], now: int
    ) -> SessionChanges:
        """Take rows by time, with the words of their keys, their times and positions.

        Return the changes up to ``now``.
        """
        keys = self._keys.find(*words)
        self._append(rows, *placed)
        out = self._follow(keys, SessionTime(self._gap, self._every, now))
        found = SessionChanges(
            take_rows(self._log, np.ascontiguousarray(out[:, ROW_OUT])),
            out[:, TIME_OUT].copy(),
            out[:, SIGN_OUT].copy(),
            out[:, START_OUT].copy(),
            out[:, END_OUT].copy(),
        )
        self._clean()
        return found

    def present(self) -> SessionChanges:
        """Return the rows of open sessions."""
        rows, sessions, _, _ = self._kept
        there = self._present()
        own = rows[there, SESSION] - 1
        ends = rows[sessions[own, TAIL], TIME] + self._gap
        ones = np.ones(len(there), np.int64)
        found = take_rows(self._log, there)
        return SessionChanges(found, rows[there, TIME], ones, sessions[own, START], ends)

    def _present(self) -> Integers:
        return np.flatnonzero(self._kept.rows[: self._kept.meta[ROWS], SESSION])

    def _append(self, rows: pa.Table, times: Integers, positions: Integers) -> None:
        """Put new rows behind the others, and make room for as many sessions."""
        kept, meta = self._kept, self._kept.meta
        count, known = int(meta[ROWS]), len(kept.sessions)
        arrays = kept.rows
        if len(arrays) < count + len(rows):
            arrays = grown(arrays, _room(count + len(rows)))
        arrays[count : count + len(rows), TIME] = times
        arrays[count : count + len(rows), POSITION] = positions
        arrays[count : count + len(rows), SESSION] = 0
        sessions, wanted = kept.sessions, int(meta[OPEN]) + len(rows)
        if known < wanted:
            sessions = grown(sessions, _room(wanted))
            fresh = np.arange(known, len(sessions))
            sessions[fresh, FREE_NEXT] = fresh + 2
            sessions[-1, FREE_NEXT] = meta[FREE]
            meta[FREE] = known + 1
        opened = kept.open
        if len(opened) < self._keys.capacity:
            opened = grown(opened, self._keys.capacity)
        self._kept = SessionArrays(arrays, sessions, opened, meta)
        if len(rows):
            self._log = pa.concat_tables([self._log, rows])

    def _follow(self, keys: Integers, time: SessionTime) -> Integers:
        """Return the changes that the kernel writes, and forget keys without a session."""
        meta, most = self._kept.meta, len(self._kept.sessions)
        meta[READ] = meta[GONE] = 0
        touched, gone = np.empty(most, np.int64), np.empty(most + len(keys), np.int64)
        room, parts = 2 * len(keys) + 16, []
        while True:
            out = np.empty((max(room, int(meta[NEEDED])), OUT_FIELDS), np.int64)
            meta[WRITTEN] = 0
            follow_sessions(keys, self._kept, time, self._mode, touched, gone, out)
            parts.append(out[: meta[WRITTEN]])
            if not meta[NEEDED]:
                break
            room = 2 * room
        over = np.unique(gone[: meta[GONE]])
        self._keys.give_back(over[self._kept.open[over] == 0])
        return np.concatenate(parts)

    def _clean(self) -> None:
        """Concatenate the log, without the rows of sessions that are over when those are the most.

        The order of rows stays, so the pointer moves to the first row behind it that is kept.
        """
        rows, sessions, opened, meta = self._kept
        count = int(meta[ROWS])
        if meta[DEAD] >= (count - meta[DEAD]) + _LEAST:
            there = self._present()
            place = np.cumsum(rows[:count, SESSION] > 0) - 1
            left = np.zeros((_room(len(there)), ROW_FIELDS), np.int64)
            left[: len(there)] = rows[there]
            behind = left[: len(there), NEXT]
            left[: len(there), NEXT] = np.where(behind > 0, place[behind - 1] + 1, 0)
            own = np.unique(rows[there, SESSION] - 1)
            sessions[own, HEAD] = place[sessions[own, HEAD]]
            sessions[own, TAIL] = place[sessions[own, TAIL]]
            shown = sessions[own, SHOWN]
            sessions[own, SHOWN] = np.where(shown > 0, place[shown - 1] + 1, 0)
            meta[OLDEST] = np.searchsorted(there, meta[OLDEST])
            meta[ROWS], meta[DEAD] = len(there), 0
            self._kept = SessionArrays(left, sessions, opened, meta)
            self._log = take_rows(self._log, there).combine_chunks()
        elif self._log.num_columns and self._log.column(0).num_chunks > _PIECES:
            self._log = self._log.combine_chunks()


def _room(wanted: int) -> int:
    """Return a capacity that holds as many."""
    return 1 << max(wanted - 1, 15).bit_length()
