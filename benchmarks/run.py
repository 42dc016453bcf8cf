"""When and of which source figures are: commit, date, minutes, and whether with little data."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
_SOURCE = ("src", "benchmarks", ":(exclude)benchmarks/about")
"""Code that figures depend on; a change of the prose beside them makes no figure out of date."""


@dataclass(frozen=True)
class Run:
    """One run of one benchmark.

    Parameters
    ----------
    commit
        The last commit that changed the source, with a digest of what has been changed since;
        nothing outside a repository.
    date
        When it ended, in UTC.
    minutes
        How long it took.
    quick
        Whether it had little data only, so that its figures mean little.
    """

    commit: str
    date: str
    minutes: float
    quick: bool = False

    @classmethod
    def ending_now(cls, seconds: float, *, quick: bool) -> Run:
        """Return a run of the present source that has just ended."""
        return cls(revision(), f"{datetime.now(UTC):%Y-%m-%d %H:%M}", round(seconds / 60, 1), quick)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@cache
def revision() -> str:
    """Return the last commit that changed the source, or empty outside a repository.

    Uncommitted changes add ``+`` and a digest.
    """
    commit = _git("log", "-1", "--format=%h", "--", *_SOURCE).strip()
    if not commit:
        return ""
    changes = _git("diff", "HEAD", "--", *_SOURCE) + _git("status", "--porcelain", "--", *_SOURCE)
    return f"{commit}+{hashlib.sha256(changes.encode()).hexdigest()[:7]}" if changes else commit


def _git(*arguments: str) -> str:
    """Return the output of git, or an empty text without git or a repository."""
    try:
        done = subprocess.run(  # noqa: S603
            ["git", "-C", str(_ROOT), *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""
