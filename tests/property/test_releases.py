"""Early releases of a partition keep their places, whether or not it was just rebuilt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, note, settings
from hypothesis import strategies as st

from muntin.model.catalog import Stream
from muntin.operators.join import scan_rates
from muntin.operators.join.schedule import TurnPace
from muntin.runtime import running_join
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import Part, PartitionBatch
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition import partition as partition_module
from muntin.spark.partition.partition import RESULTS
from muntin.spark.partition.recovery import Applied, RecoverablePartition
from muntin.spark.partition.retained_batches import RetainedBatch

SCHEMA = pa.schema(
    [("k", pa.int64()), ("j", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))]
)
SECOND = 1_000_000
STREAMS = ("A", "B", "C")
SOURCES = [
    "A, B WHERE A.k = B.k WINDOW {w} SECONDS",
    "A, B WHERE A.v < B.v AND A.j = B.j WINDOW {w} SECONDS",
    "A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW {w} SECONDS",
    "A, B, C WHERE A.k = B.k AND B.j = C.j WINDOW {w} SECONDS",
    "A [RANGE {w} SECONDS], B [ROWS 3] WHERE A.j = B.j",
    "A [PARTITION BY k ROWS 2], B [RANGE {w} SECONDS] WHERE A.k = B.k",
    "A, A AS B WHERE A.k = B.k WINDOW {w} SECONDS",
]
Batch = list[tuple[str, int, int, int]]
"""Rows: stream, two keys, second."""
Released = dict[str, list[str]]


def _query(source: str, width: int, kind: str, weight: str) -> str:
    return f"{_unweighted(source, width, kind)}{weight}"


def _unweighted(source: str, width: int, kind: str) -> str:
    body = source.format(w=width)
    if kind == "group":
        joined, window, size = body.partition(" WINDOW ")
        return f"SELECT A.k, COUNT(*) AS n, MAX(B.v) AS m FROM {joined} GROUP BY A.k{window}{size}"
    if kind == "distinct":
        return f"SELECT DISTINCT A.k, B.v FROM {body}"
    return f"SELECT A.v AS x, B.v AS y FROM {body}{' EMIT CHANGES' if kind else ''}"


@st.composite
def deployments(draw: st.DrawFn) -> Deployment:
    """Draw queries over few joins, so that they share them."""
    sources = draw(st.lists(st.sampled_from(SOURCES), min_size=1, max_size=2))
    query = st.builds(
        _query,
        st.sampled_from(sources),
        st.integers(1, 6),
        st.sampled_from(["", "", "changes", "group", "distinct"]),
        st.sampled_from(["", "", " WITH (weight = 5)"]),
    )
    settings_of_all = {"scheduler": draw(st.sampled_from(["lwo", "swf", "mqt"]))}
    queries = tuple(
        DeployedQuery(f"q{n}", sql, settings_of_all)
        for n, sql in enumerate(draw(st.lists(query, min_size=1, max_size=5)))
    )
    return Deployment(tuple(Stream(name, SCHEMA, "ts", 0) for name in STREAMS), {}, queries, (), 1)


@contextmanager
def cut_small() -> Iterator[None]:
    """Release results in the smallest possible pieces."""
    with (
        patch.object(partition_module, "TurnPace", lambda: TurnPace(100_000, 8_000_000, 1)),
        patch.object(running_join, "_PACED_SLICE", 1),
        patch.object(scan_rates, "_LEAST_ROWS", 1),
    ):
        yield


batches = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(STREAMS), st.integers(0, 1), st.integers(0, 1), st.integers(0, 3)
        ),
        max_size=12,
    ),
    min_size=2,
    max_size=6,
)


def partition_batches(deployment: Deployment, given_rows: list[Batch]) -> Iterator[PartitionBatch]:
    packers = {name: Packer(deployment, name) for name in STREAMS}
    value = 0
    for number, batch in enumerate(given_rows):
        newest: dict[str, int] = {}
        parts: list[Part] = []
        for name in STREAMS:
            own = sorted(
                (2 * number + second, k, j) for stream, k, j, second in batch if stream == name
            )
            columns = {
                "k": [k for _, k, _ in own],
                "j": [j for _, _, j in own],
                "v": list(range(value, value + len(own))),
            }
            columns["ts"] = [second * SECOND for second, _, _ in own]
            value += len(own)
            table = pa.table(
                [pa.array(columns[field.name], pa.int64()).cast(field.type) for field in SCHEMA],
                schema=SCHEMA,
            )
            if own:
                newest[name] = own[-1][0] * SECOND
                parts += [part for _, part in packers[name].pack(table, 0)]
        yield PartitionBatch(
            number, 0, newest, tuple(parts), 2 * number * SECOND if number % 3 == 2 else None
        )


def applied(
    partition: RecoverablePartition, partition_batch: PartitionBatch
) -> tuple[Applied, Released]:
    released: Released = {}
    done = partition.apply(
        partition_batch,
        lambda query, table: released.setdefault(query, []).extend(map(str, table.to_pylist())),
    )
    return done, released


@settings(max_examples=settings().max_examples // 2)
@given(deployments(), batches)
def test_a_rebuilt_partition_releases_the_same_results_at_the_same_places(
    deployment: Deployment, given_rows: list[Batch]
) -> None:
    note(str(deployment.queries))
    names = {query.name for query in deployment.queries}
    unbroken = RecoverablePartition(deployment, 0)
    store: dict[int, tuple[RetainedBatch, PartitionBatch]] = {}
    for partition_batch in partition_batches(deployment, given_rows):
        done, released = applied(unbroken, partition_batch)
        with cut_small():
            again, released_again = applied(
                RecoverablePartition.rebuilt(deployment, 0, store.values()), partition_batch
            )
        assert released_again == released
        outputs = {
            output.name: list(map(str, output.table.to_pylist()))
            for output in done.outputs
            if output.kind == RESULTS and output.name in names  # not those for a global stage
        }
        assert released == outputs, "what is released is what sinks get"
        store[partition_batch.batch] = (again.note, again.snapshot or partition_batch)
        for gone in again.gone:
            del store[gone]
