"""What a bucket is built from again must be all there, and readable."""

from __future__ import annotations

from typing import Any

import pytest

from muntin.spark.bucket import Clock, Kept
from muntin.spark.checkpoint import ProgramFile
from muntin.spark.messages import Share
from muntin.spark.processor import BucketProcessor
from muntin.spark.rebuilding import recalled, remembered
from muntin.spark.releasing import Address
from muntin.spark.resident import ResidentError


class States:
    """Stands for Spark's handle: a map of shares by batch."""

    def __init__(self, shares: dict[int, bytes]) -> None:
        self._shares = shares

    def getValueState(self, *declared: str) -> None:  # noqa: N802 (Spark's)
        del declared

    def getMapState(self, *declared: str) -> States:  # noqa: N802 (Spark's)
        del declared
        return self

    def getValue(self, key: tuple[int]) -> tuple[bytes] | None:  # noqa: N802 (Spark's)
        return (self._shares[key[0]],) if key[0] in self._shares else None


def told(shares: dict[int, bytes], kept: int) -> list[bytes]:
    processor = BucketProcessor(ProgramFile("nowhere"), "run", (0,), Address("nowhere", 0, b""))
    states: Any = States(shares)
    processor.init(states)
    return list(processor._recall(2, 5, kept))


def test_kept_shares_that_are_missing_or_damaged_are_told() -> None:
    notes = {batch: Kept(batch, Clock((0, 0), {}, 0), {}) for batch in (2, 3, 5)}
    whole = {batch: remembered(note, Share(batch, 0, {}, ())) for batch, note in notes.items()}
    assert [recalled(memory)[0] for memory in told(whole, 3)] == list(notes.values()), "batch 4 had no input"
    with pytest.raises(ResidentError, match=r"the checkpoint has 3 of 4 batches that windows reach\. Restore it"):
        told(whole, 4)
    for damaged in (b"", whole[3][:-2], b"\x80garbage", whole[3][:20] + b"x" + whole[3][21:]):
        with pytest.raises(ResidentError, match=r"the rows of batch 3 in the checkpoint are damaged\. Restore it"):
            told({**whole, 3: damaged}, 3)
