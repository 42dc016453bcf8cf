"""Views on partitions equal one engine in process, for any partitions, batches and restarts."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, note, settings
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.model.catalog import Stream
from muntin.plan.query import Emit
from muntin.spark.driver.global_stages import GlobalStages
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import Part, PartitionBatch, PartitionOutput, to_blob
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition import global_stage, recovery
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.spark.storage import LocalStorage
from muntin.state import stream_log
from muntin.testing.case import Case
from muntin.testing.compare import assert_same_changes, assert_same_rows
from muntin.testing.pipeline_oracle import PipelineOracle
from muntin.testing.pipeline_strategies import PipelineShape, pipeline_cases
from muntin.testing.strategies import Shape
from tests.property.case_runs import bind_pipeline, describe, start
from tests.unit.spark.partition.stage_orders import StageOwner

DUCK = Duck()
SECOND = 1_000_000


class Run:
    """The partitions of a case and the global stages above them; all can be rebuilt."""

    def __init__(self, case: Case, partitions: int, folder: Path) -> None:
        streams = tuple(
            Stream(stream.name, stream.schema, stream.time, stream.slack) for stream in case.streams
        )
        tables = {name: to_blob(rows) for name, rows in case.stored().items()}
        self.program = Deployment(
            streams, tables, (DeployedQuery("q", case.query, {}),), (), partitions
        )
        self.placed = self.program.placed()
        self._folder = folder
        self._partitions = [
            RecoverablePartition(self.program, number) for number in range(partitions)
        ]
        self._stores: list[dict[int, tuple[RetainedBatch, PartitionBatch]]] = [
            {} for _ in range(partitions)
        ]
        self._stages = GlobalStages(LocalStorage(folder), DUCK)
        self._owner = StageOwner(self.program, folder)

    def build_again(self) -> None:
        self._partitions = [
            RecoverablePartition.rebuilt(self.program, number, store.values())
            for number, store in enumerate(self._stores)
        ]
        self._stages = GlobalStages(LocalStorage(self._folder), DUCK)

    def apply(
        self, partition_batches: Sequence[PartitionBatch], *, twice: bool, moved: bool
    ) -> pa.Table:
        """Return the results of a batch.

        With ``twice`` the driver fails before the batch is complete, and it is repeated. The global
        stage runs in the driver, or has ``moved`` to a state server.
        """
        outputs: list[PartitionOutput] = []
        for partition, partition_batch, store in zip(
            self._partitions, partition_batches, self._stores, strict=True
        ):
            applied = partition.apply(partition_batch)
            store[partition_batch.batch] = (applied.note, applied.snapshot or partition_batch)
            for gone in applied.gone:
                del store[gone]
            outputs += applied.outputs
        before, batch = self._owner.state, partition_batches[0].batch
        results = self._deliver(batch, outputs, moved=moved)
        if twice:
            self._owner.state = before
            results = self._deliver(batch, outputs, moved=moved)
        if moved:
            self._stages = GlobalStages(LocalStorage(self._folder), DUCK)
        else:
            self._owner.state = ""
        return results

    def _deliver(self, batch: int, outputs: Sequence[PartitionOutput], *, moved: bool) -> pa.Table:
        if moved and self.placed[0].distribution.last is not None:
            return self._owner.results(batch, outputs)
        places = self._stages.begin(self.program, self.placed, batch)
        return self._stages.result(places["q"], self.placed[0], batch, partial(tables_of, outputs))


def tables_of(outputs: Sequence[PartitionOutput], kind: str, name: str) -> list[pa.Table]:
    return [output.table for output in outputs if (output.kind, output.name) == (kind, name)]


def partition_batches(
    case: Case, deployment: Deployment, until: int
) -> Iterator[list[PartitionBatch]]:
    """Yield the partition batches of every micro-batch, then advance time past the end."""
    packers = {stream.name: Packer(deployment, stream.name) for stream in deployment.streams}
    pieces = [*case.micro_batches(), {}, {}]
    for batch, (piece, moment) in enumerate(
        zip(pieces, [*[None] * (len(pieces) - 2), case.end, until], strict=True)
    ):
        parts: list[list[Part]] = [[] for _ in range(deployment.partitions)]
        newest = {}
        for stream, rows in piece.items():
            newest[stream] = max(rows.column("ts").cast(pa.int64()).to_pylist())
            for partition, part in packers[stream].pack(rows, 0):
                parts[partition].append(part)
        yield [PartitionBatch(batch, 0, newest, tuple(own), moment) for own in parts]


def in_process(case: Case, until: int) -> pa.Table:
    engine, q = start(case)
    for stream, rows in case.batches():
        engine.push(stream, rows)
    engine.advance(case.end)
    engine.advance(until)
    return q.poll()


def on_partitions(
    case: Case,
    partitions: int,
    until: int,
    events: dict[int, str],
    elsewhere: Collection[int] = (),
) -> pa.Table:
    """Return the results; in the batches ``elsewhere`` a state server has the global stage."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(case, partitions, Path(folder))
        note(
            f"{case.query}\n{[part.name for part in run.placed[0].parts]}\n"
            f"{run.placed[0].distribution.routes}\n{run.placed[0].distribution.last}"
        )
        note(describe(case))
        found = []
        for number, batch in enumerate(partition_batches(case, run.program, until)):
            if events.get(number) == "again":
                run.build_again()
            twice, moved = events.get(number) == "twice", number in elsewhere
            found.append(run.apply(batch, twice=twice, moved=moved))
        return pa.concat_tables(found)


EVENTS = st.dictionaries(st.integers(0, 7), st.sampled_from(["again", "twice"]), max_size=4)


@settings(max_examples=settings().max_examples // 2)
@given(
    pipeline_cases(),
    st.sampled_from([1, 2, 5]),
    st.integers(0, 20),
    EVENTS,
    st.tuples(st.sampled_from([-(10**6), 0, 20_000]), st.sets(st.integers(0, 7))),
)
def test_results_are_those_of_one_engine_and_of_the_oracle(
    case: Case,
    partitions: int,
    beyond: int,
    events: dict[int, str],
    stages: tuple[int, set[int]],
) -> None:
    """Compact the log after every batch, after some, or never; move global stages to and fro."""
    few, elsewhere = stages
    query = bind_pipeline(case)
    until = case.end + beyond * SECOND
    with (
        patch.object(global_stage, "FEW", few),
        patch.object(recovery, "FEW", few),
        patch.object(stream_log, "_FEW", 0),
    ):
        found = on_partitions(case, partitions, until, events, elsewhere)
    assert_same_changes(in_process(case, until), found)
    oracle = case.oracle(query)
    assert isinstance(oracle, PipelineOracle)
    assert_same_changes(
        oracle.inserts(until) if query.emit is Emit.INSERTS else oracle.changes(until), found
    )


@settings(max_examples=settings().max_examples // 4)
@given(
    pipeline_cases(Shape(events=14), PipelineShape(depth=1, spreads=True)),
    st.sampled_from([2, 5]),
    EVENTS,
)
def test_rounding_is_that_of_one_engine_to_the_last_bit(
    case: Case, partitions: int, events: dict[int, str]
) -> None:
    bind_pipeline(case)
    until = case.end + 20 * SECOND
    assert_same_rows(in_process(case, until), on_partitions(case, partitions, until, events))
