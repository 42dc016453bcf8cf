"""A lock whose holders take turns: whoever waits for it gets it before the one who had it last gets it again."""

from __future__ import annotations

import threading
from types import TracebackType


class Turns:
    """A lock that a thread may take several times, as ``with turns:``.

    A thread that works in many short pieces would take an ordinary lock again before any other thread wakes up. Here everybody first
    takes the gate and keeps it until it has the lock; so the worker waits at the gate while another one waits for the lock.
    """

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._lock = threading.Lock()
        self._owner = 0
        self._depth = 0

    def __enter__(self) -> None:
        if self._owner != threading.get_ident():
            with self._gate:
                self._lock.acquire()
            self._owner = threading.get_ident()
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = 0
            self._lock.release()
