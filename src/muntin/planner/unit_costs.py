"""What the single steps of a join cost in time, to compare plans that do different things.

The numbers are nanoseconds on the machine of `docs/design/join-orders.md`;
`muntin.runtime.calibration` measures those of the machine at hand. Plans depend on their ratios
only.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UnitCosts:
    """Nanoseconds of each step.

    Finding a bucket, a row of a chain, a row of a scan, storing and letting go, a link, a partial
    match.

    ``check`` is one more code compared with a row, ``sort`` a result that has to be put into its
    ruled order, ``operator`` a row that passes an operator above joins.
    """

    probe: float = 25.0
    chained: float = 8.0
    scanned: float = 5.0
    insert: float = 50.0
    expire: float = 2.0
    link: float = 8.0
    partial_match: float = 40.0
    check: float = 0.5
    sort: float = 30.0
    operator: float = 100.0


DEFAULT_COSTS = UnitCosts()
