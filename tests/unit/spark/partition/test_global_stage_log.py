"""The log of a global stage.

It is read up to a batch, completely after a full entry, and without damaged entries.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from muntin.runtime.frames import CheckpointError
from muntin.spark.partition.global_stage_log import StageLog
from muntin.spark.storage import LocalStorage


def table(*values: int) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64())})


def values(log: StageLog, batch: int) -> list[tuple[int, bool, int | None, list[list[int]]]]:
    return [
        (
            entry.batch,
            entry.whole,
            entry.next,
            [part.column("v").to_pylist() for part in entry.tables()],
        )
        for entry in log.load(batch)
    ]


def test_entries_are_read_from_the_last_full_one_up_to_a_batch(tmp_path: Path) -> None:
    log = StageLog(LocalStorage(tmp_path / "0"))
    assert values(log, 7) == []
    log.write(2, [table(1), table()], None, whole=True)
    log.write(3, [table(2), table(3)], 50, whole=False)
    log.write(6, [table(), table(4)], 60, whole=False)
    assert values(StageLog(LocalStorage(tmp_path / "0")), 6) == [
        (2, True, None, [[1], []]),
        (3, False, 50, [[2], [3]]),
    ]
    log.write(8, [table(9), table()], 70, whole=True)
    assert values(log, 9) == [(8, True, 70, [[9], []])]
    assert [entry[0] for entry in values(log, 8)] == [2, 3, 6], "batch 8 can be done again"
    log.prune(8)
    assert [path.name for path in (tmp_path / "0").iterdir()] == ["000000000008.changes"]


def test_an_entry_that_is_written_again_replaces_the_first(tmp_path: Path) -> None:
    log = StageLog(LocalStorage(tmp_path))
    log.write(0, [table(1)], None, whole=True)
    log.write(1, [table(2)], None, whole=False)
    again = StageLog(LocalStorage(tmp_path))
    again.load(1)
    again.write(1, [table(3)], None, whole=False)
    assert [entry[3] for entry in values(again, 2)] == [[[1]], [[3]]]


def test_damaged_and_missing_files_are_named(tmp_path: Path) -> None:
    log = StageLog(LocalStorage(tmp_path))
    for batch in range(3):
        log.write(batch, [table(batch)], None, whole=not batch)
    file = tmp_path / "000000000001.changes"
    content = file.read_bytes()
    for damaged in (b"", content[:-1], content[:9] + b"x" + content[10:]):
        file.write_bytes(damaged)
        with pytest.raises(
            CheckpointError,
            match=r"000000000001.changes is damaged. Restore the checkpoint folder from a copy",
        ):
            log.load(3)
    file.unlink()
    with pytest.raises(CheckpointError, match=r"000000000001.changes is missing"):
        log.load(3)
    (tmp_path / "000000000002.changes").unlink()
    assert [entry[0] for entry in values(log, 2)] == [0]


def test_the_length_is_known_without_reading_and_the_size_is_what_is_relied_on(
    tmp_path: Path,
) -> None:
    log = StageLog(LocalStorage(tmp_path))
    lengths = []
    for batch in range(3):
        log.write(batch, [table(*range(batch))], None, whole=batch != 1)
        lengths.append((tmp_path / f"{batch:012d}.changes").stat().st_size)
        assert log.size == (sum(lengths) if batch == 1 else lengths[-1])
    again = StageLog(LocalStorage(tmp_path))
    assert again.length(2) == sum(lengths[:2])
    again.load(2)
    assert again.size == sum(lengths[:2])
    for file in tmp_path.iterdir():
        file.write_bytes(b"")
    assert again.length(3) == 0
