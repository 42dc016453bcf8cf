"""The queries of a run that are suspended, in the checkpoint: a restart does not try them again.

One JSON file: for each suspended query its place among all that ever were, and why. It is written
before the batch's results go to the sinks, so a batch that is done again leaves the same queries out.
A query that is dropped and registered again has another place, and runs.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Container
from pathlib import Path

from muntin.errors import QuerySuspendedError
from muntin.spark.checkpoint import CheckpointError, writing

_log = logging.getLogger("muntin")


class Suspended:
    """Reads and writes the file; ``reasons`` is what it says, by place."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.reasons: dict[int, str] = {}

    def load(self) -> None:
        """Read the file, if there is one."""
        try:
            content = json.loads(self._file.read_text(encoding="utf-8"))
            self.reasons = {int(place): str(reason) for place, reason in content.items()}
        except FileNotFoundError:
            self.reasons = {}
        except (ValueError, AttributeError) as error:
            raise CheckpointError(f"{self._file} is damaged", hint="Restore it, or begin a new checkpoint") from error

    def add(self, place: int, query: str, reason: str) -> None:
        """Suspend a query for good, and log it once."""
        if place not in self.reasons:
            self.reasons[place] = reason
            self._write()
            _log.warning("%s", QuerySuspendedError(query, reason))

    def keep(self, active: Container[int]) -> None:
        """Forget queries that are dropped."""
        kept = {place: reason for place, reason in self.reasons.items() if place in active}
        if kept != self.reasons:
            self.reasons = kept
            self._write()

    def _write(self) -> None:
        part = self._file.with_suffix(".part")
        with writing(self._file.parent):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with part.open("w", encoding="utf-8") as file:
                json.dump(self.reasons, file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._file)
