"""A folder of batches belongs to one query of one run; no other query overwrites it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from muntin.errors import RunError, SettingError
from muntin.spark.batch_results import BatchResults
from muntin.spark.sink_ownership import MARKER, LocalFolder, SinkOwner
from muntin.spark.sinks import FileSink

ROWS = pa.table({"_op": ["+"], "v": [1]})
OWNER = SinkOwner("run one" * 4, "q", "first", "/state/one")


def written(
    folder: Path, owner: SinkOwner, batches: int = 2, *, may_replace: bool = False
) -> FileSink:
    sink = FileSink(folder, "json")
    sink.claim(owner, replace=may_replace)
    for batch in range(batches):
        sink.write(BatchResults.of(ROWS), batch)
    return sink


def test_the_owner_resumes_and_writes_a_batch_again(tmp_path: Path) -> None:
    written(tmp_path, OWNER)
    (tmp_path / ".batch-000000002.json.part").write_text("half", encoding="utf-8")
    written(tmp_path, replace(OWNER, checkpoint="/moved"), 3)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [MARKER, *(f"batch-00000000{batch}.json" for batch in range(3))], (
        "a part file of a killed process is gone"
    )


def test_a_replaced_driver_deletes_nothing_of_its_successor(tmp_path: Path) -> None:
    interrupted = written(tmp_path, OWNER, 0)
    part = interrupted.target().write(ROWS, 5, part=1)
    interrupted.target().publish(part)
    paused, successor = written(tmp_path, OWNER, 0), written(tmp_path, OWNER, 0)
    for batch in (5, 6, 7):
        successor.write(BatchResults.of(ROWS), batch)
    mine = [f"batch-00000000{batch}.json" for batch in (5, 6, 7)]
    assert LocalFolder(tmp_path).batches() == mine, "the interrupted attempt is gone"
    paused.write(BatchResults.of(ROWS), 5)
    assert LocalFolder(tmp_path).batches() == mine


def test_another_run_is_refused_with_both_named_and_nothing_is_changed(tmp_path: Path) -> None:
    written(tmp_path, OWNER)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(SettingError) as caught:
        written(tmp_path, replace(OWNER, run="run two" * 4, incarnation="other"))
    assert str(caught.value) == (
        f"{tmp_path} holds results of query q of run run oner (checkpoint /state/one); this "
        "is run run twor. Give the query another "
        "folder, or delete that output: SparkEngine(..., replace=True)"
    )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("other", "fact"),
    [
        (
            replace(OWNER, incarnation="second"),
            "holds results of query q from before it was registered again or changed",
        ),
        (replace(OWNER, incarnation="second", query="renamed"), "holds results of query q. Give"),
    ],
    ids=["changed", "renamed"],
)
def test_another_query_of_the_same_run_is_refused_until_it_may_replace(
    tmp_path: Path, other: SinkOwner, fact: str
) -> None:
    written(tmp_path, OWNER, 3)
    (tmp_path / "batches of mine.json").touch()
    with pytest.raises(SettingError, match=fact):
        written(tmp_path, other)
    written(tmp_path, other, 1, may_replace=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        MARKER,
        "batch-000000000.json",
        "batches of mine.json",
    ]
    assert json.loads((tmp_path / MARKER).read_text(encoding="utf-8"))["incarnation"] == "second"


@pytest.mark.parametrize("marker", [None, "", "{}", "[1]", "\udcff", '{"run": 1}'])
def test_batches_without_an_owner_are_never_overwritten(tmp_path: Path, marker: str | None) -> None:
    (tmp_path / "batch-000000000.parquet").write_bytes(b"somebody's")
    if marker is not None:
        (tmp_path / MARKER).write_text(marker, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(SettingError, match=r"unknown writer|does not name who wrote"):
        written(tmp_path, OWNER)
    assert (tmp_path / "batch-000000000.parquet").read_bytes() == b"somebody's"


def test_a_marker_without_batches_blocks_no_query(tmp_path: Path) -> None:
    written(tmp_path, replace(OWNER, run="never wrote"), 0)
    written(tmp_path, OWNER, 1)
    assert LocalFolder(tmp_path).is_owned_by(OWNER)
    assert (tmp_path / "batch-000000000.json").exists()


def test_a_folder_that_is_taken_over_or_emptied_while_a_run_writes(tmp_path: Path) -> None:
    first = written(tmp_path, OWNER)
    for path in tmp_path.iterdir():
        path.unlink()
    first.write(BatchResults.of(ROWS), 2)
    assert LocalFolder(tmp_path).is_owned_by(OWNER), "emptied: it is marked again"
    written(tmp_path, replace(OWNER, run="two"), 1, may_replace=True)
    with pytest.raises(SettingError, match="was taken over by another run"):
        first.write(BatchResults.of(ROWS), 0)


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        RunError, match=r"file/out cannot be written to: Not a directory\. Give a folder"
    ):
        written(tmp_path / "file" / "out", OWNER)


@pytest.mark.parametrize("batches", [0, 1])
def test_of_two_concurrent_claims_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    late = FileSink(tmp_path, "json")
    read = LocalFolder.read
    seen: list[str] = []

    def overtaken(folder: LocalFolder) -> str | None:
        found = read(folder)
        if not seen:
            seen.append("once")
            written(tmp_path, replace(OWNER, run="two"), batches)
        return found

    monkeypatch.setattr(LocalFolder, "read", overtaken)
    with pytest.raises(SettingError, match=r"taken by another run at this moment|unknown writer"):
        late.claim(OWNER, replace=False)
