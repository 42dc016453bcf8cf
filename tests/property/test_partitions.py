"""Partitions equal one engine, for any number, micro-batches, tasks and restarts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, note, settings
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.model.catalog import Stream
from muntin.operators.consolidate import consolidate
from muntin.plan.query import Emit
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import Part, PartitionBatch, PartitionOutput, from_blob, to_blob
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition import recovery as rebuilding
from muntin.spark.partition.partition import RESULTS
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.sql.script import read_query
from muntin.state import stream_log
from muntin.testing.case import Case
from muntin.testing.compare import assert_same_rows, rows_of
from muntin.testing.strategies import Shape, cases
from tests.property.partition_runs import run_partitions

DUCK = Duck()


def program_of(case: Case, partitions: int) -> Deployment:
    streams = tuple(
        Stream(stream.name, stream.schema, stream.time, stream.slack) for stream in case.streams
    )
    tables = {name: to_blob(rows) for name, rows in case.stored().items()}
    return Deployment(streams, tables, (DeployedQuery("q", case.query, {}),), (), partitions)


def partition_batches(
    case: Case, deployment: Deployment, tasks: int
) -> Iterator[list[PartitionBatch]]:
    """Yield the partition batches of every micro-batch; the last one advances time to the end."""
    packers = {stream.name: Packer(deployment, stream.name) for stream in deployment.streams}
    for batch, piece in enumerate([*case.micro_batches(), None]):
        parts: list[list[Part]] = [[] for _ in range(deployment.partitions)]
        newest = {}
        for stream, rows in (piece or {}).items():
            newest[stream] = max(rows.column("ts").cast(pa.int64()).to_pylist())
            for task in range(tasks):
                start, stop = task * len(rows) // tasks, (task + 1) * len(rows) // tasks
                for partition, part in packers[stream].pack(rows.slice(start, stop - start), task):
                    parts[partition].append(part)
        yield [
            PartitionBatch(batch, 0, newest, tuple(own), case.end if piece is None else None)
            for own in parts
        ]


@given(cases(Shape()), st.integers(1, 5), st.integers(1, 3), st.sets(st.integers(0, 6)))
def test_partitions_give_the_oracles_results(
    case: Case, partitions: int, tasks: int, restarts: set[int]
) -> None:
    query = read_query(case.query, "q", case.catalog())
    deployment = program_of(case, partitions)
    outputs = run_partitions(deployment, partition_batches(case, deployment, tasks), restarts)
    collected = [output.table for output in outputs if output.kind == RESULTS]
    found = pa.concat_tables([query.output_schema.empty_table(), *collected])
    oracle = case.oracle(query)
    note(case.script(query))
    if query.emit is Emit.INSERTS:
        assert_same_rows(oracle.inserts(case.end), found)
    else:
        assert_same_rows(oracle.changes(case.end), consolidate(found, DUCK))


@st.composite
def disordered(draw: st.DrawFn) -> tuple[Case, dict[int, int]]:
    """Draw cases with rows in any order, some late, in many batches, and advances of time."""
    case = draw(cases(Shape(sources=3)))
    events = tuple(draw(st.permutations(case.events))) if draw(st.booleans()) else case.events
    cuts = draw(st.sets(st.integers(0, len(events)), max_size=len(events)))
    moments = draw(
        st.dictionaries(
            st.integers(0, 12),
            st.integers(0, 12).map(lambda second: second * 1_000_000),
            max_size=3,
        )
    )
    return replace(case, events=events, cuts=tuple(sorted(cuts))), moments


@settings(max_examples=settings().max_examples // 5)
@given(disordered(), st.integers(1, 3), st.sets(st.integers(0, 24)), st.sampled_from([0, 2, 256]))
def test_a_rebuilt_partition_continues_as_if_it_had_never_ended(
    drawn: tuple[Case, dict[int, int]], partitions: int, restarts: set[int], many: int
) -> None:
    """Take snapshots when more than ``many`` batches are retained."""
    case, moments = drawn
    note(case.script(read_query(case.query, "q", case.catalog())))
    deployment = program_of(case, partitions)
    for partition in range(partitions):
        kept, unbroken = (
            RecoverablePartition(deployment, partition),
            RecoverablePartition(deployment, partition),
        )
        store: dict[int, tuple[RetainedBatch, PartitionBatch]] = {}
        for number, batch in enumerate(partition_batches(case, deployment, 1)):
            partition_batch = replace(
                batch[partition], moment=moments.get(number, batch[partition].moment)
            )
            if number in restarts:
                kept = RecoverablePartition.rebuilt(deployment, partition, store.values())
            with patch.multiple(rebuilding, FEW=-(10**6), MANY=many):
                applied = kept.apply(partition_batch)
            store[number] = (applied.note, applied.snapshot or partition_batch)
            for gone in applied.gone:
                del store[gone]
            assert reported(applied.outputs) == reported(unbroken.apply(partition_batch).outputs)


@settings(max_examples=settings().max_examples // 5)
@given(
    disordered().filter(lambda drawn: "PARTITION BY" in drawn[0].query),
    st.sets(st.integers(0, 24)),
    st.sampled_from([-(10**6), 0, 150]),
)
def test_snapshots_of_partitioned_windows_change_nothing_and_bound_what_is_kept(
    drawn: tuple[Case, dict[int, int]], restarts: set[int], few: int
) -> None:
    """Take snapshots after every partition batch, or some, and trim logs at once.

    Without that, both need many rows.
    """
    case, moments = drawn
    note(case.script(read_query(case.query, "q", case.catalog())))
    deployment = program_of(case, 1)
    kept, unbroken = RecoverablePartition(deployment, 0), RecoverablePartition(deployment, 0)
    store: dict[int, tuple[RetainedBatch, PartitionBatch]] = {}
    for number, (batch,) in enumerate(partition_batches(case, deployment, 1)):
        partition_batch = replace(batch, moment=moments.get(number, batch.moment))
        if number in restarts:
            kept = RecoverablePartition.rebuilt(deployment, 0, store.values())
        with patch.object(rebuilding, "FEW", few), patch.object(stream_log, "_FEW", 0):
            applied = kept.apply(partition_batch)
        store[number] = (applied.note, applied.snapshot or partition_batch)
        for gone in applied.gone:
            del store[gone]
        assert reported(applied.outputs) == reported(unbroken.apply(partition_batch).outputs)
        rows = sum(
            len(from_blob(part.blob)) for _, own in store.values() for part in own.all_parts()
        )
        assert applied.snapshot is not None or rows <= 2 * kept.rows() + max(few, 0)
        assert applied.snapshot is None or rows == kept.rows()


def reported(outputs: list[PartitionOutput]) -> list[tuple[str, str, list[str]]]:
    """Return the contents of outputs with their rows in any order."""
    return [
        (output.kind, output.name, sorted(map(str, rows_of(output.table)))) for output in outputs
    ]
