"""The progress of event time in a partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from muntin.runtime.external_quota import LimitState
from muntin.spark.exchange.controls import NEVER
from muntin.spark.exchange.source_times import SourceTimes
from muntin.spark.exchange.time_bounds import TimeBounds

CameBefore: TypeAlias = dict[str, dict[str, int]]
"""For each query, how many of the rows of a snapshot came before it, stream by stream."""


@dataclass(frozen=True)
class PartitionClock:
    """The newest time of each stream, and the last moment.

    ``limits`` are the probe budgets of limited joins and their use, see
    :mod:`muntin.runtime.external_quota`. ``ahead`` is for each stream how many consecutive rows
    were too far ahead of it, see :mod:`muntin.spark.exchange.time_bounds`. ``positions`` is for
    each dataflow how many rows of its streams there were: FIRST and LAST in a global stage
    identify rows by their positions. ``late_after`` is the event time that makes a batch late, see
    :class:`muntin.spark.exchange.controls.ControlRow`. ``sources`` are the newest times of sources.
    """

    newest: dict[str, int]
    moment: int
    limits: Mapping[str, LimitState] = field(default_factory=dict)
    positions: dict[str, dict[str, int]] | None = None
    ahead: Mapping[str, int] = field(default_factory=dict)
    late_after: int = NEVER
    sources: SourceTimes = field(default_factory=SourceTimes)

    @property
    def bounds(self) -> TimeBounds:
        """Return the clock as the state before a batch."""
        return TimeBounds(dict(self.newest), dict(self.ahead), {}, self.sources)
