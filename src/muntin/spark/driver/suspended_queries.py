"""The suspended queries of a run, in the checkpoint, so that a restart does not try them again.

One frame holds, for each suspended query, its position in the deployment and the reason. Invariant:
it is written before the results of the batch go to the sinks, so a batch that runs again leaves out
the same queries. A query that is dropped and registered again has another position, and runs.
"""

from __future__ import annotations

import logging
from collections.abc import Container
from pathlib import Path

from muntin.errors import QuerySuspendedError
from muntin.spark.exchange.frames import damaged, pack, read_file, unpack, write_file, writing

_log = logging.getLogger("muntin")
_KIND = "suspended"


class SuspendedQueries:
    """Reads and writes the file; ``reasons`` is its content, by position."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.reasons: dict[int, str] = {}

    def load(self) -> None:
        """Read the file, if there is one."""
        self.reasons = {}
        if not self._file.exists():
            return
        content, _ = unpack(read_file(self._file), _KIND, str(self._file))
        try:
            self.reasons = {int(place): str(reason) for place, reason in content.items()}
        except (ValueError, AttributeError) as error:
            raise damaged(str(self._file)) from error

    def add(self, place: int, query: str, reason: str) -> None:
        """Suspend a query permanently, and log it once."""
        if place not in self.reasons:
            self.reasons[place] = reason
            self._write()
            _log.warning("%s", QuerySuspendedError(query, reason))

    def keep(self, active: Container[int]) -> None:
        """Forget queries that are no longer active."""
        kept = {place: reason for place, reason in self.reasons.items() if place in active}
        if kept != self.reasons:
            self.reasons = kept
            self._write()

    def _write(self) -> None:
        with writing(self._file.parent):
            write_file(self._file, pack(_KIND, self.reasons))
