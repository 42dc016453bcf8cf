"""The queries of the demo."""

from __future__ import annotations

WINDOWS = tuple(range(1, 17))
"""Seconds of the windows of the queries that share a join."""

_HOT, _HUMID = 29, 78
FRESHNESS = 5
"""Seconds after which a reading is too old for a result of :data:`RISKS`."""
RESOURCES = 1_500
"""Probes per second that :data:`RISKS` may make: about what it needs at the usual load."""
_USUAL_RATE = 400

CONDITION = f"T.LocationId = H.LocationId AND T.Value > {_HOT} AND H.Value > {_HUMID}"


def muggy(seconds: int) -> str:
    """Return the query for places that are hot and humid within some seconds."""
    return (
        "SELECT T.LocationId, T.Value AS temperature, H.Value AS humidity "
        f"FROM Temperature T, Humidity H WHERE {CONDITION} WINDOW {seconds} SECONDS"
    )


def name_of(seconds: int) -> str:
    """Return the name of the query over a window of some seconds."""
    return f"muggy_{seconds}s"


def risks(rate: int) -> str:
    """Return the join of three streams that is limited under overload, for a rate of readings."""
    resources = max(round(RESOURCES * rate / _USUAL_RATE), 1)
    return (
        "SELECT T.LocationId, T.ts AS t, H.ts AS h, S.ts AS s "
        f"FROM Temperature T, Humidity H, Smoke S WHERE {CONDITION} "
        f"AND H.LocationId = S.LocationId WINDOW 4 SECONDS FRESHNESS {FRESHNESS} SECONDS "
        f"WITH (overload = 'adapt', resources = '{resources}')"
    )
