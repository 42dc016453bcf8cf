"""Which dataflow a new query joins, and which rows a dataflow opened for it starts with.

A new query finds the rows that earlier queries hold, as in process. It joins a dataflow of queries
with the same partitioning if that holds as much of every stream as any other. Otherwise it opens a
dataflow: partitions send the rows they hold (see :mod:`muntin.spark.exchange.controls`), those are
set aside in the checkpoint, and each partition takes its part in the batch from which the change is
in force.
"""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass, field, replace

from muntin.spark.exchange.carried_rows import HeldRows, set_aside
from muntin.spark.exchange.controls import ControlRow
from muntin.spark.exchange.deployment import DeployedQuery, Deployment, QueryChange
from muntin.spark.partition.window_reach import WindowReach, reach_into
from muntin.spark.storage import Storage


@dataclass
class PendingChange:
    """A query to be added or dropped; ``done`` is set once its first batch is settled."""

    added: DeployedQuery | None = None
    dropped: str | None = None
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def about(self) -> str:
        """Return the query, for errors."""
        return f"query {self.added.name if self.added else self.dropped}"

    def after(self, deployment: Deployment) -> Deployment:
        """Return the deployment with this change, whose batch is settled later."""
        change = QueryChange(0, self.added, self.dropped, self.name if self.added else "")
        return replace(deployment, changes=(*deployment.changes, change))

    def control(self, deployment: Deployment) -> ControlRow:
        """Return the control row that announces the change under a deployment."""
        return ControlRow(self.name, () if self.added is None else exports(deployment, self.added))


def exports(deployment: Deployment, added: DeployedQuery) -> tuple[tuple[str, str], ...]:
    """Return the dataflows and streams whose rows a new query needs; none if it joins one."""
    joined, others = _dataflows(deployment, added)
    return () if joined is not None else tuple(others)


def settled(
    deployment: Deployment, change: PendingChange, batch: int, held: HeldRows, storage: Storage
) -> Deployment:
    """Return the deployment with a change in force from ``batch`` on.

    The rows that a new dataflow starts with are set aside in ``storage`` first.
    """
    if change.added is None:
        settled_change = QueryChange(batch, dropped=change.dropped)
    else:
        joined, _ = _dataflows(deployment, change.added)
        carried = joined is None and set_aside(storage, change.name, held)
        settled_change = QueryChange(batch, change.added, None, joined or change.name, carried)
    return replace(deployment, changes=(*deployment.changes, settled_change))


def _dataflows(
    deployment: Deployment, added: DeployedQuery
) -> tuple[str | None, dict[tuple[str, str], WindowReach]]:
    """Return the dataflow that a query can join, if any, and the reach of each into its streams."""
    *before, query = PendingChange(added).after(deployment).placed()
    reach: dict[tuple[str, str], WindowReach] = {}
    alike: dict[str, None] = {}
    for place in deployment.active(len(deployment.changes)):
        placed = before[place]
        if placed.partitioning_number == query.partitioning_number:
            alike[placed.dataflow] = None
        for stream in set(placed.streams) & set(query.streams):
            key = (placed.dataflow, stream)
            reach[key] = reach_into(stream, placed, reach.get(key, WindowReach()))
    joined = (
        dataflow
        for dataflow in alike
        if all(reach[dataflow, stream].covers(other) for (_, stream), other in reach.items())
    )
    return next(joined, None), reach
