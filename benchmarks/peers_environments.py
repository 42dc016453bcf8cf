"""Where the systems of ``python -m benchmarks peers`` run: this Python, or an environment.

An environment is a folder in the user's cache. It is made with ``venv`` and ``pip``, from the
registry that pip is configured with, and has the packages of the system's ``.txt``. A copy of that
file is written last: an environment without it, or with another one, is made again.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

SCRIPTS = Path(__file__).parent / "peers"
_ERROR = re.compile(r"[\w.]*(Error|Exception)\b|ERROR:")
_LONGEST = 200
_STAMP = "muntin-peer.txt"
_INSTALL_SECONDS = 1_200.0


@dataclass(frozen=True)
class Finished:
    """How a command ended; ``code`` is None if it did not end in time."""

    code: int | None
    out: str
    err: str


Runner: TypeAlias = Callable[[Sequence[str], float], Finished]
"""Runs a command with a time limit in seconds."""


class InstallError(Exception):
    """An environment cannot be made; the text is the reason."""


def run_command(arguments: Sequence[str], seconds: float) -> Finished:
    """Run a command, and end it with all that it has started when its time is over."""
    process = subprocess.Popen(  # noqa: S603 (arguments are our own)
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        end_group(process)
        out, err = process.communicate()
        return Finished(None, out, err)
    return Finished(process.returncode, out, err)


def end_group(process: subprocess.Popen[str]) -> None:
    """End a process that leads its group, and the group with it: Java and other workers."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def default_folder() -> Path:
    """Return the folder of environments when none is named."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muntin" / "peers"


def requirements(script: str) -> Path:
    """Return the file of pinned packages of a system with its own environment."""
    return SCRIPTS / f"{script}.txt"


def is_ready(script: str, folder: Path) -> bool:
    """Return whether the environment is there, with these packages."""
    stamp = folder / script / _STAMP
    return stamp.exists() and stamp.read_text(encoding="utf-8") == requirements(script).read_text(
        encoding="utf-8"
    )


def python_of(script: str, folder: Path) -> Path:
    """Return the Python of an environment."""
    return folder / script / "bin" / "python"


def make_environment(script: str, folder: Path, runner: Runner = run_command) -> Path:
    """Return the Python of a system's environment, creating it if missing.

    Raises :class:`InstallError`.
    """
    python = python_of(script, folder)
    if is_ready(script, folder):
        return python
    place = folder / script
    place.parent.mkdir(parents=True, exist_ok=True)
    _do(
        runner,
        "the environment cannot be made",
        [sys.executable, "-m", "venv", "--clear", str(place)],
    )
    packages = str(requirements(script))
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--requirement",
        packages,
    ]
    _do(runner, "its packages cannot be installed", install)
    (place / _STAMP).write_text(requirements(script).read_text(encoding="utf-8"), encoding="utf-8")
    return python


def _do(runner: Runner, what: str, arguments: Sequence[str]) -> None:
    done = runner(arguments, _INSTALL_SECONDS)
    if done.code is None:
        raise InstallError(f"{what} within {_INSTALL_SECONDS:,.0f} s")
    if done.code:
        raise InstallError(f"{what}: {last_line(done.err or done.out)}")


def last_line(text: str) -> str:
    r"""Return the most telling line of a program's output: the last error, or else the last line.

    >>> last_line("WARNING: old\nERROR: No matching distribution found for x\n[notice] new pip\n")
    'ERROR: No matching distribution found for x'
    >>> last_line("some.AnalysisException: [UNSUPPORTED] no\n+- the plan\n")
    'some.AnalysisException: [UNSUPPORTED] no'
    """
    lines = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not line.startswith(("WARNING", "[notice]", "\tat "))
    ]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or ["it said nothing"])[-1][:_LONGEST]
