"""Controls: what a batch brings to all partitions besides rows.

A *moment* promises that no row up to an instant will follow, so time advances without rows. A
:class:`ControlRow` announces a change of the deployment, which is in force after the batch that
brings it, and requests the rows that a new query starts with. Or it sets probe limits, or how much
event time makes a batch late; these hold from its batch on.

Exactly once: the driver decides which batch brings a control and writes that down before the batch
runs (:mod:`muntin.spark.driver.control_queue`); partitions keep controls with the rows of the
batch. So they are ordered with the rows, replayed with them and applied once.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from muntin.operators.join.probe_limiter import Budgets

HELD = "held"
"""The kind of output that carries the rows a control row requested."""

NEVER = -1
"""No batch is late: nothing waits for its results."""


@dataclass(frozen=True)
class ProbeLimits:
    """Probes per second of event time allowed to a query, by partition; None means unlimited.

    ``rates`` limits each half join, ``caps`` all of them together, ``works`` their probes and
    matches.
    """

    query: str
    rates: tuple[tuple[float | None, ...], ...]
    caps: tuple[float | None, ...]
    works: tuple[float | None, ...] = ()

    def of(self, partition: int) -> Budgets | None:
        """Return the limits of a partition; None if they are for fewer partitions."""
        if partition >= len(self.rates):
            return None
        work = self.works[partition] if self.works else None
        return Budgets(self.rates[partition], self.caps[partition], work=work)


@dataclass(frozen=True)
class ControlRow:
    """Announces the change ``name``, requests rows by dataflow and stream, or sets probe limits.

    ``late_after``: a batch that covers more microseconds of event time is late, so freshness holds
    in it even without limits; None leaves it as it is. ``idle`` are sources that send no rows; see
    :mod:`muntin.spark.exchange.source_times`.
    """

    name: str
    exports: tuple[tuple[str, str], ...] = ()
    limits: tuple[ProbeLimits, ...] = ()
    late_after: int | None = None
    idle: tuple[tuple[str, str], ...] = ()

    def to_text(self) -> str:
        """Return the control row as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> ControlRow:
        """Return the control row in a JSON text."""
        value = json.loads(text)
        limits = tuple(
            ProbeLimits(
                one["query"],
                tuple(map(tuple, one["rates"])),
                tuple(one["caps"]),
                tuple(one.get("works", ())),
            )
            for one in value.get("limits", ())
        )
        exports = tuple((dataflow, stream) for dataflow, stream in value["exports"])
        idle = tuple((stream, source) for stream, source in value.get("idle", ()))
        return cls(value["name"], exports, limits, value.get("late_after"), idle)


@dataclass(frozen=True)
class Controls:
    """The controls of one batch: the latest moment, if any, and control rows as texts.

    ``arrival`` is the time of the rows that are stamped when they arrive.
    """

    moment: int | None = None
    rows: tuple[str, ...] = ()
    arrival: int | None = None

    def __bool__(self) -> bool:
        """Return whether a batch without rows has anything to bring."""
        return self.moment is not None or bool(self.rows)

    def names(self) -> set[str]:
        """Return the names of the control rows."""
        return {ControlRow.from_text(text).name for text in self.rows}
