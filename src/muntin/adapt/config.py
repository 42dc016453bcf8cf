"""The configuration of a controller: its query, and when to act."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from muntin.adapt.probe_costs import ProbeCosts
from muntin.model.window import RowsWindow, TimeWindow, Window


@dataclass(frozen=True)
class AdapterConfig:
    """The configuration of an adapter."""

    windows: tuple[Window, ...]
    freshness: tuple[Window, ...] = ()
    """That of each leaf; none: the windows."""
    policy: str = "jaqpot"
    """The policy that divides resources, see ``POLICIES``."""
    change: float | None = 0.05
    """Analyze when a statistic has changed by this share (epsilon in [Mukherji11]); None: tuned."""
    gain: float | None = 0.05
    """Act when this share of results more is predicted (p in [Mukherji11]); None: tuned."""
    longest_period: int = 1
    """The most cycles that are observed together while nothing changes."""
    state_rows: int | None = None
    """Intermediate results that each state keeps; None: as long as their members are inside."""
    enforced: bool = True
    """Whether partial matches too old for freshness are released."""
    by_key: bool = False
    """Whether a slice of the keys may probe, because one key joins all streams."""
    costs: ProbeCosts | None = None
    """The units of work of probes and matches; None: a unit is a probe."""
    cycles: int = 4
    """The number of monitoring cycles over which statistics are averaged."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "freshness", self.freshness or self.windows)
        assert len(self.freshness) == len(self.windows), "every leaf has a freshness, or none has"


def seconds_of(window: Window, rate: float) -> float:
    """Return the seconds a row stays in a window at this rate; infinity if no rows arrive."""
    if isinstance(window, TimeWindow):
        return window.micros / 1e6
    if isinstance(window, RowsWindow):
        return window.rows / rate if rate > 0 else inf
    return inf
