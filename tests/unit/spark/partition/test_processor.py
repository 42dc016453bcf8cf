"""The data that a partition is rebuilt from must be complete and readable."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from muntin.spark.exchange.messages import PartitionBatch
from muntin.spark.partition.partition_clock import PartitionClock
from muntin.spark.partition.recovery import decode_retained, encode_retained
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.spark.partition.state_client import StateServerError
from muntin.spark.partition.task import retained_frames


class Shares:
    """A stand-in for Spark's map of partition batches by batch."""

    def __init__(self, shares: dict[int, bytes]) -> None:
        self._shares = shares

    def getValue(self, key: tuple[int]) -> tuple[bytes] | None:  # noqa: N802 (Spark's)
        return (self._shares[key[0]],) if key[0] in self._shares else None


def told(shares: dict[int, bytes], kept: int) -> list[bytes]:
    state: Any = Shares(shares)
    return list(retained_frames(state, 2, 5, kept))


def test_missing_or_damaged_partition_batches_are_reported() -> None:
    notes = {batch: RetainedBatch(batch, PartitionClock({}, 0), {}) for batch in (2, 3, 5)}
    whole = {
        batch: encode_retained(note, PartitionBatch(batch, 0, {}, ()))
        for batch, note in notes.items()
    }
    assert [decode_retained(memory)[0] for memory in told(whole, 3)] == list(notes.values()), (
        "batch 4 had no input"
    )
    with pytest.raises(
        StateServerError, match=r"the checkpoint has 3 of 4 batches that windows reach\. Restore it"
    ):
        told(whole, 4)
    for damaged in (b"", whole[3][:-2], b"\x80garbage", whole[3][:20] + b"x" + whole[3][21:]):
        with pytest.raises(
            StateServerError,
            match=r"the rows of batch 3 in the checkpoint are damaged\. Restore it",
        ):
            told({**whole, 3: damaged}, 3)


def test_the_process_that_requests_states_imports_no_engine() -> None:
    """It is started again with every query, which waits for it."""
    code = (
        "import sys, muntin.spark.partition.processor; print([name for name in sys.modules if "
        "name.startswith('muntin.')])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert found == (
        "['muntin.errors', 'muntin.model', 'muntin.model.printable', 'muntin.spark', "
        "'muntin.spark.partition', 'muntin.spark.partition.processor']\n"
    )
