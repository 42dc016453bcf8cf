"""A checkpoint has one engine at a time, reports what it cannot do, and detects missing files."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from muntin.errors import InputError
from muntin.spark.driver.checkpoint import Checkpoint, CheckpointError
from muntin.spark.exchange.deployment import Deployment

HOLDER = """
import sys
from pathlib import Path
from muntin.spark.driver.checkpoint import Checkpoint
checkpoint = Checkpoint(Path(sys.argv[1]))
checkpoint.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_checkpoint_has_one_engine_at_a_time_in_a_process(tmp_path: Path) -> None:
    first, second = Checkpoint(tmp_path), Checkpoint(tmp_path)
    first.acquire()
    first.acquire()
    with pytest.raises(
        CheckpointError,
        match=(
            rf"{tmp_path} is in use by another engine \(process {os.getpid()} on .*Stop that "
            r"one first"
        ),
    ):
        second.acquire()
    first.release()
    second.acquire()
    second.release()
    second.release()


def test_a_checkpoint_is_free_when_the_process_that_has_it_is_killed(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "new" / "folder")
    command = [sys.executable, "-c", HOLDER, checkpoint.name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(
                CheckpointError, match=rf"in use by another engine \(process {holder.pid} on"
            ):
                checkpoint.acquire()
        finally:
            holder.kill()
        holder.wait()
        checkpoint.acquire()
    checkpoint.release()


def no_space(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_folder_that_cannot_be_written_to_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    checkpoint = Checkpoint(tmp_path / "file" / "folder")
    with pytest.raises(
        CheckpointError,
        match=(
            r"file/folder cannot be written to: Not a directory.*may write to, with room on its "
            r"disk"
        ),
    ):
        checkpoint.acquire()
    full = Checkpoint(tmp_path)
    full.acquire()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", no_space)
        with pytest.raises(
            CheckpointError, match=rf"{tmp_path} cannot be written to: No space left on device"
        ):
            full.resume(Deployment((), {}, (), (), 1))
    resumed = full.resume(Deployment((), {}, (), (), 1))
    assert resumed.run
    full.release()


def planned(folder: Path, batch: int, position: int, files: dict[int, Path]) -> None:
    """Write Spark's record of a planned batch.

    It has a file source that was read up to a position, and a source of another kind.
    """
    (folder / "spark" / "offsets").mkdir(parents=True, exist_ok=True)
    log = folder / "spark" / "sources" / "0"
    log.mkdir(parents=True, exist_ok=True)
    (folder / "spark" / "offsets" / str(batch)).write_text(
        f'v1\n{{"batch": 1}}\n{{"logOffset":{position}}}\n-\n{{"other":3}}', encoding="utf-8"
    )
    for number, file in files.items():
        entries = [
            {"path": file.as_uri(), "batchId": number},
            {"path": "file:///nowhere", "batchId": number - 1},
        ]
        (log / f"{number}.compact").write_text(
            "v1\n" + "\n".join(json.dumps(entry) for entry in entries), encoding="utf-8"
        )


def test_files_that_a_batch_was_begun_with_must_still_be_there(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.logs.check_inputs()
    file = tmp_path / "a file.parquet"
    planned(tmp_path, 0, 0, {0: tmp_path / "read long ago"})
    planned(tmp_path, 1, 2, {1: file, 2: file})
    commits = tmp_path / "spark" / "commits"
    commits.mkdir()
    (commits / "0").touch()
    with pytest.raises(
        InputError, match=r"batch 1 was begun with .*a file.parquet, which is gone\. Put it back"
    ):
        checkpoint.logs.check_inputs()
    file.touch()
    with pytest.raises(InputError, match="which is empty"):
        checkpoint.logs.check_inputs()
    file.write_bytes(b"content")
    checkpoint.logs.check_inputs()
    file.unlink()
    (commits / "1").touch()
    checkpoint.logs.check_inputs()
    (tmp_path / "spark" / "offsets" / "2").write_bytes(b"v1\n{half")
    checkpoint.logs.check_inputs()


def test_incomplete_files_of_spark_are_named(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.logs.check_intact()
    planned(tmp_path, 0, 0, {0: tmp_path / "a file"})
    planned(tmp_path, 1, 0, {})
    commit = tmp_path / "spark" / "commits" / "0"
    commit.parent.mkdir()
    commit.write_text('v1\n{"nextBatchWatermarkMs":0}', encoding="utf-8")
    checkpoint.logs.check_intact()
    for path in (
        commit,
        tmp_path / "spark" / "offsets" / "1",
        tmp_path / "spark" / "offsets" / "0",
    ):
        whole = path.read_bytes()
        for damaged in (b"", whole[:-3], b"\xff" + whole[1:]):
            path.write_bytes(damaged)
            with pytest.raises(
                CheckpointError, match=rf"{path} is damaged\. Restore the entire folder"
            ):
                checkpoint.logs.check_intact()
        path.write_bytes(whole)
    (tmp_path / "spark" / "offsets" / "0").unlink()
    with pytest.raises(CheckpointError, match="offsets/0 is missing"):
        checkpoint.logs.check_intact()
    planned(tmp_path, 0, 0, {})
    (tmp_path / "spark" / "sources" / "0" / "0.compact").unlink()
    with pytest.raises(CheckpointError, match="sources/0/0 is missing"):
        checkpoint.logs.check_intact()


DEPLOYMENT = Deployment((), {}, (), (), 1)


def test_spark_must_not_be_behind_the_state(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.acquire()
    run = checkpoint.resume(DEPLOYMENT).run
    checkpoint.write(run, DEPLOYMENT)
    for batch in range(2):
        planned(tmp_path, batch, batch, {})
        checkpoint.manifests.commit([], batch)
    assert checkpoint.resume(DEPLOYMENT).run == run
    (tmp_path / "spark" / "offsets" / "1").unlink()
    with pytest.raises(
        CheckpointError,
        match=r"the state after Spark's batch 1, but the offsets in .*spark end with batch 0: rows "
        r"would be skipped\. Restore the entire folder from one copy",
    ):
        checkpoint.resume(DEPLOYMENT)
    checkpoint.release()


def test_what_spark_has_planned_is_synchronized_with_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(tmp_path)
    planned(tmp_path, 0, 0, {0: tmp_path / "a file"})
    planned(tmp_path, 1, 1, {1: tmp_path / "another"})
    synced = []
    real = os.fsync

    def noted(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append(path.relative_to(tmp_path).as_posix())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    checkpoint.logs.sync(1)
    assert synced[:2] == ["spark/offsets/1", "spark/sources/0/1.compact"]
    assert sorted(synced[2:]) == ["spark", "spark/offsets", "spark/sources", "spark/sources/0"]
