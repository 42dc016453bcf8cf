"""A bucket that can be built again: its ledger beside it, and the shares that are kept in some store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from muntin.spark.bucket import Bucket, Ledger, reach_of
from muntin.spark.messages import Output, Share
from muntin.spark.program import Program
from muntin.spark.tally import Stats


@dataclass(frozen=True)
class Applied:
    """What came of a share: the outputs, the batches whose shares need not be kept any more, and what the bucket counted."""

    outputs: list[Output]
    gone: list[int]
    stats: Stats


class KeptBucket:
    """A bucket with its ledger; ``version`` is the last batch that was applied."""

    def __init__(self, program: Program, number: int) -> None:
        self._program = program
        self._reach = reach_of(program)
        self._bucket = Bucket(program, number)
        self.ledger = Ledger()
        self.version = -1

    @classmethod
    def rebuilt(cls, program: Program, number: int, ledger: Ledger, load: Callable[[int], Share]) -> KeptBucket:
        """The bucket as it was after the last share of the ledger: all of them applied again, without output."""
        kept = cls(program, number)
        kept.ledger = ledger
        if ledger.kept:
            first = ledger.kept[0]
            kept._bucket.restore(first.before, first.newest)
            for entry in ledger.kept:
                kept._bucket.apply(load(entry.batch))
            kept.version = ledger.kept[-1].batch
        return kept

    def apply(self, share: Share) -> Applied:
        """Apply the next share."""
        self.ledger.add(share, self._bucket.final, self._bucket.newest(), self._program.streams)
        outputs = self._bucket.apply(share)
        self.version = share.batch
        return Applied(outputs, self.ledger.expire(self._bucket.final[0], self._reach), self._bucket.stats())

    def rows(self) -> int:
        """Rows that it holds."""
        return self._bucket.rows()
