"""Checkpoints that are in use, damaged or on a full disk.

The error names the problem, and after a repair every result appears exactly once.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from muntin.errors import RunError
from muntin.runtime.codec import encode
from muntin.spark import SparkEngine
from muntin.spark.driver.checkpoint import CheckpointError
from muntin.spark.driver.lease import Claim, Holder
from muntin.spark.storage import LocalStorage
from tests.spark.support import Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

VALUES = "SELECT v FROM A WINDOW 2 SECONDS"
NAMED = "SELECT v, name FROM A, T WHERE A.k = T.k WINDOW 2 SECONDS"


def engine_over(spark: SparkSession, folders: Folders, name: str = "zero") -> SparkEngine:
    engine = SparkEngine(spark, checkpoint=folders.base / "checkpoint", partitions=1)
    engine.execute(folders.declarations())
    engine.table("T", [{"k": 0, "name": name}, {"k": 1, "name": "one"}, {"k": 2, "name": "two"}])
    engine.query(NAMED, name="q")
    return engine


def test_a_checkpoint_in_use_of_other_tables_or_damaged_is_refused_and_resumes_when_restored(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1]))
    engine = engine_over(spark, folders)
    engine.start()
    with pytest.raises(
        CheckpointError,
        match=r"checkpoint is in use by another engine \(process \d+ on .*Stop that one first",
    ):
        engine_over(spark, folders).process_available()
    engine.settle()
    folders.write("A", rows([2], start=1))
    engine.settle()
    engine.stop()
    with pytest.raises(
        CheckpointError, match=r"was made with other stored tables.*must stay as they are"
    ):
        engine_over(spark, folders, "nil").process_available()

    checkpoint, copy = tmp_path / "checkpoint", tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    folders.write("A", rows([3], start=2))
    (offsets,) = (checkpoint / "spark" / "offsets").glob("1")
    offsets.write_bytes(offsets.read_bytes()[:40])
    with pytest.raises(
        CheckpointError, match=r"offsets/1 is damaged\. Restore the entire folder from a copy"
    ):
        engine_over(spark, folders).process_available()
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)
    for log in ("offsets", "commits", "sources/0"):  # a power failure loses what is not on disk
        (checkpoint / "spark" / log / "1").unlink()
    with pytest.raises(
        CheckpointError, match=r"the state after Spark's batch 1, but the offsets in .* batch 0"
    ):
        engine_over(spark, folders).process_available()
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)
    for stored in (checkpoint / "muntin" / "state").iterdir():
        stored.write_bytes(stored.read_bytes()[:-20])
    with pytest.raises(
        RunError,
        match=r"checkpoint is damaged: .*state/\S+ is damaged.*Restore the entire folder",
    ):
        engine_over(spark, folders).process_available()
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)
    again = engine_over(spark, folders)
    again.process_available()
    assert again.results("q").column("name").to_pylist() == ["zero", "one", "two"]


def test_an_engine_that_was_replaced_ends_and_completes_nothing_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1]))
    engine = engine_over(spark, folders)
    engine.settle()
    last = engine.last_batch
    dead = replace(Holder.this(), started="0")
    storage = LocalStorage(tmp_path / "checkpoint" / "muntin")
    storage.put("lease/00000007-0", encode(Claim("00000007-0", dead, after=last), "lease"))
    folders.write("A", rows([2], start=1))
    with pytest.raises(RunError, match=r"was taken over by another engine \(process \d+ on"):
        engine.settle()
    assert engine.last_batch == last
    again = engine_over(spark, folders)
    again.process_available()
    assert again.last_batch > last
    assert again.results("q").column("name").to_pylist() == ["zero", "one"]
    assert [name[:8] for name in storage.names("lease")] == ["00000008"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 8 MB, which needs the right to mount.

    Nothing unprivileged has the same effect: Spark's Java process writes to the disk as well, so
    the limit must hold for all processes and fail with ENOSPC. RLIMIT_FSIZE holds for one process
    and fails with EFBIG, and a mount namespace would hide the disk from the Java that already runs.
    """
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("this user may not mount a small disk, and no unprivileged limit gives ENOSPC")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path) -> None:
    with (disk / "filler").open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_a_full_disk_is_reported_and_with_space_again_every_result_is_there_once(
    spark: SparkSession, tmp_path: Path, small_disk: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1], start=1))
    filling = {"before": -1, "after": -1}

    def filler(place: str) -> Callable[[DataFrame, int], None]:
        def sink(frame: DataFrame, batch: int) -> None:
            del frame
            if batch == filling[place]:
                fill(small_disk)

        return sink

    engine = SparkEngine(spark, checkpoint=small_disk / "checkpoint", partitions=1)
    engine.execute(folders.declarations())
    engine.query(VALUES, name="before", sink=filler("before"))
    engine.query(VALUES, name="out", sink={"format": "parquet", "path": str(small_disk / "out")})
    engine.query(VALUES, name="after", sink=filler("after"))
    engine.process_available()

    filling["before"] = 1
    folders.write("A", rows([2], start=2))
    with pytest.raises(RunError, match=r"checkpoint cannot be written to: No space left on device"):
        engine.process_available()  # executors have written the results, but no manifest fits
    with pytest.raises(
        CheckpointError,
        match=r"disk/checkpoint cannot be written to: No space left on device.*room on its disk",
    ):
        engine.process_available()
    (small_disk / "filler").unlink()
    filling.update(before=-1, after=2)
    folders.write("A", rows([3], start=3))
    with pytest.raises(RunError, match=r"No space left on device.*Nothing is lost"):
        engine.process_available()
    (small_disk / "filler").unlink()
    filling["after"] = -1
    engine.process_available()
    assert [path.name for path in sorted((small_disk / "out").glob("batch-*"))] == [
        f"batch-00000000{batch}-00000.parquet" for batch in range(3)
    ]
    assert pq.read_table(small_disk / "out").column("v").to_pylist() == [1, 2, 3]
