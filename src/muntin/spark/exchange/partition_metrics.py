"""The metrics that a partition reports after each batch; they travel to the driver as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from muntin.model.clock import BEFORE_ALL

STATS = "stats"
"""The kind of output that carries :class:`PartitionMetrics`."""


@dataclass(frozen=True)
class Rebuilt:
    """A rebuild of a partition from the checkpoint; times are in seconds since 1970."""

    rows: int
    began: float
    ended: float


@dataclass(frozen=True)
class QueryClock:
    """The watermark of a query, and the stream that delays it, if any, with its newest time."""

    watermark: int = BEFORE_ALL
    waiting_for: str | None = None
    newest: int = BEFORE_ALL


@dataclass(frozen=True)
class PartitionMetrics:
    """The metrics of one partition and one batch.

    Parameters
    ----------
    rows_in : mapping of str to int
        New rows that this partition owns, by stream.
    rows_held, bytes_held : int
        Size of the state.
    final : int
        The instant up to which everything is final.
    newest : int
        The newest time of any stream so far.
    partition, worker : int
        The partition, and the process of the Spark worker that called it.
    rebuilt : Rebuilt, optional
        The rebuild that preceded the batch, if there was one.
    queries : mapping
        By query: response times in the batch, sizes of its buffers, and the scheduler of its join.
    unsent : int
        Results that may not have reached subscribers.
    overload : mapping
        By limited query: counts of its half joins.
    suspended : mapping of str to str
        By suspended query: the reason.
    clocks : mapping of str to QueryClock
        By query: how far its time has advanced.
    rows_ahead, times, malformed : mapping of str to int
        By stream: rows too far ahead, the newest time, and messages that cannot be read.
    sources, active, idle : mapping, mapping, tuple
        The newest times of all sources by stream (of the first partition only), the sources that
        sent rows, and those that are idle.
    due : int, optional
        The first instant at which time alone can change a result; None if time changes nothing.
    """

    rows_in: Mapping[str, int]
    rows_held: int
    final: int
    newest: int = BEFORE_ALL
    bytes_held: int = 0
    partition: int = 0
    worker: int = 0
    rebuilt: Rebuilt | None = None
    queries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unsent: int = 0
    overload: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    suspended: Mapping[str, str] = field(default_factory=dict)
    clocks: Mapping[str, QueryClock] = field(default_factory=dict)
    rows_ahead: Mapping[str, int] = field(default_factory=dict)
    times: Mapping[str, int] = field(default_factory=dict)
    malformed: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    active: Mapping[str, Sequence[str]] = field(default_factory=dict)
    idle: tuple[tuple[str, str], ...] = ()
    due: int | None = None

    def to_blob(self) -> bytes:
        """Return the metrics as JSON."""
        clocks = {name: asdict(clock) for name, clock in self.clocks.items()}
        return json.dumps(
            {
                **vars(self),
                "rebuilt": asdict(self.rebuilt) if self.rebuilt else None,
                "clocks": clocks,
            }
        ).encode()
