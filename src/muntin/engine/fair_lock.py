"""A fair lock: a waiting thread gets it before the last holder gets it again."""

from __future__ import annotations

import threading
from types import TracebackType

from muntin.engine import interrupts
from muntin.errors import RunError


class FairLock:
    """A lock that a thread may take several times, as ``with lock:``.

    A thread that works in many short turns would take an ordinary lock again before any other
    thread wakes up. Here each thread first takes the gate and keeps it until it has the lock; so
    the worker waits at the gate while another thread waits for the lock.

    Ctrl-C is held back while the main thread has the lock (:mod:`muntin.engine.interrupts`): the
    work is completed, the lock is released, and then KeyboardInterrupt is raised.
    """

    def __init__(self) -> None:
        self.broken = False
        self._gate = threading.Lock()
        self._lock = threading.Lock()
        self._owner = 0
        self._depth = 0
        self._was_open = False

    def __enter__(self) -> None:
        if self._owner != threading.get_ident():
            was_open = interrupts.hold()
            while not self._acquire():
                interrupts.release(was_open=was_open)  # raises, unless the user's handler does not
                was_open = interrupts.hold()
            self._owner = threading.get_ident()
            self._was_open = was_open
            if self.broken:
                self._release()
                raise RunError(
                    "the engine was interrupted in the middle of its work",
                    hint="Make a new engine. "
                    "A single Ctrl-C lets a call finish before it is raised",
                )
            interrupts.mark_held(self)
        self._depth += 1

    def _acquire(self) -> bool:
        """Take the lock; False when an interrupt came while the main thread waited for it."""
        while not self._gate.acquire(timeout=interrupts.SLICE):
            if interrupts.is_interrupted():
                return False
        try:
            while not self._lock.acquire(timeout=interrupts.SLICE):
                if interrupts.is_interrupted():
                    return False
        finally:
            self._gate.release()
        return True

    def _release(self) -> None:
        was_open = self._was_open  # the next holder overwrites it
        self._owner = 0
        self._lock.release()
        interrupts.release(was_open=was_open)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if not self._depth:
            interrupts.unmark_held(self)
            self._release()


interrupts.protect(FairLock.__enter__, FairLock.__exit__)
interrupts.protect(FairLock._acquire, FairLock._release)  # noqa: SLF001 (its own)
