"""When a join releases the rows that have left their windows ([Golab03, section 4], [Kostowski06]).

Results never depend on it: kernels skip rows outside their windows, released or not.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels import layout
from muntin.model.clock import BEFORE_ALL
from muntin.model.settings import Expiry
from muntin.plan.join import JoinPlan

_POLICIES = {
    Expiry.OWN: layout.OWN,
    Expiry.EAGER: layout.EAGER,
    Expiry.LAZY: layout.LAZY,
    Expiry.PROBE: layout.PROBE,
    Expiry.PROBE_INSERT: layout.PROBE_INSERT,
    Expiry.PROBE_ALL: layout.PROBE_ALL,
    Expiry.ALL: layout.ALL,
}
_SECOND = 1_000_000


class ExpiryPolicy:
    """The policy of a plan: its number in kernels and, for LAZY, when to expire next."""

    def __init__(self, plan: JoinPlan) -> None:
        self.code = _POLICIES[plan.expiry]
        interval = plan.expiry_interval or plan.reevaluation or _SECOND
        self.timer = np.array([BEFORE_ALL, interval], np.int64)
        """The instant from which rows may go, and the interval after which the next ones may."""

    def due(self, instant: int) -> int | None:
        """Return the policy by which rows go at an instant; None if none go yet."""
        if self.code != layout.LAZY:
            return self.code
        if instant < self.timer[0]:
            return None
        self.timer[0] = instant - instant % self.timer[1] + self.timer[1]
        return layout.OWN
