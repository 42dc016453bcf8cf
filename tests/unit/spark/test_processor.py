"""What a bucket is built from again must be all there, and readable."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from muntin.spark.processor import BucketProcessor
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


def recalled(shares: dict[int, bytes], kept: int) -> list[Any]:
    processor = BucketProcessor(b"", "run", (0,), ())
    states: Any = States(shares)
    processor.init(states)
    return list(processor._recall(2, 5, kept))


def test_kept_shares_that_are_missing_or_damaged_are_told() -> None:
    whole = {batch: pickle.dumps(("note", batch)) for batch in (2, 3, 5)}
    assert recalled(whole, 3) == [("note", 2), ("note", 3), ("note", 5)], "batch 4 had no input"
    with pytest.raises(ResidentError, match=r"the checkpoint has 3 of 4 batches that windows reach\. Restore it"):
        recalled(whole, 4)
    for damaged in (b"", whole[3][:-2], b"\x80garbage"):
        with pytest.raises(ResidentError, match=r"the rows of batch 3 in the checkpoint cannot be read: .*Restore it"):
            recalled({**whole, 3: damaged}, 3)
