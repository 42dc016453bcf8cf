"""The windows of a join: the rows that its sources hold, and how far event time has come.

Invariant: a store holds every row inside its window. It may hold older rows too, which kernels
skip by comparing coordinates with limits. State: one ring per source
(:mod:`muntin.state.join_state`). Insert and expiry cost O(1) per row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.kernels.nway_join import expire_all
from muntin.model.clock import BEFORE_ALL
from muntin.operators.join.events import Events
from muntin.operators.join.expiry import ExpiryPolicy
from muntin.operators.join.meter import Meter
from muntin.operators.join.program import make_program, store_specs
from muntin.plan.join import JoinPlan
from muntin.state.join_state import JoinState

Integers = npt.NDArray[np.int64]


class JoinWindows:
    """The stores and the frontier of one join over ``streams``, in order of declaration."""

    def __init__(self, plan: JoinPlan, streams: Sequence[str]) -> None:
        self.plan = plan
        self.state = JoinState(
            store_specs(plan, {name: number for number, name in enumerate(streams)}),
            plan.expiry.cleans_buckets,
        )
        self.program = make_program(plan, plan.orders, self.state.first_index)
        self.now = BEFORE_ALL
        self.seen = np.zeros(len(streams), np.int64)
        """How many rows of each stream have come."""
        self.expiry = ExpiryPolicy(plan)
        self.meter = Meter(self.state, plan.equal)

    def reorder(self, plan: JoinPlan) -> None:
        """Follow the join orders of another plan that stores the same."""
        assert plan.sources == self.plan.sources, "only plans that store the same can be exchanged"
        self.plan = plan
        self.program = make_program(plan, plan.orders, self.state.first_index)

    # -- time --------------------------------------------------------------------------------------

    def move_to(self, seen: Sequence[int], now: int) -> None:
        """Move the frontier to ``now``, after ``seen`` rows of each stream."""
        self.now = max(self.now, now)
        self.seen[:] = seen
        self.meter.start(self.now)

    def limits(self) -> Integers:
        """Return, per store, the coordinate up to which rows are outside the window now."""
        counts = [self.seen[spec.stream] if spec.stream >= 0 else 0 for spec in self.state.specs]
        return self.limits_at(self.now, np.array(counts, np.int64))

    def limits_before(self, events: Events, event: int) -> Integers:
        """Return the limits at the time of an event."""
        counts = events.counts[event] if len(events.counts) > event else events.counts[0]
        return self.limits_at(int(events.times[event]), counts)

    def limits_at(self, time: int, counts: Integers) -> Integers:
        """Return the limits at an instant, given the number of rows of each stream."""
        limits = np.full(len(self.state.specs), layout.EVER, np.int64)
        for source, spec in enumerate(self.state.specs):
            if spec.kind == layout.TIME:
                limits[source] = time - spec.size
            elif spec.kind == layout.COUNT:
                limits[source] = counts[source] - spec.size - 1
            elif spec.kind == layout.PARTITIONED:
                # Rows are marked with the count at which they leave; with retractions, on leaving.
                limits[source] = layout.NEVER - 1 if self.plan.retracting else counts[source]
        return limits

    # -- room --------------------------------------------------------------------------------------

    def reserve(self, events: Events, start: int, stop: int) -> None:
        """Make room for the rows of some events in all stores, after those before them."""
        arrived = np.bincount(
            events.sources[start:stop][events.offsets[start:stop] >= 0],
            minlength=len(self.state.specs),
        )
        limits = self.limits_before(events, start - 1) if start else self.limits()
        for source, rows in enumerate(arrived.tolist()):
            self.state.reserve(source, rows, int(limits[source]))

    def reserve_all(self, events: Events) -> int:
        """Make room for the rows of all events, whatever their age; return their number."""
        arrived = np.bincount(events.sources[events.offsets >= 0], minlength=len(self.state.specs))
        self.state.reserve_all(arrived.tolist(), layout.EVER)
        return int(arrived.sum())

    def grow(self, events: Events, event: int) -> None:
        """Make room in the store that an event goes to."""
        source = int(events.sources[event])
        self.state.grow(source, int(self.limits_before(events, event)[source]))

    def expire(self, limits: Integers, instant: int) -> None:
        """Release the rows below limits, if the policy releases any at an instant."""
        policy = self.expiry.due(instant)
        if policy is None:
            return
        expire_all(self.state.arena, limits, policy, self.state.counters)

    # -- size --------------------------------------------------------------------------------------

    def rows(self) -> list[int]:
        """Return the number of rows inside the window of each source."""
        limits = self.limits().tolist()
        return [self.state.inside(source, limit) for source, limit in enumerate(limits)]
