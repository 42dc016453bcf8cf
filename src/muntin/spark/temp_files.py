"""Temporary files that only this user can reach; a start removes those of killed processes.

Everything is in one folder per user, mode 700. A folder in it belongs to the process that holds a
lock on it; locks end with their process, however it ends, so an unlocked folder is a leftover. The
socket of a state server is a leftover once no process listens on it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import socket
import stat
import tempfile
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

from muntin import kernels
from muntin.errors import RunError

_HELD = ("checkpoint", "demo", "java", "spark")
"""The kinds of folders of processes; their names start with the kind."""
_LOG = "muntin-spark-*.log"
_COMPILING = 3600.0
"""Seconds after which a file of a compiler counts as abandoned."""


def private_folder() -> Path:
    """Return this user's folder for temporary files; create it if it is missing.

    Raises
    ------
    RunError
        When another user could have put files there: it is a link, belongs to another user, or is
        open to others.
    """
    path = Path(tempfile.gettempdir()) / f"muntin-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        fault = "is a link" if stat.S_ISLNK(found.st_mode) else "is not a folder"
    elif found.st_uid != os.getuid():
        fault = "belongs to another user"
    elif stat.S_IMODE(found.st_mode) & 0o077:
        fault = f"is open to other users (mode {stat.S_IMODE(found.st_mode):o})"
    else:
        return path
    raise RunError(
        f"the folder for temporary files {path} {fault}",
        hint="Remove it, or set TMPDIR to a folder of your own",
    )


class HeldFolder:
    """A new folder that exists until it is closed, collected as garbage, or swept."""

    def __init__(self, kind: str) -> None:
        assert kind in _HELD, "sweep must know it"
        self.path, descriptor = _held(kind)
        self._finish = weakref.finalize(self, _finish, self.path, descriptor)

    def close(self) -> None:
        """Remove it."""
        self._finish()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()


def _held(kind: str) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=private_folder()))
        # If another process sweeps it before it is locked, it is gone, and another one is made.
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if path.exists():
            return path, descriptor
        os.close(descriptor)


def _finish(path: Path, descriptor: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(descriptor)


# -- leftovers of killed processes -----------------------------------------------------------


def sweep() -> None:
    """Remove the leftovers of killed processes of this user."""
    folder = private_folder()
    for kind in _HELD:
        for path in folder.glob(f"{kind}-*"):
            with _unheld(path) as free:
                if free:
                    shutil.rmtree(path, ignore_errors=True)
    for stem in {
        path.with_suffix("")
        for path in folder.iterdir()
        if path.suffix in {".sock", ".key", ".lock"}
    }:
        _sweep_socket(stem)
    for path in Path(tempfile.gettempdir()).glob(_LOG):
        _sweep_log(path)
    for path in (Path(kernels.__path__[0]) / "__pycache__").glob("*.nb[ic].tmp.*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _COMPILING:
                path.unlink()


@contextlib.contextmanager
def _unheld(path: Path) -> Iterator[bool]:
    """Lock a file or folder of ours inside the block; yield whether no other process holds it."""
    try:
        # Non-blocking, because in a folder open to all it may be a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        free = os.fstat(descriptor).st_uid == os.getuid()
    except OSError:
        free = False
    try:
        yield free
    finally:
        os.close(descriptor)


def _sweep_socket(stem: Path) -> None:
    """Remove socket, key and lock of a dead state server; one that is starting holds its lock."""
    lock = stem.with_suffix(".lock")
    with _unheld(lock) as free:
        if (free or not lock.exists()) and not _listens(stem.with_suffix(".sock")):
            for suffix in (".sock", ".key", ".lock"):
                stem.with_suffix(suffix).unlink(missing_ok=True)


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except OSError as error:
            # Any other error comes from a server that is alive but busy.
            return error.errno not in {errno.ECONNREFUSED, errno.ENOENT}
    return True


def _sweep_log(path: Path) -> None:
    """Remove the log of a dead Java, unless an error has named it and made it read-only."""
    with contextlib.suppress(OSError), _unheld(path) as free:
        if free and path.lstat().st_mode & stat.S_IWUSR:
            path.unlink()
