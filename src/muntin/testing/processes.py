"""The processes of a Spark session, as Linux lists them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from muntin.spark.partition.server_files import idle_keys


def _status(pid: int) -> tuple[str, int] | None:
    """Return the state of a process and its parent; nothing when it is gone."""
    try:
        state, parent = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[:2]
        )
    except OSError:
        return None
    return state, int(parent)


def _all() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def alive(pid: int) -> bool:
    """Return whether a process runs."""
    status = _status(pid)
    return status is not None and status[0] not in "ZX"


def command(pid: int) -> str:
    """Return the command line of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def resident_bytes_of(pid: int) -> int:
    """Memory of a process that is in use, in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds_of(pid: int) -> float:
    """Return the seconds of a core that a process has used so far; none when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """Return the seconds of a core that a process and all below it have used so far."""
    return sum(map(cpu_seconds_of, [root, *descendants(root)]))


def descendants(root: int) -> list[int]:
    """Return all processes below one, whatever their group or session."""
    parents = {pid: status[1] for pid in _all() if (status := _status(pid))}
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def state_servers(root: int) -> list[int]:
    """Return the processes of partitions below a process, orphans included.

    An orphan's worker has ended, but it is still tied to a process below.

    Without idle ones, which have no partition.
    """
    below = {str(pid) for pid in descendants(root)}
    idle = {path.stem.rpartition("-")[2] for path in idle_keys()}
    return [
        pid
        for pid in _all()
        if "muntin.spark.partition.state_server" in (said := command(pid))
        and alive(pid)
        and (str(pid) in below or said.split()[-1] in below)
        and str(pid) not in idle
    ]


def workers(root: int) -> list[int]:
    """Python workers: the daemon's children."""
    daemons = [pid for pid in descendants(root) if "pyspark.daemon" in command(pid)]
    return [pid for pid in daemons if (status := _status(pid)) is not None and status[1] in daemons]


def kill(pid: int) -> None:
    """End a process at once."""
    os.kill(pid, signal.SIGKILL)


def wait_gone(pids: list[int], seconds: float) -> list[str]:
    """Wait until the processes are gone; the commands of those that stay."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(map(alive, pids)):
        time.sleep(0.1)
    return [command(pid) for pid in pids if alive(pid)]
