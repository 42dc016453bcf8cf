"""Temporary files are in a private folder and are removed at the next start after a kill."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from muntin.errors import RunError
from muntin.spark.driver.checkpoint import Checkpoint
from muntin.spark.exchange.carried_rows import remove_unclaimed
from muntin.spark.exchange.deployment import DeployedQuery, Deployment, QueryChange
from muntin.spark.session import JavaLog
from muntin.spark.storage import LocalStorage
from muntin.spark.temp_files import HeldFolder, private_folder, sweep

HOLDER = """
import os, sys
from muntin.spark.temp_files import HeldFolder
folder = HeldFolder("checkpoint")
(folder.path / "file").write_text("large")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / f"muntin-{os.getuid()}"


def test_the_folder_of_a_user_is_private(folder: Path) -> None:
    before = os.umask(0)
    try:
        assert private_folder() == folder
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert private_folder() == folder


def test_links_files_and_folders_that_are_open_to_others_are_refused(
    folder: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere)
    with pytest.raises(
        RunError, match=rf"{folder} is a link\. Remove it, or set TMPDIR to a folder of your own"
    ):
        private_folder()
    folder.unlink()
    folder.touch()
    with pytest.raises(RunError, match="is not a folder"):
        private_folder()
    folder.unlink()
    for mode in (0o777, 0o750, 0o701):
        folder.mkdir()
        folder.chmod(mode)
        with pytest.raises(RunError, match=rf"is open to other users \(mode {mode:o}\)"):
            private_folder()
        folder.rmdir()


def test_a_folder_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private_folder()
    somebody = os.getuid() + 1
    theirs = folder.with_name(f"muntin-{somebody}")
    folder.rename(theirs)
    monkeypatch.setattr(os, "getuid", lambda: somebody)
    with pytest.raises(RunError, match=rf"{theirs} belongs to another user"):
        private_folder()


def test_folders_of_killed_processes_are_removed_and_others_stay() -> None:
    mine = HeldFolder("demo")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
    ) as holder:
        try:
            assert holder.stdout is not None
            theirs = Path(holder.stdout.readline().decode().strip())
            sweep()
            assert (theirs / "file").exists(), "its process lives"
        finally:
            holder.kill()
    assert theirs.exists(), "nobody has cleaned up"
    sweep()
    assert not theirs.exists()
    assert mine.path.exists()
    mine.close()
    assert not mine.path.exists()


def _environment() -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(private_folder().parent)}


def test_sockets_without_a_listener_are_removed_with_their_keys(folder: Path) -> None:
    private_folder()
    with socket.socket(socket.AF_UNIX) as dead, socket.socket(socket.AF_UNIX) as alive:
        for name, listener in (("dead", dead), ("alive", alive)):
            listener.bind(str(folder / f"{name}.sock"))
            for suffix in ("key", "lock"):
                (folder / f"{name}.{suffix}").touch()
        alive.listen(1)
        (folder / "idle-1-2.key").touch()
        (folder / "starting.key").touch()
        with (folder / "starting.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            sweep()
        left = {path.name for path in folder.iterdir()}
        assert left == {"alive.sock", "alive.key", "alive.lock", "starting.key", "starting.lock"}
        for _ in range(5):
            sweep()
        assert (folder / "alive.sock").exists(), "also when its queue is full"


def test_an_unused_java_log_is_removed_unless_an_error_named_it() -> None:
    logs = [JavaLog() for _ in range(3)]
    descriptors = [log.begin() for log in logs]
    paths = [log.path for log in logs]
    assert logs[2].keep()
    for descriptor in descriptors[1:]:
        os.close(descriptor)
    sweep()
    assert [path is not None and path.exists() for path in paths] == [True, False, True]
    os.close(descriptors[0])
    sweep()
    assert [path is not None and path.exists() for path in paths] == [False, False, True]


def test_links_and_pipes_in_the_place_of_logs_neither_mislead_nor_block(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.touch()
    (tmp_path / "muntin-spark-link.log").symlink_to(precious)
    os.mkfifo(tmp_path / "muntin-spark-pipe.log")
    sweeping = threading.Thread(target=sweep, daemon=True)
    sweeping.start()
    sweeping.join(20)
    assert not sweeping.is_alive()
    assert precious.exists()


def test_part_files_in_a_checkpoint_are_gone_once_it_is_acquired(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "state")
    names = (
        "program.part",
        "last/0/000000000001.part",
        "late/A/.batch-000000001.parquet.part",
        "controls/.1.json.part",
        "last/0/kept.changes",
    )
    for name in names:
        path = tmp_path / "state" / "muntin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    checkpoint.acquire()
    checkpoint.release()
    assert [name for name in names if (tmp_path / "state" / "muntin" / name).exists()] == [
        "last/0/kept.changes"
    ]


def test_rows_put_aside_for_a_change_that_never_came_are_removed(tmp_path: Path) -> None:
    for name in ("known", "unknown"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.rows").touch()
    added = DeployedQuery("q", "SELECT v FROM A WINDOW 1 SECOND", {})
    program = Deployment((), changes=(QueryChange(1, added=added, dataflow="known", carried=True),))
    remove_unclaimed(program, LocalStorage(tmp_path))
    assert LocalStorage(tmp_path).tree() == ["known/0.rows"]
    remove_unclaimed(program, LocalStorage(tmp_path / "nowhere"))
