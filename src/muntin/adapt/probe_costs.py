"""What a probe of each half join costs, in units of work.

By default a unit is a probe, and nothing else counts [Mukherji11, appendix A]. With
``probe_cost = 'measured'`` a unit is the time of a probe that looks into an index and finds
nothing. Then a scan of a state without an index costs its rows, and a match costs what it takes to
find it and to keep it or to put it in order. Inserts and expiry are the same under every budget.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProbeCosts:
    """The units of work of the steps of each half join.

    ``probe`` finds nothing, ``scanned`` is each row of the partner's state that a probe without an
    index looks at, ``match`` each match.
    """

    probe: tuple[float, ...]
    scanned: tuple[float, ...]
    match: tuple[float, ...]

    @classmethod
    def unit(cls, count: int) -> ProbeCosts:
        """Return the costs of ``count`` half joins where a unit is a probe."""
        return cls((1.0,) * count, (0.0,) * count, (0.0,) * count)
