"""How a join is limited when streams outrun the machine [Mukherji11].

What the plan says, before anything is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from muntin.model.settings import ProbeChoice


@dataclass(frozen=True)
class Limiting:
    """The fixed part of a limited join.

    ``period`` is the length of a cycle in microseconds of event time. ``freshness`` has for each
    source how old a row may be in a result, in microseconds or rows as its window is, 0 for tables.
    ``state_rows`` partial matches are kept in each node whatever the windows say; None: as long as
    all their rows are inside. ``enforce``: stale results are not made, else they are and are
    counted.
    """

    period: int
    freshness: tuple[int, ...]
    choice: ProbeChoice = ProbeChoice.OLDEST
    seed: int = 0
    state_rows: int | None = None
    enforce: bool = True
