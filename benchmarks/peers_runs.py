"""Run all workloads in one system, in one process until a workload fails or times out.

The remaining workloads then run in a new process.
"""

from __future__ import annotations

import json
import queue
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.peers_environments import SCRIPTS, end_group, last_line
from benchmarks.report import Progress

_BEGIN_SECONDS = 120.0
"""What a system may take to begin, and for a run over little data."""
_CLOSING_SECONDS = 20.0


@dataclass(frozen=True)
class Peer:
    """A system: its name, its script, whether it needs an environment, and options for its jobs.

    ``batches`` are multiples of the size of a batch that are tried besides the given size.
    """

    name: str
    script: str
    own: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    batches: Sequence[int] = ()


@dataclass(frozen=True)
class Outcome:
    """The outcome of a workload in a system: seconds and results by query, or a reason."""

    seconds: Sequence[float] = ()
    results: Mapping[str, Sequence[int]] = field(default_factory=dict)
    reason: str = ""
    broken: bool = False
    """Whether its process is no longer good for anything."""
    over: float = 0.0
    """Seconds after which it was ended, since it took longer."""

    @property
    def median(self) -> float:
        """Seconds of the run in the middle."""
        return median(self.seconds)

    @property
    def total(self) -> int:
        """Results of all queries."""
        return sum(count for count, _ in self.results.values())


@dataclass(frozen=True)
class Limits:
    """Limits of a workload: seconds allowed, repetitions, seconds after which it ends."""

    seconds: float = 60.0
    repeats: int = 3
    enough: float = 15.0


class _Process:
    """A running script and the lines it prints, each of them waited for with a limit."""

    def __init__(self, command: Sequence[str], errors: Path) -> None:
        self._errors = errors
        with errors.open("w") as file:
            self._process = subprocess.Popen(  # noqa: S603 (arguments are our own)
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                start_new_session=True,
            )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None, "it is a pipe"
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def next(self, seconds: float) -> dict[str, Any] | None:
        """Return the next line, or None at the end; raises :class:`queue.Empty` after a timeout."""
        line = self._lines.get(timeout=seconds)
        return None if line is None else json.loads(line)

    def end(self) -> str:
        """End the process with all that it has started; the last that it said."""
        end_group(self._process)
        self._process.wait()
        self._reader.join(_CLOSING_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None, "it was asked for"
            pipe.close()
        return last_line(self._errors.read_text(encoding="utf-8", errors="replace"))


def run_jobs(
    progress: Progress,
    python: Path,
    peer: Peer,
    jobs: Mapping[str, Mapping[str, Any]],
    limits: Limits,
) -> dict[str, Outcome]:
    """Return the outcome of each job by name.

    A job has ``job``, and ``warm``, the same over little data.
    """
    outcomes: dict[str, Outcome] = {}
    left = dict(jobs)
    with tempfile.TemporaryDirectory(prefix="muntin-bench-", ignore_cleanup_errors=True) as folder:
        while left:
            path = Path(folder) / "jobs.json"
            entries = [
                {
                    "repeats": limits.repeats,
                    "enough": limits.enough,
                    **{key: {**entry[key], **peer.options} for key in ("job", "warm")},
                }
                for entry in left.values()
            ]
            path.write_text(json.dumps(entries), encoding="utf-8")
            command = [
                str(python),
                "-P",
                str(SCRIPTS / "main.py"),
                str(SCRIPTS / f"{peer.script}.py"),
                str(path),
            ]
            process = _Process(command, Path(folder) / "errors.txt")
            done = _take(progress, peer, process, list(left), limits)
            outcomes.update(done)
            left = {name: job for name, job in left.items() if name not in done}
    return outcomes


def _take(
    progress: Progress, peer: Peer, process: _Process, names: Sequence[str], limits: Limits
) -> dict[str, Outcome]:
    """Return the outcomes of one process.

    They cover all jobs, or those up to the one that failed or timed out; all jobs if the process
    did not start.
    """
    outcomes: dict[str, Outcome] = {}
    try:
        if process.next(_BEGIN_SECONDS) is None:
            return dict.fromkeys(names, Outcome(reason=f"does not start: {process.end()}"))
        for name in names:
            outcomes[name] = _outcome(process, limits)
            progress(
                f"{peer.name}, {name}: {outcomes[name].reason or f'{outcomes[name].median:.2f} s'}"
            )
            if outcomes[name].broken:
                break
    except queue.Empty:
        return dict.fromkeys(names, Outcome(reason=f"does not start in {_BEGIN_SECONDS:.0f} s"))
    finally:
        process.end()
    return outcomes


def _outcome(process: _Process, limits: Limits) -> Outcome:
    """Return the report of the process about its next job."""
    seconds: list[float] = []
    found: list[Mapping[str, Sequence[int]]] = []
    limit = _BEGIN_SECONDS
    while True:
        try:
            line = process.next(limit)
        except queue.Empty:
            return Outcome(reason=f"did not finish in {limit:.0f} s", broken=True, over=limit)
        limit = limits.seconds
        if line is None:
            return Outcome(reason=f"failed: {process.end()}", broken=True)
        if line["event"] == "run":
            seconds.append(line["seconds"])
            found.append(line["results"])
        elif "cannot" in line:
            return Outcome(reason=f"cannot: {line['cannot']}")
        elif line["event"] == "done":
            same = all(results == found[0] for results in found)
            return (
                Outcome(seconds, found[0])
                if same
                else Outcome(reason=f"gives other results in every run: {found}")
            )
