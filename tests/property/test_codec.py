"""Checkpoint entries survive a round trip: programs, partition batches, global stages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.model.catalog import Stream
from muntin.operators.join.probe_limiter import Budgets
from muntin.runtime.codec import decode, encode
from muntin.runtime.external_quota import LimitState
from muntin.runtime.frames import CheckpointError, pack
from muntin.spark.exchange.deployment import DeployedQuery, Deployment, QueryChange
from muntin.spark.exchange.deployment_file import StoredDeployment, encode_deployment
from muntin.spark.exchange.messages import Part, PartitionBatch
from muntin.spark.partition.global_stage_log import Entry
from muntin.spark.partition.manifests import Manifest, PartitionChange
from muntin.spark.partition.partition_clock import PartitionClock
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.spark.partition.stored_batches import StoredBatch, decode_batch, encode_batch

NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=8)
TYPES = st.sampled_from(
    [
        pa.int8(),
        pa.int64(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.bool_(),
        pa.date32(),
        pa.timestamp("us"),
        pa.timestamp("ns", "UTC"),
        pa.decimal128(38, 9),
        pa.list_(pa.int32()),
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        pa.map_(pa.string(), pa.int64()),
    ]
)


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    names = draw(st.lists(TEXTS, min_size=1, max_size=4, unique=True))
    schema = pa.schema([(name, draw(TYPES)) for name in names])
    if draw(st.booleans()):
        schema = schema.with_metadata({"key": "value"})
    options = draw(st.lists(st.tuples(TEXTS, TEXTS), max_size=2))
    return Stream(
        draw(TEXTS), schema, names[0], draw(NUMBERS), tuple(options), draw(st.integers(0, 9))
    )


REGISTERED = st.builds(DeployedQuery, TEXTS, st.text(), st.dictionaries(TEXTS, TEXTS, max_size=3))
CHANGES = st.builds(
    QueryChange,
    st.integers(0, 2**40),
    st.none() | REGISTERED,
    st.none() | TEXTS,
    TEXTS,
    st.booleans(),
)
PROGRAMS = st.builds(
    Deployment,
    st.lists(streams(), max_size=3).map(tuple),
    st.dictionaries(TEXTS, st.binary(max_size=50), max_size=2),
    st.lists(REGISTERED, max_size=3).map(tuple),
    st.lists(CHANGES, max_size=3).map(tuple),
    st.integers(1, 100),
)
ARRAYS = st.lists(NUMBERS, max_size=5).map(lambda values: np.array(values, np.int64)) | st.lists(
    st.floats(width=64), max_size=5
).map(np.array)
RATES = st.none() | st.floats(allow_nan=False)
LIMITS = st.dictionaries(
    TEXTS,
    st.builds(
        LimitState,
        st.builds(Budgets, st.lists(RATES, max_size=3).map(tuple), RATES),
        st.lists(ARRAYS, min_size=1, max_size=3),
    ),
    max_size=2,
)
COUNTS = st.dictionaries(TEXTS, st.dictionaries(TEXTS, NUMBERS, max_size=2), max_size=2)
CLOCKS = st.builds(
    PartitionClock,
    st.dictionaries(TEXTS, NUMBERS, max_size=2),
    NUMBERS,
    LIMITS,
    st.none() | COUNTS,
    st.dictionaries(TEXTS, NUMBERS, max_size=2),
)
EXTENTS = st.dictionaries(
    st.tuples(st.integers(-2, 5), TEXTS), st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=3
)
NOTES = st.builds(
    RetainedBatch,
    st.integers(0, 99),
    CLOCKS,
    EXTENTS,
    st.integers(0, 2**40),
    st.none() | COUNTS,
    LIMITS,
)
PARTS = st.builds(Part, st.integers(-3, 5), TEXTS, st.integers(0, 9), st.binary(max_size=100))
SHARES = st.builds(
    PartitionBatch,
    st.integers(0, 99),
    st.integers(0, 9),
    st.dictionaries(TEXTS, NUMBERS, max_size=2),
    st.lists(PARTS, max_size=3).map(tuple),
    st.none() | NUMBERS,
    st.lists(st.text(), max_size=2).map(tuple),
    st.lists(st.tuples(TEXTS, PARTS), max_size=2).map(tuple),
    st.dictionaries(
        TEXTS, st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=2).map(tuple), max_size=2
    ),
    st.none() | NUMBERS,
)
ENTRIES = st.builds(
    Entry,
    st.integers(0, 99),
    st.none() | NUMBERS,
    st.booleans(),
    st.none() | NUMBERS,
    st.lists(st.binary(max_size=50), max_size=3).map(tuple),
)


def same(one: object, other: object) -> bool:
    """Return whether two values are equal, arrays and NaN included."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(
            one, other, equal_nan=one.dtype.kind == "f"
        )
    if hasattr(one, "__dataclass_fields__"):
        return type(one) is type(other) and all(
            same(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__
        )
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and list(one) == list(other)
            and all(same(one[key], other[key]) for key in one)
        )
    if isinstance(one, list | tuple):
        return (
            isinstance(other, list | tuple)
            and len(one) == len(other)
            and all(map(same, one, other))
        )
    if isinstance(other, memoryview):
        other = bytes(other)
    if isinstance(one, memoryview):
        one = bytes(one)
    if isinstance(one, pa.Schema):
        return bool(one.equals(other, check_metadata=True))
    return type(one) is type(other) and one == other


