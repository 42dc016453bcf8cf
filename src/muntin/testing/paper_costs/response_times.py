"""How long results of a shared join take on average.

[Hammad03]'s analysis of LWO, of SWF and of queries that run alone.

Two streams of equal rates, a window each query has for itself, and a burst of rows that arrive at
once in one stream while nothing else is to be done. A row is compared with every row of the other
stream's window, the newest first, and finds a partner in each of them (fewer partners, evenly
spread, change no average). A result's response time is from the arrival of its newer row to its
release.

Under LWO and alone a result is released when it is found. Under SWF it is taken to be released when
its row has finished the window; that the first row of a burst gets its results out to larger
windows sooner (Figure 3(a), step 2) is left out, as it is in the paper.

``sizes`` are the rows inside the windows, from the smallest to the largest, see
:func:`window_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Burst:
    """``rows`` that arrive at once (the paper's m).

    Each comparison with a stored row takes ``probe`` seconds (its t_p).
    """

    rows: int
    probe: float

    def __post_init__(self) -> None:
        assert self.rows > 0, "a burst has rows"
        assert self.probe >= 0, "time does not run backwards"


def window_rows(rate: float, windows: Sequence[float]) -> list[float]:
    """Return the rows of one stream inside each window: S = rate * window (section 3.1.1).

    >>> window_rows(100, [1, 600])
    [100, 60000]
    """
    return [rate * window for window in windows]


def isolated(sizes: Sequence[float], burst: Burst) -> list[float]:
    """Return AvgRT of each query that runs alone: t_p / 2 * (m * S + 1) (section 3.1.1, note 2).

    >>> [round(time, 7) for time in isolated([100, 60_000], Burst(50, 1e-6))]
    [0.0025005, 1.5000005]
    """
    _check(sizes)
    return [burst.probe / 2 * (burst.rows * size + 1) for size in sizes]


def lwo(sizes: Sequence[float], burst: Burst) -> list[float]:
    """Return AvgRT of each query under LWO: t_p / 2 * ((S + 1) + (m - 1) * S_max) (equation 1).

    >>> [round(time, 7) for time in lwo([100, 60_000], Burst(50, 1e-6))]
    [1.4700505, 1.5000005]
    """
    _check(sizes)
    return [burst.probe / 2 * ((size + 1) + (burst.rows - 1) * sizes[-1]) for size in sizes]


def swf(sizes: Sequence[float], burst: Burst) -> list[float]:
    """Return AvgRT of each query under SWF.

    M * S' * t_p + (m + 1) / 2 * (S - S') * t_p, S' the next smaller window or 0 (equation 2).

    >>> [round(time, 7) for time in swf([100, 60_000], Burst(50, 1e-6))]
    [0.00255, 1.53245]
    """
    _check(sizes)
    return [
        burst.probe * (burst.rows * before + (burst.rows + 1) / 2 * (size - before))
        for before, size in pairwise([0, *sizes])
    ]


def _check(sizes: Sequence[float]) -> None:
    assert all(before < size for before, size in pairwise([0, *sizes])), (
        "windows differ, and come from the smallest to the largest"
    )
