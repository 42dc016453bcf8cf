"""Queries added and dropped while the engine runs: announced by control rows, settled by a batch.

Exactly once: a change is announced, and durable once a batch is planned that brings it. It is then
written into the deployment with the number of the next batch, before the manifest that completes
this one. If the process dies in between, the change is not in force anywhere, and the next start
compares declarations again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import reduce

from muntin.errors import RunError
from muntin.spark.driver.control_queue import ControlQueue
from muntin.spark.driver.query_changes import PendingChange
from muntin.spark.driver.run_state import RunState

POLL = 0.05
"""Seconds between checks whether the streaming query still runs."""


class ChangeQueue:
    """The announced changes that no batch has brought yet.

    Parameters
    ----------
    state : RunState
        The run.
    controls : ControlQueue
        Takes the announcements.
    seconds : float
        How long a batch may take to bring a change.
    in_sink : callable
        Returns whether the calling thread is inside a sink; waiting there would be a deadlock.
    """

    def __init__(
        self, state: RunState, controls: ControlQueue, seconds: float, in_sink: Callable[[], bool]
    ) -> None:
        self._state = state
        self._controls = controls
        self._seconds = seconds
        self._in_sink = in_sink
        self._pending: dict[str, PendingChange] = {}
        self._lock = threading.Lock()

    def announce(self, change: PendingChange) -> None:
        """Send the control row of a change if the engine runs; otherwise a start finds it."""
        if not self._state.takes_changes:
            return
        with self._lock:
            deployment = reduce(
                lambda before, pending: pending.after(before),
                self._pending.values(),
                self._state.current(),
            )
            self._pending[change.name] = change
        self._controls.send(change.control(deployment))

    def arrived(self, names: Collection[str]) -> list[PendingChange]:
        """Return the pending changes among the names of the control rows that arrived."""
        with self._lock:
            return [change for name, change in self._pending.items() if name in names]

    def settle(self, changes: Sequence[PendingChange]) -> None:
        """Release those who wait for changes that are durable now."""
        with self._lock:
            for change in changes:
                self._pending.pop(change.name, None)
        for change in changes:
            change.done.set()

    def clear(self) -> None:
        """Forget all changes: a start compares the declarations themselves."""
        with self._lock:
            self._pending.clear()

    def wait(self) -> None:
        """Wait until all announced changes are settled or the engine no longer runs.

        The caller must not hold the engine's lock, so that others can stop the engine meanwhile. In
        a sink this returns at once: its batch settles the changes afterwards.
        """
        if self._in_sink():
            return
        until = time.monotonic() + self._seconds
        with self._lock:
            waiting = list(self._pending.values())
        for change in waiting:
            while not change.done.wait(POLL) and self._state.is_active:
                if time.monotonic() > until:
                    raise RunError(
                        f"no batch has applied the change of {change.about} for "
                        f"{self._seconds:.0f} seconds",
                        hint="It is still pending and comes with the next batch; look at "
                        "engine.progress, or stop and start the engine",
                    )