@given(TEXTS, PROGRAMS)
def test_deployments_survive_a_round_trip(run: str, deployment: Deployment) -> None:
    stored = decode(encode_deployment(run, deployment), "deployment", StoredDeployment, "it")
    assert (stored.run, stored.deployment) == (run, deployment)
    assert same(stored.deployment, deployment)


@given(SHARES)
def test_partition_batches_survive_a_round_trip(partition_batch: PartitionBatch) -> None:
    assert same(decode_batch(encode_batch(partition_batch)), partition_batch)


PARTITION_CHANGES = st.builds(
    PartitionChange,
    NUMBERS,
    st.builds(StoredBatch, TEXTS, NOTES),
    st.lists(NUMBERS, max_size=3).map(tuple),
)
MANIFESTS = st.builds(
    Manifest,
    NUMBERS,
    NUMBERS,
    st.none() | NUMBERS,
    st.lists(PARTITION_CHANGES, max_size=3).map(tuple),
)


@given(MANIFESTS)
def test_manifests_survive_a_round_trip(manifest: Manifest) -> None:
    assert same(decode(encode(manifest, "manifest"), "manifest", Manifest, "it"), manifest)


@given(ENTRIES)
def test_entries_of_global_stages_survive_a_round_trip(entry: Entry) -> None:
    assert decode(encode(entry, "stage"), "stage", Entry, "it") == entry


@given(SHARES, st.data())
def test_a_changed_byte_or_a_missing_tail_is_always_detected(
    partition_batch: PartitionBatch, data: st.DataObject
) -> None:
    frame = encode_batch(partition_batch)
    at = data.draw(st.integers(0, len(frame) - 1))
    flip = data.draw(st.integers(1, 255))
    for broken in (frame[:at] + bytes([frame[at] ^ flip]) + frame[at + 1 :], frame[:at]):
        with pytest.raises(CheckpointError):
            decode_batch(broken)


JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["run", "deployment", "streams", "note", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(JSON, st.lists(st.binary(max_size=20), max_size=2))
def test_a_forged_value_is_damaged_and_never_a_raw_error(value: Any, blobs: list[bytes]) -> None:
    for kind, cls in (("deployment", StoredDeployment), ("stage", Entry)):
        with pytest.raises(CheckpointError, match="it is damaged"):
            decode(pack(kind, value, blobs), kind, cls, "it")


@dataclass(frozen=True)
class Early:
    a: int
    counts: npt.NDArray[Any]


@dataclass(frozen=True)
class Later:
    a: int
    counts: npt.NDArray[Any]
    added: tuple[int, str] | None = None


def test_fields_with_defaults_may_be_added_and_unknown_ones_are_refused() -> None:
    early = encode(Early(1, np.zeros((2, 3))), "test")
    later = decode(early, "test", Later, "it")
    assert (later.a, later.added, later.counts.shape) == (1, None, (2, 3))
    later.counts[0, 0] = 1  # a separate copy
    with pytest.raises(CheckpointError, match="it is damaged"):
        decode(encode(later, "test"), "test", Early, "it")
    with pytest.raises(CheckpointError, match="it is damaged"):
        decode(
            pack(
                "test",
                json.loads('{"a": true, "counts": {"type": "O", "shape": [1], "blob": 0}}'),
                [bytes(8)],
            ),
            "test",
            Early,
            "it",
        )
