"""Spark's logs of a run in the checkpoint: which batches were planned and which are complete.

Spark writes the offsets of a batch before it runs and a commit after. If both logs are intact, an
uncommitted batch runs again with the same input. Spark itself misses two cases that would break
that: a log file that is damaged, and an input file that has disappeared since the batch was
planned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from muntin.errors import InputError
from muntin.spark.exchange.frames import CheckpointError


@dataclass(frozen=True)
class SparkLogs:
    """The logs in the folder that Spark calls its checkpoint."""

    folder: Path

    def last_planned(self) -> int:
        """Return the last batch that was planned, or -1."""
        return _last(self.folder / "offsets")

    def last_complete(self) -> int:
        """Return the last batch that is complete, or -1."""
        return _last(self.folder / "commits")

    def check_intact(self) -> None:
        """Raise an error that names the file if the log of the last batches is damaged."""
        planned, done = self.last_planned(), self.last_complete()
        needed = [
            self.folder / "offsets" / str(batch) for batch in sorted({planned, done}) if batch >= 0
        ]
        needed += [self.folder / "commits" / str(done)] if done >= 0 else []
        for path in needed:
            if not _is_intact(path):
                raise CheckpointError(
                    f"{path} is {'damaged' if path.exists() else 'missing'}",
                    hint="Restore the entire folder from a copy, or begin a new checkpoint",
                )

    def check_inputs(self) -> None:
        """Raise if an input file of the uncommitted batch is gone.

        Spark would run the batch without its rows and never read the file again.
        """
        offsets = self.folder / "offsets"
        batch = self.last_planned()
        if batch <= self.last_complete():
            return
        before, after = _positions(offsets / str(batch - 1)), _positions(offsets / str(batch))
        for number, position in after.items():
            log = self.folder / "sources" / str(number)
            for path in _files_of(log, before.get(number, -1), position):
                if not path.exists() or (path.suffix == ".parquet" and not path.stat().st_size):
                    raise InputError(
                        f"batch {batch} was begun with {path}, which is "
                        f"{'empty' if path.exists() else 'gone'}",
                        hint="Put it back, or a file of the same name without rows, then start "
                        "again",
                    )


def _last(log: Path) -> int:
    """Return the greatest number of a file in a log, or -1."""
    if not log.is_dir():
        return -1
    return max((int(path.name) for path in log.iterdir() if path.name.isdecimal()), default=-1)


def _is_intact(path: Path) -> bool:
    try:
        version, *lines = path.read_text(encoding="utf-8").splitlines()
        return (
            version.startswith("v")
            and bool(lines)
            and all(line == "-" or json.loads(line) is not None for line in lines)
        )
    except (OSError, ValueError):
        return False


def _positions(offsets: Path) -> dict[int, int]:
    """Return how far each file source was read, by Spark's numbers; skip unknown formats."""
    try:
        lines = [
            json.loads(line) if line.startswith("{") else None
            for line in offsets.read_text(encoding="utf-8").splitlines()[2:]
        ]
    except (OSError, ValueError):
        return {}
    return {
        number: line["logOffset"]
        for number, line in enumerate(lines)
        if line is not None and type(line.get("logOffset")) is int
    }


def _files_of(log: Path, after: int, last: int) -> Iterator[Path]:
    """Yield the local files in the log of a source, behind entry ``after`` up to ``last``."""
    for number in range(after + 1, last + 1):
        file = next(
            (path for path in (log / str(number), log / f"{number}.compact") if path.is_file()),
            None,
        )
        for line in file.read_text(encoding="utf-8").splitlines()[1:] if file else ():
            with suppress(ValueError):
                entry = json.loads(line)
                place = urlsplit(entry["path"])
                if entry["batchId"] == number and place.scheme == "file":
                    yield Path(unquote(place.path))
