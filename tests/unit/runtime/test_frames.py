"""Files of a checkpoint.

They are read back as written, never executed, and refused if a single byte is wrong.
"""

from __future__ import annotations

import pickle
import random
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from muntin.runtime.frames import MAGIC, VERSION, pack, unpack, write_file
from muntin.spark.driver.checkpoint import Checkpoint, CheckpointError
from muntin.spark.driver.query_changes import PendingChange, settled
from muntin.spark.driver.streaming_query import _packer, _packers
from muntin.spark.exchange import deployment_file
from muntin.spark.exchange.carried_rows import carried_parts
from muntin.spark.exchange.deployment import DeployedQuery, Deployment, QueryChange
from muntin.spark.exchange.deployment_file import DeploymentFile
from muntin.spark.exchange.messages import PartitionOutput, from_blob, to_blob
from muntin.spark.partition.global_stage_log import StageLog
from muntin.spark.partition.manifests import ManifestLog
from muntin.spark.partition.spool import Spool
from muntin.spark.partition.stored_batches import decode_batch
from muntin.spark.storage import LocalStorage
from tests.unit.spark.partition.test_recovery import PAIRS, program_of
from tests.unit.spark.partition.test_recovery import partition_batches as shares

PROGRAM = program_of(f"{PAIRS} WINDOW 10 SECONDS")


