"""Results are written where they are computed, and split by value where they may cancel out."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.errors import RunError
from muntin.expressions.duck import Duck
from muntin.spark.exchange.merge_results import net_changes
from muntin.spark.exchange.messages import PartitionOutput
from muntin.spark.partition.result_writer import WRITTEN, ResultPlan, changes_kind, split
from muntin.spark.partition.spool import Spool
from muntin.spark.result_target import ResultTarget
from muntin.spark.storage import LocalStorage

SCHEMA = pa.schema(
    [("_op", pa.string()), ("_ts", pa.timestamp("us")), ("k", pa.int64()), ("x", pa.float64())]
)
_DUCK = Duck()


def table(rows: list[tuple[str, int, int | None, float | None]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([] for _ in SCHEMA)
    return pa.table(
        [pa.array(list(one), kind.type) for one, kind in zip(columns, SCHEMA, strict=True)], SCHEMA
    )


ROWS = table([("+", 1, 7, 0.5), ("-", 2, 7, 0.5)])


def test_final_results_become_a_file_that_only_the_driver_shows(tmp_path: Path) -> None:
    target = ResultTarget(tmp_path / "out", "parquet")
    plan = ResultPlan({"q": target})
    (sent,) = plan.send(
        [PartitionOutput("results", "q", ROWS)], Spool(LocalStorage(tmp_path / "spool")), 3, 1
    )
    assert (sent.kind, sent.name, sent.rows, sent.blob) == (WRITTEN, "q", 2, b"")
    assert [path.name for path in target.folder.iterdir()] == [sent.file]
    assert sent.file.startswith("."), "hidden from readers of the folder"
    target.publish(sent.file)
    assert [path.name for path in target.folder.iterdir()] == ["batch-000000003-00001.parquet"]
    assert pa.parquet.read_table(target.folder).equals(ROWS)


def test_a_folder_that_cannot_be_written_to_is_named_with_its_query(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    plan = ResultPlan({"q": ResultTarget(tmp_path / "file" / "out", "csv")})
    with pytest.raises(
        RunError, match=r"results of query q cannot be written to .*file/out: Not a directory"
    ):
        plan.send([PartitionOutput("results", "q", ROWS)], Spool(LocalStorage(tmp_path)), 0, 0)


def test_outputs_wait_for_the_disk_together_and_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, real = threading.Barrier(3, timeout=20), os.fsync

    def all_wait(descriptor: int) -> None:
        together.wait()
        real(descriptor)

    plan = ResultPlan({name: ResultTarget(tmp_path / name, "csv") for name in "abc"})
    outputs = [PartitionOutput("results", name, ROWS) for name in "abc"]
    for name in "abc":
        (tmp_path / name).mkdir()
    monkeypatch.setattr(os, "fsync", all_wait)
    sent = plan.send(outputs, Spool(LocalStorage(tmp_path / "spool")), 0, 0)
    assert [one.name for one in sent] == ["a", "b", "c"]
    assert all((tmp_path / one.name / one.file).is_file() for one in sent)


def test_an_unwanted_file_is_removed(tmp_path: Path) -> None:
    target = ResultTarget(tmp_path, "csv")
    target.discard(target.write(ROWS, 0, 0))
    assert not list(tmp_path.iterdir())


def test_two_attempts_never_write_the_same_file(tmp_path: Path) -> None:
    target = ResultTarget(tmp_path, "json")
    assert target.write(ROWS, 0, 0) != target.write(ROWS, 0, 0)


def test_results_without_a_target_and_other_outputs_go_through_the_spool(tmp_path: Path) -> None:
    spool, plan = (
        Spool(LocalStorage(tmp_path / "spool")),
        ResultPlan({"q": ResultTarget(tmp_path, "csv")}),
    )
    for kind, name in (("results", "other"), ("late", "q")):
        (sent,) = plan.send([PartitionOutput(kind, name, ROWS)], spool, 0, 0)
        assert (sent.kind, sent.name) == (kind, name)
        assert spool.take(sent.blob, sent.file).equals(ROWS)


def test_only_many_changes_are_split(tmp_path: Path) -> None:
    spool, plan = Spool(LocalStorage(tmp_path)), ResultPlan(merged=("q",), parts=3)
    (few,) = plan.send([PartitionOutput("results", "q", ROWS)], spool, 0, 0)
    assert few.kind == "results"
    many = table([("+", row, row % 50, 1.0) for row in range(10_000)])
    sent = plan.send([PartitionOutput("results", "q", many)], spool, 0, 0)
    assert [one.kind for one in sent] == [changes_kind(part) for part in range(3)]
    assert sum(one.rows for one in sent) == len(many)


_CHANGES = st.lists(
    st.tuples(
        st.sampled_from("+-"),
        st.integers(0, 2),
        st.none() | st.integers(0, 3),
        st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan")]),
    ),
    max_size=40,
)


@given(st.lists(_CHANGES, min_size=1, max_size=3), st.integers(1, 4), st.booleans())
def test_merged_parts_have_what_is_left_of_all_changes(
    partitions: list[list[tuple[str, int, int | None, float | None]]],
    parts: int,
    inserts_only: bool,  # noqa: FBT001 (drawn)
) -> None:
    tables = [table(sorted(rows, key=lambda row: row[1])).combine_chunks() for rows in partitions]
    whole = net_changes(tables, _DUCK, inserts_only=inserts_only)
    pieces = [split(rows, parts) for rows in tables if len(rows)]
    found = []
    for part in range(parts):
        own = [piece[part] for piece in pieces if part in piece]
        if own:
            found.append(net_changes(own, _DUCK, inserts_only=inserts_only))
    merged = pa.concat_tables([SCHEMA.empty_table(), *found])
    assert sorted(map(str, merged.to_pylist())) == sorted(map(str, whole.to_pylist()))
