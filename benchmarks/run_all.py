"""Run many benchmarks, each in a separate process, so that a crash is one line of the report.

Each process writes the JSON and the plots of its benchmark; after each the pages are written again,
so that what was measured can be read while the rest continues, and nothing is lost by an
interruption.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pages import question_of, write_pages
from benchmarks.report import this_machine
from benchmarks.run import Run, revision

MARK = "progress: "
"""How lines of progress begin of a child process; other lines are those of libraries."""

_ROOT = Path(__file__).parents[1]
_TAIL = 15
"""Number of last lines kept of a process that failed."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class RunRequest:
    """What to run and where to.

    Parameters
    ----------
    names
        The benchmarks.
    folder
        Where their figures and the pages go.
    quick
        Whether with little data.
    resume
        Whether to keep what the folder has of the same commit.
    options
        More options for each process.
    readme
        The README that has the headlines.
    """

    names: Sequence[str]
    folder: Path
    quick: bool = False
    resume: bool = False
    options: Sequence[str] = ()
    readme: Path | None = None


def run_all(request: RunRequest, tell: Tell) -> list[str]:
    """Run a request and return the names of failures.

    With enough data, claims that do not hold count as failures.
    """
    begin = time.monotonic()
    request.folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(request.names, 1):

        def tell_of(
            text: str, place: str = f"{number} of {len(request.names)}", name: str = name
        ) -> None:
            tell(f"[{place}, {(time.monotonic() - begin) / 60:.1f} min] {name}: {text}")

        if request.resume and _is_done(request, name):
            tell_of("kept, it is of the same commit")
            continue
        tell_of("begins")
        _run_one(request, name, tell_of)
        write_pages(request.folder, request.readme)
    write_pages(request.folder, request.readme)
    return [name for name in request.names if not _is_well(request, name)]


def _run_one(request: RunRequest, name: str, tell: Tell) -> None:
    began = time.monotonic()
    path = request.folder / f"{name}.json"
    path.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        name,
        "--output",
        str(request.folder),
        "--worker",
        *request.options,
    ]
    tail: deque[str] = deque(maxlen=_TAIL)
    path_with_root = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    with subprocess.Popen(  # noqa: S603 (arguments are our own)
        [*command, *(["--quick"] if request.quick else [])],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path_with_root},
    ) as process:
        for line in _lines(process):
            tail.append(line)
            if line.startswith(MARK):
                tell(line.removeprefix(MARK))
    if path.exists():
        tell(f"done in {(time.monotonic() - began) / 60:.1f} min")
        return
    error = f"exit code {process.returncode}\n" + "\n".join(tail)
    run = Run.ending_now(time.monotonic() - began, quick=request.quick)
    document = {
        "name": name,
        "question": question_of(name),
        "rows": [],
        "claims": [],
        "machine": this_machine(),
        "run": run.to_dict(),
    }
    path.write_text(json.dumps({**document, "error": error}, indent=2) + "\n", encoding="utf-8")
    tell(f"FAILED: {tail[-1] if tail else error}")


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stderr is not None, "it is a pipe"
    for line in process.stderr:
        yield line.rstrip()


def _is_done(request: RunRequest, name: str) -> bool:
    """Return whether the folder has figures of this benchmark, source and amount of data."""
    path = request.folder / f"{name}.json"
    if not path.exists() or not revision():
        return False
    document = json.loads(path.read_text(encoding="utf-8"))
    run = document.get("run", {})
    return (
        "error" not in document
        and run.get("commit") == revision()
        and run.get("quick") == request.quick
    )


def _is_well(request: RunRequest, name: str) -> bool:
    document = json.loads((request.folder / f"{name}.json").read_text(encoding="utf-8"))
    return "error" not in document and (
        request.quick or all(claim["holds"] for claim in document["claims"])
    )
