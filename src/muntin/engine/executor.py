"""The thread of an engine that runs in the background.

It works in short turns, between which the engine takes rows and answers users.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from muntin.engine.fair_lock import FairLock
from muntin.engine.interrupts import Held, wait_for

_log = logging.getLogger("muntin")

_IDLE = 60.0
"""Seconds after which an idle thread looks for work although nothing woke it."""


class Executor:
    """Calls ``work`` until it returns False, and again after every :meth:`wake`.

    ``work`` is called with ``lock`` held, which is released after each call, so other threads wait
    for one call at most.
    """

    def __init__(self, work: Callable[[], bool], lock: FairLock) -> None:
        self._work = work
        self._lock = lock
        self._changed = threading.Condition()
        self._woken = False
        self._idle = False
        self._stopping = False
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="muntin-executor", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Continue: there is work to do."""
        with Held(), self._changed:
            self._idle = False
            self._woken = True
            self._changed.notify_all()

    def wait(self, seconds: float | None) -> bool:
        """Wait until nothing is left to do, at most ``seconds``; return whether that is so."""
        limit = threading.TIMEOUT_MAX if seconds is None else seconds
        return wait_for(self._changed, lambda: self._idle, time.monotonic() + limit)

    def end(self) -> None:
        """Make the thread end after the current turn, without waiting for it."""
        with Held(), self._changed:
            self._stopping = True
            self._changed.notify_all()

    def stop(self, timeout: float) -> None:
        """End the thread after the current turn, which gets ``timeout`` seconds.

        Must not be called from within a turn.
        """
        self.end()
        self._thread.join(max(timeout, 0.0))

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._woken = False
                with self._lock:
                    busy = self._work()
                    if not busy:
                        self._become_idle()
                if not busy:
                    with self._changed:
                        self._changed.wait_for(lambda: self._woken or self._stopping, _IDLE)
        except BaseException as error:  # noqa: BLE001 (the next call raises it)
            _log.critical("the engine has stopped working", exc_info=error)
            self.failure = error
        finally:
            with self._changed:
                self._idle = True
                self._changed.notify_all()

    def _become_idle(self) -> None:
        """Report that nothing is left to do, unless something has come since the last turn."""
        with self._changed:
            self._idle = not self._woken
            self._changed.notify_all()
