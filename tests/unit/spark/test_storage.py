"""Files of a checkpoint are complete or not there, and say which of them cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from muntin.runtime.frames import CheckpointError
from muntin.spark.storage import LocalStorage


def test_a_file_is_read_back_replaced_listed_and_deleted(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    assert storage.names("state") == []
    storage.put("state/b", b"one")
    storage.put("state/a", memoryview(b"two"))
    storage.put("state/b", b"three")
    storage.put("state/empty", b"")
    assert storage.names("state") == ["a", "b", "empty"]
    assert [bytes(storage.get(f"state/{name}")) for name in ("a", "b", "empty")] == [
        b"two",
        b"three",
        b"",
    ]
    storage.delete(["state/a", "state/never"])
    assert storage.names("state") == ["b", "empty"]


def test_content_that_was_read_stays_when_its_file_is_replaced_or_deleted(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.put("file", b"before")
    content = storage.get("file")
    storage.put("file", b"after, and longer")
    storage.delete(["file"])
    assert bytes(content) == b"before"


def test_a_half_written_file_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "file.part").touch()
    assert LocalStorage(tmp_path).names("state") == []


def test_errors_name_the_file_and_a_remedy(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    with pytest.raises(CheckpointError, match=r"state/gone is missing\. Restore"):
        storage.get("state/gone")
    (tmp_path / "folder").mkdir()
    with pytest.raises(CheckpointError, match=r"folder cannot be read: Is a directory"):
        storage.get("folder")
    with pytest.raises(CheckpointError, match=r"folder cannot be deleted: Is a directory"):
        storage.delete(["folder"])
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match=r"cannot be read: Not a directory"):
        storage.names("file")
    with pytest.raises(CheckpointError, match=r"cannot be written to: .*Give a folder"):
        storage.put("file/below", b"content")


def test_nothing_stays_open(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(50):
        storage.put(f"state/{number}", b"content")
        assert bytes(storage.get(f"state/{number}")) == b"content"
    assert len(list(Path("/proc/self/fd").iterdir())) == before
