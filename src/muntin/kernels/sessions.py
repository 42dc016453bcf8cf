"""Sessions of keys: which rows come into the result and leave it, by instant.

Rows come in the order of time. The end of a session is its last row plus the gap, so ends have the
order of last rows: one pointer into the rows in order finds the sessions that are over, O(1) per
row. What happens at one shown instant is a unit. A session that a unit touches is compared with
what was shown of it before: its rows up to some row, with some end.
"""

from __future__ import annotations

from typing import NamedTuple

from muntin.kernels.arrays import Integers, Table
from muntin.kernels.jit import inline, kernel

TIME = 0
POSITION = 1
NEXT = 2
SESSION = 3
ROW_FIELDS = 4
"""Of each row: its time, its position in the stream, the next row of its session plus one, and its
session plus one; 0 if its session is over."""

KEY = 0
START = 1
HEAD = 2
TAIL = 3
COUNT = 4
SHOWN = 5
SHOWN_END = 6
STAMP = 7
OVER = 8
FREE_NEXT = 9
SESSION_FIELDS = 10
"""Of each session: its key, the time of its first row, its first and last row, their number, the
last row that is shown plus one, the end that is shown, the last unit that touched it, whether it is
over, and the next free session plus one."""

READ = 0
ROWS = 1
OLDEST = 2
FREE = 3
UNIT = 4
INSTANT = 5
TOUCHED = 6
FLUSHED = 7
WRITTEN = 8
NEEDED = 9
GONE = 10
DEAD = 11
OPEN = 12
META = 13
"""Of the whole: new rows that were read, rows that have come, the row that the pointer is at, the
first free session plus one, the last unit and its instant, the sessions that it touched and those
of them that are written, changes written, the room that is missing, keys whose session is over,
rows of sessions that are over, and open sessions."""

EACH = 0
STEADY = 1
FINAL = 2
"""Rows with the end of their session as it changes; each row with its own end; rows only when their
session is over, from the instant before its end on."""

ROW_OUT = 0
TIME_OUT = 1
SIGN_OUT = 2
START_OUT = 3
END_OUT = 4
OUT_FIELDS = 5


class SessionArrays(NamedTuple):
    """Rows, sessions, the open session of each key plus one, and the whole."""

    rows: Table
    sessions: Table
    open: Integers
    meta: Integers


class SessionTime(NamedTuple):
    """The gap, the interval at whose multiples changes are shown (1: all), and how far time is."""

    gap: int
    every: int
    now: int


