"""The thread that works for a running engine: short turns of work, between which rows come and users look."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from muntin.engine.turns import Turns

_log = logging.getLogger("muntin")


class Executor:
    """Calls ``work`` as long as it says that something is left, and then again after every :meth:`wake`.

    ``work`` is called with ``turns`` held, and that is let go after each call, so others never wait longer than one of them.
    """

    def __init__(self, work: Callable[[], bool], turns: Turns) -> None:
        self._work = work
        self._turns = turns
        self._woken = threading.Event()
        self._idle = threading.Event()
        self._stopping = False
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="muntin-executor", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Something is to be done."""
        self._idle.clear()
        self._woken.set()

    def wait(self, seconds: float | None) -> bool:
        """Wait until nothing is left to do, at most so long; whether that is so."""
        return self._idle.wait(seconds)

    def stop(self) -> None:
        """End after the turn that is being worked on; not from within one."""
        self._stopping = True
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._woken.clear()
                with self._turns:
                    busy = self._work()
                    if not busy and not self._woken.is_set():
                        self._idle.set()
                if not busy:
                    self._woken.wait()
        except BaseException as error:  # noqa: BLE001 (whatever it is, whoever uses the engine next has to hear of it)
            _log.critical("the engine has stopped working", exc_info=error)
            self.failure = error
        finally:
            self._idle.set()
