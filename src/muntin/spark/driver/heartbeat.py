"""The threads of a live run that act without rows: the heartbeat and the runner of controls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from muntin.spark.driver.control_queue import ControlQueue

_BEAT = 1.0
_POLL = 0.1
"""Seconds in which a thread notices that it is to end."""


class Heartbeat:
    """Sends the clock's time minus ``delay`` microseconds as a moment, about once per second.

    ``due`` returns the first instant at which time alone can change a result, or None if there is
    none. Earlier moments are not sent: each one costs a batch.
    """

    def __init__(
        self,
        send: Callable[[int], None],
        delay: int,
        due: Callable[[], int | None],
        beat: float = _BEAT,
    ) -> None:
        self._send = send
        self._delay = delay
        self._due = due
        self._beat = beat
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="muntin-heartbeat", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(self._beat):
            moment = time.time_ns() // 1000 - self._delay
            due = self._due()
            if due is not None and moment >= due:
                self._send(moment)

    def stop(self, timeout: float = 10.0) -> None:
        """Send no more moments."""
        self._stopped.set()
        self._thread.join(timeout)


class ControlRunner:
    """Runs a batch without rows when an urgent control waits and no batch with rows takes it.

    ``run`` runs such a batch, unless a batch with rows has taken the controls meanwhile, and
    returns False if that is not possible yet. ``failed`` is called with the exception of one that
    failed, and nothing runs after it.
    """

    def __init__(
        self,
        controls: ControlQueue,
        run: Callable[[], bool],
        failed: Callable[[Exception], None],
    ) -> None:
        self._controls = controls
        self._run = run
        self._failed = failed
        self._stopped = False
        self._thread = threading.Thread(target=self._loop, name="muntin-controls", daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        while not self._stopped:
            if not self._controls.urgent.wait(_POLL):
                continue
            try:
                if not self._run():
                    time.sleep(_POLL)
            except Exception as error:  # noqa: BLE001 (whatever it is, it ends the run)
                if not self._stopped:
                    self._failed(error)
                return

    def end(self) -> None:
        """Run nothing more after the batch that runs."""
        self._stopped = True

    def join(self, timeout: float) -> bool:
        """Wait for the batch that runs; return whether it has ended in time."""
        self._thread.join(timeout)
        return not self._thread.is_alive()
