"""The suspended queries of a run, in the checkpoint, so that a restart does not try them again.

One frame holds, for each suspended query, its position in the deployment and the reason. Invariant:
it is written before the results of the batch go to the sinks, so a batch that runs again leaves out
the same queries. A query that is dropped and registered again has another position, and runs. An
empty file stands for none.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Container

from muntin.errors import QuerySuspendedError
from muntin.runtime.frames import damaged, pack, unpack
from muntin.spark.storage import Storage

_log = logging.getLogger("muntin")
SUSPENDED = "suspended"
"""The name of the file, and the kind of its frame."""


def suspension(query: str, reason: str) -> QuerySuspendedError:
    """Return the error of a suspended query, with the remedies that there are on Spark."""
    error = QuerySuspendedError(query, reason)
    error.hint = (
        "Start it again, with a changed text if the reason is one of its expressions: "
        f'SparkEngine(..., replace=["{query}"]) or muntin run with --replace {shlex.quote(query)}. '
        "In a running engine, drop it and register it again"
    )
    return error


class SuspendedQueries:
    """Reads and writes the file ``suspended``; ``reasons`` is its content, by position."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.reasons: dict[int, str] = {}

    def load(self) -> None:
        """Read the file, if there is one."""
        self.reasons = {}
        found = self._storage.adopt(SUSPENDED)
        if not found:
            return
        where = self._storage.where(SUSPENDED)
        content, _ = unpack(found, SUSPENDED, where)
        try:
            self.reasons = {int(place): str(reason) for place, reason in content.items()}
        except (ValueError, AttributeError) as error:
            raise damaged(where) from error

    def add(self, place: int, query: str, reason: str) -> None:
        """Suspend a query permanently, and log it once."""
        if place not in self.reasons:
            self.reasons[place] = reason
            self._write()
            _log.warning("%s", suspension(query, reason))

    def keep(self, active: Container[int]) -> None:
        """Forget queries that are no longer active."""
        kept = {place: reason for place, reason in self.reasons.items() if place in active}
        if kept != self.reasons:
            self.reasons = kept
            self._write()

    def _write(self) -> None:
        self._storage.put(SUSPENDED, pack(SUSPENDED, self.reasons))