@kernel(Integers, SessionArrays, SessionTime, int, Integers, Integers, Table, part="pipelines")
def follow_sessions(keys, kept, time, mode, touched, gone, out):
    """Take the rows with these keys, which stand behind the others, and end what is over.

    Stops when ``out`` is full; then ``meta`` says how much room is needed. ``touched`` and ``gone``
    are scratch for as many sessions as there may be.
    """
    rows, sessions, _, meta = kept
    meta[NEEDED] = 0
    while True:
        while meta[FLUSHED] < meta[TOUCHED]:
            session = touched[meta[FLUSHED]]
            if meta[WRITTEN] + 2 * sessions[session, COUNT] > out.shape[0]:
                meta[NEEDED] = 2 * sessions[session, COUNT]
                return
            _show(kept, time, mode, session, out)
            if sessions[session, OVER] == 1:
                _forget(kept, session, gone)
            meta[FLUSHED] += 1
        meta[FLUSHED] = 0
        meta[TOUCHED] = 0
        at = _next_instant(keys, kept, time)
        if at > time.now:
            return
        instant = -(-at // time.every) * time.every
        meta[UNIT] += 1
        meta[INSTANT] = instant
        while at <= instant and at <= time.now:
            row = _ending(kept)
            if row >= 0 and rows[row, TIME] + time.gap == at and not _comes(keys, rows, meta, at):
                _end(kept, rows[row, SESSION] - 1, touched)
                meta[OLDEST] += 1
            else:
                _begin_or_extend(kept, mode, keys[meta[READ]], touched)
            at = _next_instant(keys, kept, time)


@inline
def _comes(keys, rows, meta, at):
    """Return whether a further row comes at an instant."""
    return meta[READ] < keys.shape[0] and rows[meta[ROWS], TIME] <= at


@inline
def _ending(kept):
    """Return the row with which the next session ends, -1 if none is open."""
    rows, sessions, _, meta = kept
    while meta[OLDEST] < meta[ROWS]:
        row = meta[OLDEST]
        session = rows[row, SESSION] - 1
        if session >= 0 and sessions[session, OVER] == 0 and sessions[session, TAIL] == row:
            return row
        meta[OLDEST] += 1
    return -1


@inline
def _next_instant(keys, kept, time):
    """Return when the next row comes or the next session ends."""
    rows, meta = kept.rows, kept.meta
    row = _ending(kept)
    at = rows[row, TIME] + time.gap if row >= 0 else time.now + 1
    return rows[meta[ROWS], TIME] if _comes(keys, rows, meta, at) else at


@inline
def _touch(kept, session, touched):
    """List a session among those of the unit."""
    sessions, meta = kept.sessions, kept.meta
    if sessions[session, STAMP] != meta[UNIT]:
        sessions[session, STAMP] = meta[UNIT]
        touched[meta[TOUCHED]] = session
        meta[TOUCHED] += 1


@inline
def _begin_or_extend(kept, mode, key, touched):
    """Put the next row into the session of its key, or into a new one."""
    rows, sessions, opened, meta = kept
    row = meta[ROWS]
    session = opened[key] - 1
    if session < 0:
        session = meta[FREE] - 1
        meta[FREE] = sessions[session, FREE_NEXT]
        sessions[session, KEY] = key
        sessions[session, START] = rows[row, TIME]
        sessions[session, HEAD] = row
        sessions[session, COUNT] = 0
        sessions[session, SHOWN] = 0
        sessions[session, STAMP] = 0
        sessions[session, OVER] = 0
        opened[key] = session + 1
        meta[OPEN] += 1
    else:
        rows[sessions[session, TAIL], NEXT] = row + 1
    sessions[session, TAIL] = row
    sessions[session, COUNT] += 1
    rows[row, NEXT] = 0
    rows[row, SESSION] = session + 1
    meta[ROWS] += 1
    meta[READ] += 1
    if mode != FINAL:
        _touch(kept, session, touched)


@inline
def _end(kept, session, touched):
    """End a session; its key may have another one at once."""
    kept.sessions[session, OVER] = 1
    kept.open[kept.sessions[session, KEY]] = 0
    kept.meta[OPEN] -= 1
    _touch(kept, session, touched)


@inline
def _show(kept, time, mode, session, out):
    """Write what a unit changes of a session."""
    rows, sessions, _, meta = kept
    end = rows[sessions[session, TAIL], TIME] + time.gap
    over = sessions[session, OVER] == 1
    instant = meta[INSTANT]
    if mode == FINAL:
        _write(kept, mode, time.gap, session, 0, end, instant - 1, 1, out)
        _write(kept, mode, time.gap, session, 0, end, instant, -1, out)
        return
    since = sessions[session, SHOWN]
    if since > 0 and (over or (mode == EACH and sessions[session, SHOWN_END] != end)):
        before = sessions[session, SHOWN_END]
        _write(kept, mode, time.gap, session, -since, before, instant, -1, out)
        since = 0
    if not over:
        _write(kept, mode, time.gap, session, since, end, instant, 1, out)
        sessions[session, SHOWN] = sessions[session, TAIL] + 1
        sessions[session, SHOWN_END] = end


@inline
def _write(kept, mode, gap, session, since, end, instant, sign, out):
    """Write the rows of a session behind the shown one ``since``; those up to it if negative."""
    rows, sessions, _, meta = kept
    row = rows[since - 1, NEXT] - 1 if since > 0 else sessions[session, HEAD]
    written = meta[WRITTEN]
    while row >= 0:
        out[written, ROW_OUT] = row
        out[written, TIME_OUT] = instant
        out[written, SIGN_OUT] = sign
        out[written, START_OUT] = sessions[session, START]
        out[written, END_OUT] = rows[row, TIME] + gap if mode == STEADY else end
        written += 1
        if row == -since - 1:
            break
        row = rows[row, NEXT] - 1
    meta[WRITTEN] = written


@inline
def _forget(kept, session, gone):
    """Release a session that is over, and its rows."""
    rows, sessions, _, meta = kept
    row = sessions[session, HEAD]
    while row >= 0:
        rows[row, SESSION] = 0
        row = rows[row, NEXT] - 1
    meta[DEAD] += sessions[session, COUNT]
    gone[meta[GONE]] = sessions[session, KEY]
    meta[GONE] += 1
    sessions[session, FREE_NEXT] = meta[FREE]
    meta[FREE] = session + 1
