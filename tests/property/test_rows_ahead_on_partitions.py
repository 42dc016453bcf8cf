"""On Spark, rows too far ahead change nothing for any partitions, tasks and restarts.

The results are those of the same input without these rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from muntin.model.catalog import Stream
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import Part, PartitionBatch, PartitionOutput
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition.partition import LATE, RESULTS
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.state.advance_limit import PATIENCE, merge_segments
from muntin.testing.compare import rows_of
from tests.property.partition_runs import run_partitions

SECOND = 1_000_000
LIMIT = 3600 * SECOND
SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
STREAMS = (Stream("A", SCHEMA, "ts", 0, (), 0), Stream("B", SCHEMA, "ts", 2 * SECOND, (), 1))
QUERIES = (
    DeployedQuery("pairs", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS", {}),
    DeployedQuery("groups", "SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 10 SECONDS", {}),
    DeployedQuery("rows", "SELECT COUNT(*) AS n FROM B WINDOW 5 ROWS", {}),
)
Row = tuple[int, int]
Batch = dict[str, list[Row]]

SECONDS = st.integers(0, 60) | st.integers(100_000, 100_060) | st.integers(500_000, 500_005)
ROWS = st.lists(
    st.tuples(st.integers(0, 2), SECONDS.map(lambda second: second * SECOND)), max_size=14
)
BATCHES = st.lists(st.fixed_dictionaries({"A": ROWS, "B": ROWS}), min_size=1, max_size=6)


@dataclass
class Naive:
    """The rule for one stream, applied time by time."""

    newest: int | None = None
    ahead: int = 0

    def bound(self, times: Sequence[int]) -> int:
        """Return the newest time accepted from a batch; at least one time is given."""
        base = min(times) if self.newest is None else self.newest
        taken = self._climb(base, times)
        if taken is None:
            self.ahead += len(times)
            if self.ahead < PATIENCE:
                return base
            taken = self._climb(min(times), times)
        self.ahead, self.newest = 0, taken
        return base if taken is None else max(base, taken)

    @staticmethod
    def _climb(base: int, times: Sequence[int]) -> int | None:
        found = False
        for time in sorted(times):
            if time > base + LIMIT:
                break
            base, found = max(base, time), True
        return base if found else None


def without_rows_ahead(batches: Sequence[Batch]) -> tuple[list[Batch], list[tuple[str, Row]]]:
    """Return the batches without the rows too far ahead, and those rows."""
    streams = {"A": Naive(), "B": Naive()}
    kept, ahead = [], []
    for batch in batches:
        left: Batch = {}
        for name, rows in batch.items():
            bound = streams[name].bound([time for _, time in rows]) if rows else 0
            left[name] = [row for row in rows if row[1] <= bound]
            ahead += [(name, row) for row in rows if row[1] > bound]
        kept.append(left)
    return kept, ahead


def partition_batches(
    deployment: Deployment, batches: Sequence[Batch], tasks: int
) -> Iterator[list[PartitionBatch]]:
    packers = {stream.name: Packer(deployment, stream.name) for stream in deployment.streams}
    for number, batch in enumerate(batches):
        parts: list[list[Part]] = [[] for _ in range(deployment.partitions)]
        segments, newest = {}, {}
        for stream, rows in batch.items():
            if not rows:
                continue
            table = pa.table(
                [
                    [row[0] for row in rows],
                    pa.array([row[1] for row in rows]).cast(pa.timestamp("us")),
                ],
                schema=SCHEMA,
            )
            pieces = [
                table.slice(
                    task * len(rows) // tasks,
                    (task + 1) * len(rows) // tasks - task * len(rows) // tasks,
                )
                for task in range(tasks)
            ]
            for task, piece in enumerate(pieces):
                for partition, part in packers[stream].pack(piece, task):
                    parts[partition].append(part)
            found = [segment for piece in pieces for segment in packers[stream].segments(piece)]
            segments[stream] = tuple(merge_segments(found, deployment.max_advance))
            newest[stream] = max(row[1] for row in rows)
        yield [
            PartitionBatch(
                number, 0, newest, tuple(own), segments=segments, max_advance=deployment.max_advance
            )
            for own in parts
        ]


def reported(outputs: Sequence[PartitionOutput], kind: str) -> list[tuple[str, str]]:
    return sorted(
        (output.name, str(row))
        for output in outputs
        if output.kind == kind
        for row in rows_of(output.table)
    )


def shown(rows: Sequence[tuple[str, Row]]) -> list[tuple[str, str]]:
    tables = [
        (name, pa.table([[row[0]], pa.array([row[1]]).cast(pa.timestamp("us"))], schema=SCHEMA))
        for name, row in rows
    ]
    return [(name, str(row)) for name, table in tables for row in rows_of(table)]


@given(BATCHES, st.integers(1, 4), st.integers(1, 3), st.sets(st.integers(0, 6)))
@example(
    [
        {"A": [(0, 0)], "B": [(0, 0)]},
        {"A": [(0, 100_000 * SECOND)] * 9, "B": []},
        {"A": [(0, 100_001 * SECOND)], "B": []},
    ],
    2,
    2,
    {1, 2},
)
def test_rows_ahead_change_nothing_and_are_reported_as_late(
    batches: list[Batch], partitions: int, tasks: int, restarts: set[int]
) -> None:
    deployment = Deployment(STREAMS, {}, QUERIES, (), partitions, LIMIT)
    kept, ahead = without_rows_ahead(batches)
    outputs = run_partitions(deployment, partition_batches(deployment, batches, tasks), restarts)
    unlimited = replace(deployment, max_advance=None)
    wanted = run_partitions(unlimited, partition_batches(unlimited, kept, tasks), ())
    assert reported(outputs, RESULTS) == reported(wanted, RESULTS)
    assert reported(outputs, LATE) == sorted([*reported(wanted, LATE), *shown(ahead)])


def test_a_partition_batch_with_a_row_ahead_is_released_with_its_other_rows() -> None:
    """Otherwise one garbage row would keep its batch in the checkpoint for years."""
    deployment = Deployment(STREAMS, {}, QUERIES[:1], (), 1, LIMIT)
    partition = RecoverablePartition(deployment, 0)
    batches: list[Batch] = [
        {"A": [(0, 0)], "B": [(0, 0)]},
        {"A": [(0, SECOND), (1, 10**9 * SECOND)], "B": [(0, SECOND)]},
    ]
    batches += [
        {"A": [(0, second * SECOND)], "B": [(0, second * SECOND)]} for second in range(2, 40)
    ]
    gone = [
        batch
        for (partition_batch,) in partition_batches(deployment, batches, 1)
        for batch in partition.apply(partition_batch).gone
    ]
    assert 1 in gone
    assert np.all(np.diff(gone) > 0)
