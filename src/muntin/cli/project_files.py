"""The files of the project that ``muntin init`` writes."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from shutil import copytree

from muntin.errors import InputError

RUN_ONCE = "muntin run app.sql --once --until '2026-01-05 10:00:00'"
"""Runs the script over its sample data, past the last window."""


def write_project(folder: Path) -> list[Path]:
    """Write the project into a folder that is new or empty, and return its files."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder} exists and is not an empty folder",
            hint="Name a folder that does not exist; nothing was written",
        )
    try:
        with as_file(files("muntin.cli") / "project") as source:
            copytree(source, folder, dirs_exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"{folder} cannot be written: {reason}", hint="Name a folder that you may write to"
        ) from error
    return sorted(path for path in folder.rglob("*") if path.is_file())
