"""Settings: typed, grouped by topic, checked when they are set.

Engine-wide settings are given to ``Engine(...)`` or by ``SET``; the ``WITH (...)`` of a query
overrides them for that query. A setting is declared once, in :mod:`muntin.model.settings.topics`
or :mod:`muntin.model.settings.overload`.
"""

from muntin.model.settings.aliases import (
    BucketCounts,
    GivenOrder,
    GivenTree,
    TreeChoice,
    parse_buckets,
    parse_orders,
)
from muntin.model.settings.overload import (
    AllocationPolicy,
    Freshness,
    OverloadMode,
    ProbeChoice,
    ProbeCost,
)
from muntin.model.settings.settings import DECLARATIONS, Settings
from muntin.model.settings.topics import (
    Algorithm,
    Expiry,
    JoinMethod,
    Scheduler,
    Strategy,
)

__all__ = [
    "DECLARATIONS",
    "Algorithm",
    "AllocationPolicy",
    "BucketCounts",
    "Expiry",
    "Freshness",
    "GivenOrder",
    "GivenTree",
    "JoinMethod",
    "OverloadMode",
    "ProbeChoice",
    "ProbeCost",
    "Scheduler",
    "Settings",
    "Strategy",
    "TreeChoice",
    "parse_buckets",
    "parse_orders",
]
