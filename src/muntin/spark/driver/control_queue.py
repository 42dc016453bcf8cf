"""The controls that wait for a batch, and the record of which batch brings which.

Exactly once: :meth:`ControlQueue.plan` writes the controls of a batch into the checkpoint before
the batch runs. A batch that is interrupted and runs again brings the same controls, and one that
ran without any runs without any. An instant given to :meth:`ControlQueue.advance` is durable at
once; it is deleted when the batch that brought it is complete. Deleted means empty: while this
driver has a version of a file, those that a replaced driver writes are ignored.

The time of rows that are stamped when they arrive is durable in the same way: it is written with
the number of its batch before the batch runs, and stays until the next batch with rows has another
one. So a repeated batch has the same time, and times increase over any restart and any clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from muntin.model.clock import BEFORE_ALL
from muntin.runtime.codec import decode, encode
from muntin.runtime.frames import Buffer, damaged, pack, unpack
from muntin.spark.exchange.controls import ControlRow, Controls
from muntin.spark.storage import Storage

_PLANNED = "planned"
_ADVANCE = "advance"
_ARRIVAL = "arrival"


def _system_clock() -> int:
    return time.time_ns() // 1000


@dataclass(frozen=True)
class PlannedBatch:
    """A batch with controls that is about to run; ``has_rows`` if Spark has planned its rows."""

    batch: int
    has_rows: bool
    controls: Controls


@dataclass(frozen=True)
class ArrivalRecord:
    """The time of the rows of a batch, and the instant after which the next time has to be."""

    batch: int = -1
    time: int = BEFORE_ALL
    floor: int = BEFORE_ALL


class ControlQueue:
    """The controls that no batch has brought yet; threads may add to it at any time.

    ``clock`` returns the time now in microseconds since 1970.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.clock: Callable[[], int] = _system_clock
        self.stamping = False
        """Whether a stream has rows that are stamped when they arrive."""
        self._arrival = ArrivalRecord()
        self._lock = threading.Lock()
        self._moment: int | None = None
        self._advance: int | None = None
        """The durable part of the moment; it stays until its batch is complete."""
        self._rows: list[str] = []
        self._planned: PlannedBatch | None = None
        self.urgent = threading.Event()
        """Set while a control waits that should not wait for rows."""

    def load(self) -> None:
        """Read what an earlier process left: an interrupted batch, and an instant to advance to."""
        with self._lock:
            self._planned = None
            content = self._storage.adopt(_PLANNED)
            if content:
                self._planned = decode(content, _PLANNED, PlannedBatch, f"{_PLANNED} of the run")
                self.urgent.set()
            moment = _moment(self._storage.adopt(_ADVANCE))
            if moment is not None:
                self._set_advance(moment)
            self._arrival = ArrivalRecord()
            content = self._storage.adopt(_ARRIVAL)
            if content:
                self._arrival = decode(content, _ARRIVAL, ArrivalRecord, f"{_ARRIVAL} of the run")

    # -- adding ----------------------------------------------------------------------------------

    def send(self, control: ControlRow, *, urgent: bool = True) -> None:
        """Add a control row to the next batch; an urgent one makes a batch without rows."""
        with self._lock:
            self._rows.append(control.to_text())
            if urgent:
                self.urgent.set()

    def send_moment(self, moment: int) -> None:
        """Promise that no row up to ``moment`` (microseconds) will follow the next batch."""
        with self._lock:
            self._moment = moment if self._moment is None else max(self._moment, moment)
            self.urgent.set()

    def advance(self, moment: int) -> None:
        """Make the same promise durably; an earlier one to a later instant stays.

        Raises
        ------
        CheckpointError
            When it cannot be written.
        """
        with self._lock:
            before = self._advance
            if before is None:  # an earlier process may have left one
                before = _moment(self._storage.find(_ADVANCE))
            moment = moment if before is None else max(before, moment)
            if moment != self._advance:
                self._storage.put(_ADVANCE, pack(_ADVANCE, moment))
            self._set_advance(moment)

    def _set_advance(self, moment: int) -> None:
        self._advance = moment if self._advance is None else max(self._advance, moment)
        self._moment = moment if self._moment is None else max(self._moment, moment)
        self.urgent.set()

    # -- batches ---------------------------------------------------------------------------------

    def interrupted(self, batch: int) -> PlannedBatch | None:
        """Return the record of a batch that an earlier attempt began, if it had controls."""
        planned = self._planned
        return planned if planned is not None and planned.batch == batch else None

    def plan(self, batch: int, *, has_rows: bool, repeated: bool = False) -> Controls:
        """Return the controls of a batch, which is about to run; they are durable then.

        A batch that is ``repeated`` has the controls of its first attempt, or none.
        """
        controls = self._planned_controls(batch, has_rows=has_rows, repeated=repeated)
        if not self.stamping:
            return controls
        return replace(controls, arrival=self._stamp(batch, controls.moment, has_rows=has_rows))

    def _stamp(self, batch: int, moment: int | None, *, has_rows: bool) -> int | None:
        """Return the time of the rows of a batch, which is durable then; None without rows.

        It is later than all times and moments of earlier batches.
        """
        known = self._arrival
        if known.batch != batch:
            time_of_rows = max(self.clock(), known.floor + 1) if has_rows else known.time
            floor = max(known.floor, time_of_rows, BEFORE_ALL if moment is None else moment)
            found = ArrivalRecord(batch, time_of_rows, floor)
            if has_rows or moment is not None:
                self._storage.put(_ARRIVAL, encode(found, _ARRIVAL))
            self._arrival = found
        return self._arrival.time if has_rows else None

    def _planned_controls(self, batch: int, *, has_rows: bool, repeated: bool) -> Controls:
        """Return the controls of a batch without the time of its rows."""
        planned = self.interrupted(batch)
        if planned is not None:
            return planned.controls
        if repeated:
            return Controls()
        with self._lock:
            controls = Controls(self._moment, tuple(self._rows))
            if controls:
                planned = PlannedBatch(batch, has_rows, controls)
                self._storage.put(_PLANNED, encode(planned, _PLANNED))
                self._planned = planned
            self._moment = None
            self._rows.clear()
            self.urgent.clear()
        return controls

    def complete(self, controls: Controls) -> None:
        """Empty what is durable of the controls of a batch that is complete."""
        if not controls:
            return
        with self._lock:
            self._planned = None
            self._storage.put(_PLANNED, b"", durable=False)
            moment = controls.moment
            if self._advance is not None and moment is not None and moment >= self._advance:
                self._advance = None
                self._storage.put(_ADVANCE, b"", durable=False)
            if self._moment is None and not self._rows:
                self.urgent.clear()


def _moment(content: Buffer | None) -> int | None:
    """Return the instant in the file of an advance; None if there is no file, or an empty one."""
    if not content:
        return None
    moment, _ = unpack(content, _ADVANCE, f"{_ADVANCE} of the run")
    if type(moment) is not int:
        raise damaged(f"{_ADVANCE} of the run")
    return moment
