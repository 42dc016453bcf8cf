"""Hold back Ctrl-C while the engine works, so that no call is cut off in the middle.

Python raises KeyboardInterrupt between any two bytecodes of the main thread: after a lock was taken
but before ``try`` guards it, or between taking a result and storing it. So while the main thread is
in a section that must not be cut off, a handler only records SIGINT, and the interrupt is raised
where the section ends. Other threads are never interrupted by Python.

Why it is safe: ``signal.signal`` runs pending signals with the old handler *before* it switches, so
it either raises and changes nothing, or the new handler is in force when it returns. The functions
listed in ``_PROTECTED`` do the bookkeeping; no interrupt is raised in their frames.

A second Ctrl-C during a long section is raised at once. The locks that the main thread holds then
guard half-finished work, so they are marked as broken, and
:class:`muntin.engine.fair_lock.FairLock` refuses further use.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any, Protocol

Handler = Callable[[int, FrameType | None], Any]

SLICE = 0.05
"""Seconds that the main thread waits at a time where it must notice a recorded interrupt."""


class Breakable(Protocol):
    """A lock that is marked when the work it guards was cut off."""

    broken: bool


class _MainThread:
    """The sections that the main thread is in."""

    def __init__(self) -> None:
        self.depth = 0
        self.open = False
        """True while users' code runs inside a section, where an interrupt is raised at once."""
        self.previous: Handler | None = None
        self.caught: list[FrameType | None] = []
        self.held: list[Breakable] = []


_state = _MainThread()
# The functions in C: those of the module convert to enums and back, which costs ten times as much.
_c_signal = sys.modules.get("_signal", signal)
_get_handler: Callable[[int], Handler | int | None] = _c_signal.getsignal
_set_handler: Callable[[int, Handler], object] = _c_signal.signal
_SIGINT = int(signal.SIGINT)
_main = threading.main_thread().ident


def _begin_in_child() -> None:
    """Start without sections in a forked process, whose main thread is the one that forked."""
    global _main, _state  # noqa: PLW0603 (one of each per process)
    _main = threading.get_ident()
    if _state.depth and _state.previous is not None:
        _set_handler(_SIGINT, _state.previous)
    _state = _MainThread()


os.register_at_fork(after_in_child=_begin_in_child)


def _is_main() -> bool:
    return threading.get_ident() == _main


def hold() -> bool:
    """Begin a section; return the argument for :func:`release` at its end."""
    if not _is_main():
        return False
    if not _state.depth:
        previous = _get_handler(_SIGINT)
        # A handler that is not callable ignores SIGINT or ends the process at once.
        if callable(previous) and previous is not _record:
            _state.caught = []
            _state.previous = previous
            _set_handler(_SIGINT, _record)
    _state.depth += 1
    was_open, _state.open = _state.open, False
    return was_open


def release(*, was_open: bool = False) -> None:
    """End a section, and raise an interrupt that was recorded if no other section is around it."""
    if not _is_main():
        return
    _state.depth -= 1
    _state.open = was_open
    if _state.depth and not was_open:
        return
    previous, caught = _state.previous, _state.caught
    if not _state.depth and previous and _get_handler(_SIGINT) is _record:
        _set_handler(_SIGINT, previous)
    if caught and previous is not None:
        frame = caught[0]
        caught.clear()
        previous(_SIGINT, frame)


def _record(number: int, frame: FrameType | None) -> None:
    state, previous = _state, _state.previous
    if previous is None:
        return
    inside = frame is not None and frame.f_code in _PROTECTED
    if (state.open or not state.depth) and not inside:
        previous(number, frame)
        return
    state.caught.append(frame)
    if len(state.caught) > 1 and state.held and not inside:
        for lock in state.held:
            lock.broken = True
        state.caught.clear()
        previous(number, frame)


def is_interrupted() -> bool:
    """Return whether an interrupt will be raised at the end of this thread's section."""
    return bool(_state.caught) and bool(_state.depth) and _is_main()


class Held:
    """A section as ``with Held():``, for bookkeeping that takes no time."""

    def __enter__(self) -> None:
        self._was_open = hold()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        release(was_open=self._was_open)


def call_user(function: Callable[..., object], *arguments: object) -> None:
    """Call a user's function inside a section; while it runs, an interrupt is raised at once.

    One that comes before its first line waits until it has returned: what it was called with would
    be lost.
    """
    if not _is_main() or not _state.depth:
        function(*arguments)
        return
    try:
        _state.open = True
        function(*arguments)
    finally:
        _state.open = False


def wait_for(changed: threading.Condition, done: Callable[[], object], until: float) -> bool:
    """Wait for a condition until a moment of ``time.monotonic``; return whether it holds.

    An interrupt ends the wait and leaves the condition's lock free.
    """
    while True:
        left = until - time.monotonic()
        with Held(), changed:
            if changed.wait_for(done, max(min(left, SLICE), 0)):
                return True
        if left <= SLICE:
            return False


def mark_held(lock: Breakable) -> None:
    """Let a second interrupt break a lock that this thread took in its section."""
    if _is_main():
        _state.held.append(lock)


def unmark_held(lock: Breakable) -> None:
    """Undo :func:`mark_held`."""
    if _is_main():
        _state.held.remove(lock)


def protect(*functions: Callable[..., object]) -> None:
    """Never raise an interrupt in the frames of these functions, which enter and leave sections."""
    _PROTECTED.update(function.__code__ for function in functions)


_PROTECTED: set[CodeType] = set()
protect(_is_main, hold, release, _record, is_interrupted, mark_held, unmark_held, protect)
protect(Held.__enter__, Held.__exit__, call_user)
