"""Spark's logs of a run in the checkpoint: which batches were planned and which are complete.

Spark writes the offsets of a batch before it runs and a commit after. If both logs are intact, an
uncommitted batch runs again with the same input. Spark itself misses two cases that would break
that: a log file that is damaged or missing, and an input file that has disappeared since the batch
was planned. Spark does not synchronize its logs with a local disk, so :meth:`SparkLogs.sync` does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from muntin.errors import InputError
from muntin.runtime.frames import Buffer, CheckpointError
from muntin.spark.storage import Storage


@dataclass(frozen=True)
class SparkLogs:
    """The logs in the folder that Spark calls its checkpoint."""

    storage: Storage

    def last_planned(self) -> int:
        """Return the last batch that was planned, or -1."""
        return self._last("offsets")

    def last_complete(self) -> int:
        """Return the last batch that is complete, or -1."""
        return self._last("commits")

    def _last(self, log: str) -> int:
        """Return the greatest number of a file in a log, or -1."""
        names = self.storage.names(log)
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def check_intact(self) -> None:
        """Raise an error that names the file if the log of the last batches is damaged."""
        planned, done = self.last_planned(), self.last_complete()
        needed = [f"offsets/{batch}" for batch in sorted({planned, done}) if batch >= 0]
        needed += [f"commits/{done}"] if done >= 0 else []
        needed += [
            f"sources/{source}/{position}"
            for source, position in self._positions(planned).items()
            if position >= 0
        ]
        for name in needed:
            content = self._entry(name)
            if content is None or not _is_intact(content):
                raise CheckpointError(
                    f"{self.storage.where(name)} is {'missing' if content is None else 'damaged'}",
                    hint="Restore the entire folder from a copy, or begin a new checkpoint",
                )

    def check_inputs(self) -> None:
        """Raise if an input file of the uncommitted batch is gone.

        Spark would run the batch without its rows and never read the file again.
        """
        batch = self.last_planned()
        if batch <= self.last_complete():
            return
        before, after = self._positions(batch - 1), self._positions(batch)
        for number, position in after.items():
            for path in self._files_of(number, before.get(number, -1), position):
                if not path.exists() or (path.suffix == ".parquet" and not path.stat().st_size):
                    raise InputError(
                        f"batch {batch} was begun with {path}, which is "
                        f"{'empty' if path.exists() else 'gone'}",
                        hint="Put it back, or a file of the same name without rows, then start "
                        "again",
                    )

    def sync(self, batch: int) -> None:
        """Make what Spark has planned up to a batch as durable as the manifest of it will be.

        Otherwise a power failure could keep the manifest and lose the offsets of the batch.
        """
        logs = [f"offsets/{batch}"]
        for source, position in self._positions(batch).items():
            logs += [f"sources/{source}/{position}", f"sources/{source}/{position}.compact"]
        self.storage.sync(logs)

    def _entry(self, name: str) -> Buffer | None:
        """Return an entry of a log; Spark merges every tenth of a source with those before it."""
        content = self.storage.find(name)
        return self.storage.find(f"{name}.compact") if content is None else content

    def _positions(self, batch: int) -> dict[int, int]:
        """Return how far each file source was read, by Spark's numbers; skip unknown formats."""
        try:
            lines = [
                json.loads(line) if line.startswith("{") else None
                for line in _lines(self.storage.find(f"offsets/{batch}") or b"")[2:]
            ]
        except ValueError:
            return {}
        return {
            number: line["logOffset"]
            for number, line in enumerate(lines)
            if line is not None and type(line.get("logOffset")) is int
        }

    def _files_of(self, source: int, after: int, last: int) -> Iterator[Path]:
        """Yield the local files in the log of a source, behind entry ``after`` up to ``last``."""
        for number in range(after + 1, last + 1):
            log = f"sources/{source}/{number}"
            for line in _lines(self._entry(log) or b"")[1:]:
                with suppress(ValueError):
                    entry = json.loads(line)
                    place = urlsplit(entry["path"])
                    if entry["batchId"] == number and place.scheme == "file":
                        yield Path(unquote(place.path))


def _lines(content: Buffer) -> list[str]:
    return bytes(content).decode().splitlines()


def _is_intact(content: Buffer) -> bool:
    try:
        version, *lines = _lines(content)
        return (
            version.startswith("v")
            and bool(lines)
            and all(line == "-" or json.loads(line) is not None for line in lines)
        )
    except ValueError:
        return False
