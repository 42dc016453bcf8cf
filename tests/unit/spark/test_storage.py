"""Files of a checkpoint are complete or not there, and say which of them cannot be used."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from pyarrow import fs

from muntin.errors import InputError
from muntin.runtime.codec import decode_values, encode_values
from muntin.runtime.frames import CheckpointError
from muntin.spark.storage import (
    LocalStorage,
    Location,
    Storage,
    checkpoint_place,
    file_systems,
    object_store,
    storage_at,
)
from muntin.spark.storage.fence import Fence, FencedStorage, VersionedStorage
from muntin.spark.storage.object_store import ObjectStorage
from tests.unit.spark.storage_contract import AtomicStorageContract, StorageContract


class TestLocalStorage(AtomicStorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return LocalStorage(tmp_path)

    def test_a_half_written_file_is_not_listed_and_swept(self, tmp_path: Path) -> None:
        (tmp_path / "state").mkdir()
        (tmp_path / "state" / "file.part").touch()
        storage = LocalStorage(tmp_path)
        assert storage.names("state") == storage.tree() == []
        storage.sweep()
        assert not (tmp_path / "state" / "file.part").exists()

    def test_errors_name_the_file_and_a_remedy(self, tmp_path: Path) -> None:
        storage = LocalStorage(tmp_path)
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

    def test_nothing_stays_open(self, tmp_path: Path) -> None:
        storage = LocalStorage(tmp_path)
        before = len(list(Path("/proc/self/fd").iterdir()))
        for number in range(50):
            storage.put(f"state/{number}", b"content")
            assert bytes(storage.get(f"state/{number}")) == b"content"
        assert len(list(Path("/proc/self/fd").iterdir())) == before


class Arrow:
    """Object storages over a local file system of Arrow, which behaves like the remote ones."""

    scheme = ""

    @pytest.fixture
    def storage(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
        root = tmp_path / "bucket"
        root.mkdir()
        system = _Folders(fs.LocalFileSystem()) if self.scheme == "s3a" else fs.LocalFileSystem()

        def opened(place: Location) -> tuple[object, str]:
            return system, str(root) + place.url.partition("://bucket")[2].rstrip("/")

        monkeypatch.setattr(object_store, "file_system", opened)
        return ObjectStorage(Location(f"{self.scheme}://bucket", (("fs.s3a.secret.key", "hush"),)))


class _Folders:
    """A file system without folders: writing creates those that are missing."""

    def __init__(self, system: fs.FileSystem) -> None:
        self._system = system

    def __getattr__(self, name: str) -> object:
        return getattr(self._system, name)

    def open_output_stream(self, path: str, compression: None) -> object:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        part = f"{path}.{uuid.uuid4().hex}"
        del compression
        return _Renamed(self._system.open_output_stream(part), part, path)


class _Renamed:
    """A file that gets its name when it is complete, as objects do."""

    def __init__(self, stream: object, part: str, path: str) -> None:
        self._stream, self._part, self._path = stream, part, path

    def __enter__(self) -> object:
        return self._stream

    def __exit__(self, *_: object) -> None:
        self._stream.close()  # type: ignore[attr-defined]
        Path(self._part).replace(self._path)


class TestObjectStorage(Arrow, AtomicStorageContract):
    scheme = "s3a"

    def test_credentials_are_in_no_text(self, storage: Storage) -> None:
        assert "hush" not in f"{storage!r} {storage.place!r} {storage.where('file')}"

    def test_a_place_travels_to_a_state_server_without_pickle(self, storage: Storage) -> None:
        content = encode_values(["open", storage.place], "message")
        _, place = decode_values(content, "message", {"open": (Location,)}, "a message")
        assert place == storage.place
        assert storage_at(place) == storage

    def test_a_store_that_fails_is_named_with_a_remedy(
        self, storage: Storage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(_: Location) -> tuple[object, str]:
            class System:
                def __getattr__(self, _: str) -> object:
                    raise OSError("When reading: AWS Error NETWORK_CONNECTION: timed out")

            return System(), "bucket"

        monkeypatch.setattr(object_store, "file_system", failing)
        for call, verb in (
            (lambda: storage.put("state/a", b""), "written"),
            (lambda: storage.get("state/a"), "read"),
            (lambda: storage.names("state/a"), "listed"),
            (lambda: storage.delete(["state/a"]), "deleted"),
        ):
            with pytest.raises(
                CheckpointError,
                match=rf"s3a://bucket/state/a cannot be {verb}: .*timed out.*credentials in Spark",
            ):
                call()


class TestStorageThatShowsHalfWrittenFiles(Arrow, StorageContract):
    scheme = "hdfs"

    @pytest.mark.parametrize("step", range(5))
    def test_a_writer_killed_at_any_step_leaves_the_old_or_the_new_file(
        self, storage: Storage, step: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        storage.put("folder/file", b"old")
        system, path = vars(object_store)["file_system"](storage.below("folder").place)
        left = step

        class Killed(Exception):  # noqa: N818 (no error of the storage)
            pass

        class Dying:
            def __getattr__(self, name: str) -> object:
                nonlocal left
                if name in {"move", "delete_file", "open_output_stream"}:
                    if not left:
                        raise Killed
                    left -= 1
                return getattr(system, name)

        root = path.removesuffix("/folder")
        with monkeypatch.context() as patched:
            patched.setattr(object_store, "file_system", lambda _: (Dying(), root))
            with pytest.raises(Killed):
                storage.put("folder/file", b"new")
        assert storage.names("folder") == ["file"]
        assert bytes(storage.get("folder/file")) == (b"new" if step > 3 else b"old")
        storage.sweep()
        storage.put("folder/file", b"newest")
        assert bytes(storage.get("folder/file")) == b"newest"
        assert storage.tree() == ["folder/file"]


class TestFencedStorage(AtomicStorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return FencedStorage(LocalStorage(tmp_path), Fence())


class Holder(Fence):
    """A fence with a token, which may be lost."""

    def __init__(self, token: str) -> None:
        self._token = token
        self.lost = False

    @property
    def token(self) -> str:
        return self._token

    def check(self) -> None:
        if self.lost:
            raise CheckpointError("taken over")


class TestVersionedStorage(AtomicStorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return VersionedStorage(LocalStorage(tmp_path), Holder("00000002-b"))

    def test_a_replaced_driver_overwrites_and_deletes_nothing(self, tmp_path: Path) -> None:
        first = Holder("00000001-a")
        old = VersionedStorage(LocalStorage(tmp_path), first)
        new = VersionedStorage(LocalStorage(tmp_path), Holder("00000002-b"))
        old.put("folder/file", b"old")
        assert bytes(new.get("folder/file")) == b"old"
        new.put("folder/file", b"new")
        old.put("folder/file", b"late")
        assert bytes(new.get("folder/file")) == bytes(old.get("folder/file")) == b"new"
        first.lost = True
        with pytest.raises(CheckpointError, match="taken over"):
            old.delete(["folder/file"])
        assert new.names("folder") == ["file"]
        new.delete(["folder/file"])
        assert LocalStorage(tmp_path).tree() == []

    def test_only_the_newest_versions_are_kept_and_a_reader_replaces_them(
        self, tmp_path: Path
    ) -> None:
        inner = LocalStorage(tmp_path)
        for name in ("a", "a@00000001-a", "a@00000002-b", "b@00000001-a", "folder/a@00000001-a"):
            inner.put(name, name.encode())
        VersionedStorage(inner, Holder("00000003-c")).retire()
        assert inner.tree() == ["a@00000002-b", "b@00000001-a", "folder/a@00000001-a"]
        nobody = VersionedStorage(inner, Fence())
        nobody.put("a", b"from outside")
        nobody.put("c", b"new")
        assert inner.names() == ["a@00000002-b", "b@00000001-a", "c"]
        assert bytes(nobody.get("a")) == b"from outside"


# -- places ----------------------------------------------------------------------------------


def no_settings(_: object) -> dict[str, str]:
    return {}


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("/data/state", "/data/state"),
        ("file:///data/state", "/data/state"),
        ("file:/data/state", "/data/state"),
        (Path("/data/state/"), "/data/state"),
        ("s3a://bucket/state/", "s3a://bucket/state"),
        ("hdfs://namenode:8020/state", "hdfs://namenode:8020/state"),
        ("abfss://files@me.dfs.core.windows.net/s", "abfss://files@me.dfs.core.windows.net/s"),
        ("gs://bucket/state", "gs://bucket/state"),
    ],
)
def test_a_checkpoint_is_a_path_or_a_url(given: str | Path, url: str) -> None:
    assert checkpoint_place(given, no_settings).url == url


def test_a_file_system_without_support_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InputError, match=r"dbfs:/.* cannot reach\. Give a local .*s3a://"):
        checkpoint_place("dbfs://root/state", no_settings)
    with pytest.raises(InputError, match=r"contains credentials\. Give them in Hadoop") as refused:
        checkpoint_place("s3a://key:hush@bucket/state", no_settings)
    assert "hush" not in str(refused.value)
    with pytest.raises(InputError, match=r"takes for a pattern\. Leave out"):
        checkpoint_place("s3a://bucket/st*te", no_settings)
    monkeypatch.delattr(fs, "GcsFileSystem")
    with pytest.raises(InputError, match=r"needs pyarrow\.fs\.GcsFileSystem.*Install the pyarrow"):
        checkpoint_place("gs://bucket/state", no_settings)


def test_only_settings_of_the_store_are_read() -> None:
    def read(names: object) -> dict[str, str]:
        assert isinstance(names, tuple)
        assert all(name.startswith("fs.s3a.") for name in names)
        return {"fs.s3a.secret.key": "hush"}

    place = checkpoint_place("s3a://bucket/state", read)
    assert place.settings == (("fs.s3a.secret.key", "hush"),)
    assert "hush" not in repr(place)


def test_settings_of_hadoop_configure_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, object] = {}

    def made(**options: object) -> str:
        found.update(options)
        return "system"

    for name in ("S3FileSystem", "AzureFileSystem", "GcsFileSystem"):
        monkeypatch.setattr(fs, name, made)
    hadoop = {
        "fs.s3a.endpoint": "http://127.0.0.1:9000",
        "fs.s3a.access.key": "all",
        "fs.s3a.bucket.b.access.key": "mine",
        "fs.s3a.secret.key": "hush",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.timeout": "2s",
    }
    place = Location("s3a://b/state/x", tuple(hadoop.items()))
    assert file_systems.file_system(place) == ("system", "b/state/x")
    del found["retry_strategy"]
    assert found == {
        "access_key": "mine",
        "secret_key": "hush",
        "region": "us-east-1",
        "scheme": "http",
        "endpoint_override": "127.0.0.1:9000",
        "force_virtual_addressing": False,
        "allow_delayed_open": True,
        "connect_timeout": 10.0,
        "request_timeout": 2.0,
    }
    found.clear()
    azure = {"fs.azure.account.key.me.dfs.core.windows.net": "hush"}
    place = Location("abfss://files@me.dfs.core.windows.net/state", tuple(azure.items()))
    assert file_systems.file_system(place) == ("system", "files/state")
    assert found == {"account_name": "me", "account_key": "hush"}
    found.clear()
    place = Location("gs://b/s", (("fs.gs.storage.root.url", "http://127.0.0.1:1"),))
    assert file_systems.file_system(place) == ("system", "b/s")
    assert (found["endpoint_override"], found["scheme"]) == ("127.0.0.1:1", "http")


def test_hdfs_without_its_client_is_reported_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unavailable(*_: object, **__: object) -> None:
        raise OSError("Unable to load libhdfs: ./libhdfs.so: cannot open shared object file")

    monkeypatch.setattr(fs, "HadoopFileSystem", unavailable)
    with pytest.raises(InputError, match=r"hdfs://name:1 .*libhdfs.*set HADOOP_HOME"):
        storage_at(Location("hdfs://name:1/state")).names("x")
