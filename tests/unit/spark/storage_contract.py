"""What every storage of a checkpoint promises; tests of each implementation derive from it."""

from __future__ import annotations

import pickle
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from muntin.runtime.frames import CheckpointError
from muntin.spark.storage import Storage


class StorageContract:
    """Derive a class with a fixture ``storage`` that gives an empty one."""

    def test_a_file_is_read_back_replaced_listed_and_deleted(self, storage: Storage) -> None:
        assert storage.names("state") == []
        storage.put("state/b", b"one")
        storage.put("state/a", memoryview(b"two"))
        storage.put("state/b", b"three", durable=False)
        storage.put("state/empty", b"")
        assert storage.names("state") == ["a", "b", "empty"]
        found = [bytes(storage.get(f"state/{name}")) for name in ("a", "b", "empty")]
        assert found == [b"two", b"three", b""]
        storage.delete(["state/a", "state/never", "nowhere/never"])
        storage.delete([])
        assert storage.names("state") == ["b", "empty"]
        storage.put("state/a", b"again")
        assert bytes(storage.get("state/a")) == b"again"

    def test_names_are_those_of_files_in_a_folder_and_trees_have_all(
        self, storage: Storage
    ) -> None:
        for name in ("top", "one/a", "one/two/b", "one/two/c", "ones"):
            storage.put(name, name.encode())
        assert storage.names() == ["ones", "top"]
        assert storage.names("one") == ["a"]
        assert storage.tree("one") == ["a", "two/b", "two/c"]
        assert storage.tree() == ["one/a", "one/two/b", "one/two/c", "ones", "top"]
        assert storage.tree("nowhere") == []
        storage.delete_tree("one")
        assert storage.tree() == ["ones", "top"]
        storage.delete_tree("")
        assert storage.tree() == []

    def test_a_folder_is_a_storage(self, storage: Storage) -> None:
        folder = storage.below("one").below("two")
        folder.put("file", b"content")
        assert bytes(storage.get("one/two/file")) == b"content"
        assert folder.names() == ["file"]
        assert folder.where("file") == storage.where("one/two/file")
        assert folder.url == f"{storage.url}/one/two"

    def test_a_missing_file_is_none_or_an_error_that_names_it(self, storage: Storage) -> None:
        assert storage.find("state/gone") is None
        assert storage.start_of("state/gone", 8) is None
        where = re.escape(storage.where("state/gone"))
        with pytest.raises(CheckpointError, match=rf"{where} is missing\. Restore"):
            storage.get("state/gone")

    def test_the_start_of_a_file_is_read_alone(self, storage: Storage) -> None:
        storage.put("file", bytes(range(200)))
        assert storage.start_of("file", 3) == b"\0\1\2"
        storage.put("file", b"ab")
        assert storage.start_of("file", 3) == b"ab"

    def test_content_that_was_read_stays_when_its_file_is_replaced_or_deleted(
        self, storage: Storage
    ) -> None:
        storage.put("file", b"before")
        content = storage.get("file")
        storage.put("file", b"after, and longer")
        storage.delete(["file"])
        assert bytes(content) == b"before"

    def test_names_may_have_marks_and_content_any_size(self, storage: Storage) -> None:
        content = bytes(range(256)) * 4096
        storage.put("lease/00000001-1a2b", content)
        storage.put("late/a b%2E/batch-1.parquet", b"rows")
        assert bytes(storage.get("lease/00000001-1a2b")) == content
        assert storage.tree("late") == ["a b%2E/batch-1.parquet"]

    def test_it_travels_to_another_process(self, storage: Storage) -> None:
        storage.put("file", b"content")
        again = pickle.loads(pickle.dumps(storage))
        assert bytes(again.get("file")) == b"content"
        assert again.place == storage.place


class AtomicStorageContract(StorageContract):
    """For storages that replace a file at once: readers never see a half-written one."""

    def test_readers_see_one_of_several_writers_content(self, storage: Storage) -> None:
        contents = [bytes([number]) * 20_000 for number in range(8)]
        storage.put("file", contents[0])
        with ThreadPoolExecutor(4) as pool:
            written = [pool.submit(storage.put, "file", content) for content in contents]
            seen = [bytes(storage.get("file")) for _ in range(10)]
            for one in written:
                one.result()
        assert {*seen, bytes(storage.get("file"))} <= set(contents)
