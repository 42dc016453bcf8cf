"""What a controller is told about its query and about when to act."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from muntin.model.window import RowsWindow, TimeWindow, Window


@dataclass(frozen=True)
class Control:
    """The configuration of an adapter.

    Parameters
    ----------
    windows, freshness
        Of each leaf; no freshness: that of the windows.
    policy
        Who divides resources, see ``POLICIES``.
    change
        The paper's epsilon: analyse when a statistic has changed by this share.
    gain
        The paper's p: act when more results by this share are predicted.
    state_rows
        Intermediate results that each state keeps; None: as long as their members live.
    enforced
        Whether what is too old for freshness is let go.
    cycles
        Statistics are averages over so many monitoring cycles.
    """

    windows: tuple[Window, ...]
    freshness: tuple[Window, ...] = ()
    policy: str = "jaqpot"
    change: float = 0.05
    gain: float = 0.05
    state_rows: int | None = None
    enforced: bool = True
    cycles: int = 4

    def __post_init__(self) -> None:
        object.__setattr__(self, "freshness", self.freshness or self.windows)
        assert len(self.freshness) == len(self.windows), "every leaf has a freshness, or none has"


def seconds_of(window: Window, rate: float) -> float:
    """How long a row stays in a window of a stream of this rate: in seconds, forever where no rows come."""
    if isinstance(window, TimeWindow):
        return window.micros / 1e6
    if isinstance(window, RowsWindow):
        return window.rows / rate if rate > 0 else inf
    return inf
