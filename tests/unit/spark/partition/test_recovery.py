from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from muntin.model.catalog import Stream
from muntin.spark.exchange.deployment import DeployedQuery, Deployment, QueryChange
from muntin.spark.exchange.messages import PartitionBatch, PartitionOutput, from_blob
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition import recovery as rebuilding
from muntin.spark.partition.partition import LATE, RESULTS
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.state import stream_log

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
SECOND = 1_000_000

PAIRS = "SELECT a.v AS x, b.v AS y FROM A a, A b WHERE a.k = b.k"

# Each batch lists the seconds of its rows (a row's value is its second); "@20" advances event time
# to second 20.
RUNS = [
    pytest.param(f"{PAIRS} WINDOW 10 SECONDS", ["1", "@20", "15", "22", "23", "24"],
        id="what-was-late-by-a-moment-stays-late"),
    pytest.param(f"{PAIRS} WINDOW 3 ROWS", ["1 2", "5", "3 4", "6", "7"],
        id="late-rows-push-nothing-out-of-a-window"),
    pytest.param("SELECT v FROM A WINDOW 1 SECOND EVERY 10 SECONDS", ["3", "6", "8", "21"],
        id="what-EVERY-has-not-told-yet-is-kept"),
    pytest.param("SELECT v FROM A WINDOW 5 SECONDS EMIT CHANGES", ["1", "6", "7", "13"],
        id="removals-at-the-last-instant-are-to-come"),
    pytest.param("SELECT v FROM A WINDOW 2 ROWS EMIT CHANGES", ["1", "2 3", "3", "4", "@20"],
        id="rows-pushed-out-at-the-last-instant"),
    pytest.param(f"{PAIRS} WINDOW 2 ROWS", ["1 2", "3 9", "4 8", "@20", "21"],
        id="rows-ahead-of-the-watermark-push-nothing-out-yet"),
]  # fmt: skip


def program_of(sql: str, slack: int = 0) -> Deployment:
    return Deployment(
        (Stream("A", SCHEMA, "ts", slack),), {}, (DeployedQuery("q", sql, {}),), (), 1
    )


def rows_at(seconds: list[int]) -> pa.Table:
    columns = {"k": [1] * len(seconds), "v": seconds, "ts": [second * SECOND for second in seconds]}
    return pa.table(
        [pa.array(columns[field.name], pa.int64()).cast(field.type) for field in SCHEMA],
        schema=SCHEMA,
    )


def newest_of(packer: Packer, rows: pa.Table) -> int | None:
    """Return the newest valid time of rows, as packing tasks find it."""
    segments = packer.segments(rows)
    return segments[-1][1] if segments else None


def partition_batches(deployment: Deployment, batches: list[str]) -> Iterator[PartitionBatch]:
    packer = Packer(deployment, "A")
    for number, batch in enumerate(batches):
        seconds = [int(word) for word in batch.split() if word[0] != "@"]
        moment = next((int(word[1:]) * SECOND for word in batch.split() if word[0] == "@"), None)
        rows = rows_at(seconds)
        newest = newest_of(packer, rows)
        yield PartitionBatch(
            number,
            0,
            {} if newest is None else {"A": newest},
            tuple(part for _, part in packer.pack(rows, 0)),
            moment,
        )


def texts(outputs: list[PartitionOutput]) -> list[tuple[str, list[str]]]:
    return [(output.kind, sorted(map(str, output.table.to_pylist()))) for output in outputs]


@pytest.mark.parametrize(("sql", "batches"), RUNS)
@pytest.mark.parametrize("slack", [0, 5], ids=["in-order", "slack"])
def test_a_partition_rebuilt_before_every_batch_reports_the_same(
    sql: str, batches: list[str], slack: int
) -> None:
    deployment = program_of(sql, slack * SECOND)
    kept, unbroken = RecoverablePartition(deployment, 0), RecoverablePartition(deployment, 0)
    store: dict[int, tuple[RetainedBatch, PartitionBatch]] = {}
    reported = 0
    for partition_batch in partition_batches(deployment, batches):
        kept = RecoverablePartition.rebuilt(deployment, 0, store.values())
        applied = kept.apply(partition_batch)
        store[partition_batch.batch] = (applied.note, applied.snapshot or partition_batch)
        for gone in applied.gone:
            del store[gone]
        expected = texts(unbroken.apply(partition_batch).outputs)
        assert texts(applied.outputs) == expected
        reported += len(expected)
    assert reported, "the run has something to tell"


def test_partition_batches_outside_all_windows_are_released() -> None:
    deployment = program_of("SELECT v FROM A WINDOW 2 SECONDS")
    kept = RecoverablePartition(deployment, 0)
    gone = [
        kept.apply(partition_batch).gone
        for partition_batch in partition_batches(deployment, ["1", "2", "3", "4", "9"])
    ]
    assert gone == [[], [], [], [0], [1, 2, 3]]


LAST = (
    "SELECT a.v AS x, b.v AS y FROM A a [PARTITION BY k ROWS 3], A b [PARTITION BY k ROWS 1] "
    "WHERE a.k = b.k"
)


def kept_rows(store: dict[int, tuple[RetainedBatch, PartitionBatch]]) -> int:
    return sum(
        len(from_blob(part.blob))
        for _, partition_batch in store.values()
        for part in partition_batch.all_parts()
    )


