"""How many rows a unit of each window has: what a scan costs, as MaxQT counts it.

[Hammad03, section 3.3] takes the time to scan a window as proportional to its length, which holds
for streams of equal rates. Here a time window also counts by the rows of its stream that are stored
per unit of time, a row window by one per row; only the ratios matter.

A function of the rows in the windows and of the frontier, so a join that is rebuilt from its rows
continues with the same schedule. Ratios are rounded to powers of the square root of two: streams
whose rates are within a fifth of each other count as equal, and small changes change nothing.
Costs O(1) per source.
"""

from __future__ import annotations

from math import gcd, log2

from muntin.kernels import layout
from muntin.operators.join.windows import JoinWindows
from muntin.state.join_state import JoinState

_LEAST_ROWS = 64
"""Rows in time windows from which on rates are more than chance."""
_STEPS = 2
"""Steps of rounded rates per factor of two."""
_FINE = 16
"""A unit that makes the steps between powers of two nearly exact."""
_LONGEST = 1 << 62


def scan_rates(windows: JoinWindows) -> tuple[int, ...]:
    """Return rows per unit of the window of each source, as whole numbers in rounded ratios."""
    state = windows.state
    densities = _densities(state, windows.now)
    if not densities:
        return (1,) * len(state.specs)
    least = min(densities.values())
    steps = {source: round(_STEPS * log2(each / least)) for source, each in densities.items()}
    rates = {source: round(_FINE * 2 ** (each / _STEPS)) for source, each in steps.items()}
    unit = gcd(*rates.values())
    # Kernels multiply rates by the lengths of windows.
    while any(rate // unit * state.specs[each].size >= _LONGEST for each, rate in rates.items()):
        unit *= 2
    return tuple(
        max(rates[source] // unit, 1) if source in rates else 1
        for source in range(len(state.specs))
    )


def _densities(state: JoinState, now: int) -> dict[int, float]:
    """Return rows per unit of the windows of streams; none where there are too few to tell."""
    stores = {
        source: (spec, state.rows(source))
        for source, spec in enumerate(state.specs)
        if spec.kind != layout.STORED
    }
    timed = [source for source, (spec, _) in stores.items() if spec.kind == layout.TIME]
    if sum(stores[source][1] for source in timed) < _LEAST_ROWS:
        return {}
    oldest = min(_oldest(state, source) for source in timed if stores[source][1])
    return {
        source: max(rows, 1) / max(min(spec.size, now - oldest), 1) if source in timed else 1.0
        for source, (spec, rows) in stores.items()
    }


def _oldest(state: JoinState, source: int) -> int:
    """Return the time of the first row in the ring of a source."""
    store = state.stores[source]
    row = store[layout.ROWS] + store[layout.TAIL_SLOT] * store[layout.WIDTH]
    return int(state.words[row + layout.COORD])
