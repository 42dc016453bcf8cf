"""The socket and the key of a state server, in this user's folder for temporary files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from muntin.spark.temp_files import private_folder

_LONGEST = 100
"""The longest path of a socket in bytes; the kernel accepts 107."""


def idle_keys(parent: int | str = "*", pid: int | str = "*") -> list[Path]:
    """Return the key files of idle state servers.

    Their names contain the process that the server must not outlive and the server's process id.
    """
    return sorted(private_folder().glob(f"{idle_name(parent, pid)}.key"))


def idle_name(parent: int | str, pid: int | str) -> str:
    """Return the name of the socket and the key of an idle state server, without the suffix."""
    return f"idle-{parent}-{pid}"


@contextlib.contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Give a name of a socket that is short enough for the kernel, however long its path is."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