class Trap:
    """An object whose unpickling creates a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self._path,)


@pytest.fixture
def trap(tmp_path: Path) -> tuple[bytes, Path]:
    sprung = tmp_path / "sprung"
    content = pickle.dumps(Trap(sprung), 5)
    pickle.loads(content)
    assert sprung.exists(), "the trap works"
    sprung.unlink()
    return content, sprung


# -- frames
# ------------------------------------------------------------------------------------------


def test_every_changed_byte_and_every_truncation_is_detected() -> None:
    frame = pack("test", {"a": [1, 2], "b": "text"}, [b"", b"x", b"0123456789" * 5])
    value, blobs = unpack(frame, "test", "it")
    assert (value, list(map(bytes, blobs))) == (
        {"a": [1, 2], "b": "text"},
        [b"", b"x", b"0123456789" * 5],
    )
    for at in range(len(frame)):
        for bit in (1, 128):
            changed = bytearray(frame)
            changed[at] ^= bit
            with pytest.raises(CheckpointError, match="it is damaged"):
                unpack(bytes(changed), "test", "it")
        with pytest.raises(CheckpointError, match="it is damaged"):
            unpack(frame[:at], "test", "it")
    for longer in (frame + b"\0", frame + bytes(8)):
        with pytest.raises(CheckpointError, match="it is damaged"):
            unpack(longer, "test", "it")


def test_a_large_frame_is_checked_at_sampled_places() -> None:
    table = pa.table({"v": pa.array(range(50_000))})
    frame = pack("test", None, [to_blob(table)])
    chosen = random.Random(4)
    for _ in range(200):
        at, flip = chosen.randrange(len(frame)), chosen.randrange(1, 256)
        changed = bytearray(frame)
        changed[at] ^= flip
        for content in (bytes(changed), frame[: chosen.randrange(len(frame))]):
            with pytest.raises(CheckpointError, match="it is damaged"):
                unpack(content, "test", "it")


def test_frames_of_other_kinds_and_versions_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pack("share", 1)
    with pytest.raises(CheckpointError, match=r"it holds a share, not a program\. Restore"):
        unpack(frame, "program", "it")
    with monkeypatch.context() as patched:
        patched.setattr("muntin.runtime.frames.VERSION", VERSION + 1)
        later = pack("share", 1)
    with pytest.raises(
        CheckpointError,
        match=rf"it has format {VERSION + 1}, and this version of Muntin reads format {VERSION}",
    ):
        unpack(later, "share", "it")


def test_a_forged_header_with_a_valid_checksum_counts_as_damaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for header in (
        "[]",
        '{"kind": "test"}',
        '{"kind":"test","value":0,"blobs":["x"]}',
        "nonsense",
        "[" * 100_000,
    ):
        with monkeypatch.context() as patched:
            patched.setattr("muntin.runtime.frames.json.dumps", lambda *_, text=header, **__: text)
            forged = pack("test", None)
        with pytest.raises(CheckpointError, match="it is damaged"):
            unpack(forged, "test", "it")


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file.x"
    write_file(path, b"one")
    write_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert [found.name for found in path.parent.iterdir()] == ["file.x"]


# -- nothing in a checkpoint is unpickled
# ------------------------------------------------------------


def begun(folder: Path) -> Checkpoint:
    checkpoint = Checkpoint(folder)
    checkpoint.logs.storage.put("offsets/0", b"")
    return checkpoint


def test_a_planted_deployment_is_refused_by_name_and_not_executed(
    tmp_path: Path, trap: tuple[bytes, Path]
) -> None:
    content, sprung = trap
    checkpoint = begun(tmp_path / "checkpoint")
    checkpoint.storage.put("program", content)
    wanted = "muntin/program was written by Muntin 0.1.*Start with a new checkpoint"
    with pytest.raises(CheckpointError, match=wanted):
        checkpoint.resume(PROGRAM)
    with pytest.raises(CheckpointError, match=wanted):
        checkpoint.tasks.read()
    checkpoint.storage.put("program", MAGIC + VERSION.to_bytes(4, "little") + content)
    with pytest.raises(CheckpointError, match="muntin/program is damaged"):
        checkpoint.resume(PROGRAM)
    assert not sprung.exists()


def test_a_planted_stage_file_is_not_executed(tmp_path: Path, trap: tuple[bytes, Path]) -> None:
    content, sprung = trap
    log = StageLog(LocalStorage(tmp_path / "0"))
    log.write(0, [pa.table({"v": [1]})], None, whole=True)
    for planted in (content, bytes(4) + content):
        (tmp_path / "0" / "000000000000.changes").write_bytes(planted)
        with pytest.raises(
            CheckpointError, match=r"000000000000.changes was written by Muntin 0.1"
        ):
            log.load(1)
    assert not sprung.exists()


def test_planted_rows_of_a_dataflow_are_not_executed(
    tmp_path: Path, trap: tuple[bytes, Path]
) -> None:
    content, sprung = trap
    rows = from_blob(next(shares(PROGRAM, ["1 2"])).parts[0].blob)
    added = PendingChange(
        DeployedQuery("r", "SELECT a.k FROM A a, A b WHERE a.v = b.v WINDOW 9 SECONDS", {})
    )
    program = settled(PROGRAM, added, 1, {("0", "A"): [rows]}, LocalStorage(tmp_path))
    ((_, part),) = carried_parts(program, range(1), 0, LocalStorage(tmp_path))
    assert len(from_blob(part.blob)) == 2
    (file,) = (tmp_path / added.name).iterdir()
    whole = file.read_bytes()
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"{file} was written by Muntin 0.1"):
        carried_parts(program, range(1), 0, LocalStorage(tmp_path))
    file.write_bytes(whole[:-1])
    with pytest.raises(CheckpointError, match=rf"{file} is damaged"):
        carried_parts(program, range(1), 0, LocalStorage(tmp_path))
    assert not sprung.exists()


def test_a_planted_partition_batch_or_manifest_is_not_executed(
    tmp_path: Path, trap: tuple[bytes, Path]
) -> None:
    content, sprung = trap
    for planted in (content, bytes(4) + content):
        with pytest.raises(CheckpointError, match=r"was written by Muntin 0\.1"):
            decode_batch(planted)
        write_file(tmp_path / "batches" / f"{0:012d}", planted)
        with pytest.raises(CheckpointError, match=r"was written by Muntin 0\.1"):
            ManifestLog(LocalStorage(tmp_path)).load()
    assert not sprung.exists()


def test_planted_outputs_are_not_executed(tmp_path: Path, trap: tuple[bytes, Path]) -> None:
    content, sprung = trap
    spool = Spool(LocalStorage(tmp_path))
    sent = spool.put(PartitionOutput("results", "q", pa.table({"v": range(100_000)})))
    (tmp_path / sent.file).write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"{sent.file} is damaged"):
        spool.take(b"", sent.file)
    assert not sprung.exists()


def test_pickle_is_imported_for_shipped_functions_only() -> None:
    """They come from the driver, in the closure of Spark's jobs, and never from a file."""
    source = Path(deployment_file.__file__).parent.parent
    users = [
        path.name
        for path in source.rglob("*.py")
        if re.search(r"^ *(import|from) \w*pickle", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert users == ["shipped_functions.py"]


# -- the cache of programs
# ---------------------------------------------------------------------------


def test_twenty_changes_of_a_deployment_with_a_large_table_keep_one_version(tmp_path: Path) -> None:
    rows = to_blob(pa.table({"v": range(700_000)}), compressed=False)
    program = Deployment(PROGRAM.streams, {"T": rows}, PROGRAM.queries, (), 1)
    checkpoint, file = Checkpoint(tmp_path), DeploymentFile(LocalStorage(tmp_path / "muntin"))
    deployment_file._loaded.clear()
    _packers.clear()
    for number in range(20):
        changes = tuple(QueryChange(at, dropped=f"gone{at}") for at in range(number))
        checkpoint.write(
            "run", Deployment(program.streams, program.tables, program.queries, changes, 1)
        )
        loaded = file.read()
        assert len(loaded.deployment.changes) == number, "the newest version is read"
        assert file.read() is loaded
        assert _packer(loaded, "A", 0) is _packer(loaded, "A", 0)
        assert len(deployment_file._loaded) == 1
        del loaded
    assert len(_packers) == 1
    assert sum(len(known.content) for known in deployment_file._loaded.values()) < 2 * len(rows)


def test_deployments_of_many_engines_are_released(tmp_path: Path) -> None:
    for number in range(3 * deployment_file._MOST_LOADED):
        checkpoint = Checkpoint(tmp_path / str(number))
        checkpoint.write("run", PROGRAM)
        assert checkpoint.tasks.read().deployment == PROGRAM
        assert len(deployment_file._loaded) <= deployment_file._MOST_LOADED