def test_what_partitioned_windows_keep_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three partitions hold nine rows; of ten thousand rows, at most a few times nine are kept."""
    monkeypatch.setattr(rebuilding, "FEW", 1_000)
    deployment = program_of(LAST)
    packer = Packer(deployment, "A")
    kept = RecoverablePartition(deployment, 0)
    store: dict[int, tuple[RetainedBatch, PartitionBatch]] = {}
    snapshots = 0
    for number in range(200):
        values = list(range(number * 50, number * 50 + 50))
        rows = rows_at(values).set_column(0, "k", pa.array([value % 3 for value in values]))
        partition_batch = PartitionBatch(
            number, 0, {"A": values[-1] * SECOND}, tuple(part for _, part in packer.pack(rows, 0))
        )
        applied = kept.apply(partition_batch)
        store[number] = (applied.note, applied.snapshot or partition_batch)
        for gone in applied.gone:
            del store[gone]
        snapshots += applied.snapshot is not None
        assert kept_rows(store) <= 2 * kept.rows() + 1_000
    assert snapshots > 1
    assert len(store) < 100
    assert (
        RecoverablePartition.rebuilt(deployment, 0, store.values())
        .apply(PartitionBatch(200, 0, {}, (), 10**12))
        .outputs
        == []
    )


def test_batches_without_rows_do_not_pile_up_while_no_rows_arrive() -> None:
    """Queries that come and go have such batches, and the last rows stay in their window."""
    deployment = program_of("SELECT v FROM A WINDOW 10 SECONDS")
    kept, unbroken = RecoverablePartition(deployment, 0), RecoverablePartition(deployment, 0)
    store: dict[int, tuple[RetainedBatch, PartitionBatch]] = {}
    (first,) = partition_batches(deployment, ["1 2 3"])
    most = 0
    for number in range(1_000):
        partition_batch = first if number == 0 else PartitionBatch(number, 0, {}, ())
        unbroken.apply(partition_batch)
        applied = kept.apply(partition_batch)
        store[number] = (applied.note, applied.snapshot or partition_batch)
        for gone in applied.gone:
            del store[gone]
        most = max(most, len(store))
    assert most < 400
    rebuilt = RecoverablePartition.rebuilt(deployment, 0, store.values())
    assert rebuilt.rows() == unbroken.rows() == 3
    later = PartitionBatch(1_000, 0, {}, (), 10**9)
    assert texts(rebuilt.apply(later).outputs) == texts(unbroken.apply(later).outputs)


@pytest.mark.parametrize("where", ["", " AND a.v % 2 = 0"], ids=["all", "some-rows-only-count"])
@pytest.mark.parametrize("change", ["added", "dropped"])
def test_snapshots_follow_added_and_dropped_queries(
    monkeypatch: pytest.MonkeyPatch, where: str, change: str
) -> None:
    """A later query retracts no result that it never emitted, even after a rebuild."""
    monkeypatch.setattr(rebuilding, "FEW", -(10**6))
    monkeypatch.setattr(stream_log, "_FEW", 0)
    first, second = (DeployedQuery(name, f"{LAST}{where} EMIT CHANGES", {}) for name in ("p", "q"))
    stream = (Stream("A", SCHEMA, "ts", 0),)
    changes = (
        (QueryChange(3, added=second),) if change == "added" else (QueryChange(3, dropped="q"),)
    )
    deployment = Deployment(
        stream, {}, (first,) if change == "added" else (first, second), changes, 1
    )
    unbroken = RecoverablePartition(deployment, 0)
    store: dict[int, tuple[RetainedBatch, PartitionBatch]] = {}
    for drawn in partition_batches(
        deployment, ["1 2", "3", "4 5", "6", "7", "8 9 10", "@20", "21", "22"]
    ):
        partition_batch = replace(drawn, epoch=deployment.epoch(drawn.batch))
        kept = RecoverablePartition.rebuilt(deployment, 0, store.values())
        applied = kept.apply(partition_batch)
        assert applied.snapshot is not None
        store = {partition_batch.batch: (applied.note, applied.snapshot)}
        assert texts(applied.outputs) == texts(unbroken.apply(partition_batch).outputs)


def test_rows_without_a_valid_time_are_reported_as_late_and_disturb_nothing() -> None:
    deployment = program_of("SELECT v FROM A WINDOW 10 SECONDS")
    rows = pa.table(
        [
            pa.array([1, 1, 1]),
            pa.array([7, 8, 9]),
            pa.array([None, 3 * SECOND, 2**62], pa.int64()).cast(SCHEMA.field("ts").type),
        ],
        schema=SCHEMA,
    )
    packer = Packer(deployment, "A")
    assert newest_of(packer, rows) == 3 * SECOND
    kept = RecoverablePartition(deployment, 0)
    applied = kept.apply(
        PartitionBatch(
            0, 0, {"A": 3 * SECOND}, tuple(part for _, part in packer.pack(rows, 0)), 4 * SECOND
        )
    )
    found = {output.kind: output.table.column("v").to_pylist() for output in applied.outputs}
    assert found == {LATE: [7, 9], RESULTS: [8]}
    assert newest_of(packer, rows.slice(0, 1)) is None
