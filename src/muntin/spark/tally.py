"""What a run counts: buckets tell after every micro-batch, the engine adds up. Since the process began, not since the checkpoint."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from muntin.model.clock import BEFORE_ALL

STATS = "stats"
"""The kind of output that carries a bucket's :class:`Stats`."""


@dataclass(frozen=True)
class Stats:
    """What a bucket tells of a micro-batch: the new rows that are at home in it, the rows it holds, the instant that is final."""

    rows_in: Mapping[str, int]
    rows_held: int
    final: int

    def to_blob(self) -> bytes:
        """As JSON."""
        return json.dumps(asdict(self)).encode()


@dataclass
class Tally:
    """Counts of streams and queries over all buckets; results under the keys that the engine has for queries."""

    rows_in: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    results: Counter[str] = field(default_factory=Counter)
    rows_held: int = 0
    final: int = BEFORE_ALL
    batch: int = -1

    def add(self, batch: int, told: Sequence[Mapping[str, Any]], results: Mapping[str, int], late: Mapping[str, int]) -> None:
        """Take what the buckets told of a micro-batch, and what came of it; one that is done again counts once."""
        if batch <= self.batch:
            return
        self.batch = batch
        self.results.update(results)
        self.late.update(late)
        for stats in told:
            self.rows_in.update(stats["rows_in"])
            self.final = max(self.final, stats["final"])
        if told:
            self.rows_held = sum(stats["rows_held"] for stats in told)

    def told(self, streams: Sequence[str], queries: Mapping[str, str]) -> dict[str, Any]:
        """As a part of progress; ``queries`` maps keys to names."""
        return {
            "streams": {name: {"rows": self.rows_in[name], "late": self.late[name]} for name in streams},
            "results": {name: self.results[key] for key, name in queries.items()},
            "rows_held": self.rows_held,
            "watermark": _iso(self.final),
        }


def _iso(micros: int) -> str | None:
    if micros <= BEFORE_ALL:
        return None
    try:
        return datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000, tzinfo=None).isoformat(sep=" ")
    except (OverflowError, ValueError):
        return None
