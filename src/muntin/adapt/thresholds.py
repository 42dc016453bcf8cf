"""The thresholds epsilon and p, fixed or tuned by what changes gained [Mukherji11, section 5.4].

Epsilon decides when to analyze. An analysis that changes nothing was in vain, so it rises; one that
finds a clear gain should have been made before, so it falls. The gain p decides when to act. After
an action results are compared with those that the budgets before it would make under the same
statistics: p rises if less than half of the predicted gain came true, else it falls. Both stay
within bounds, and the same samples give the same thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from muntin.adapt.analysis import Recommendation
from muntin.adapt.model import PlanModel
from muntin.adapt.monitor import Sample

USUAL = 0.05
LEAST, MOST = 0.02, 0.2
_RISE = 1.25
_FALL = 1.5
_CLEARLY = 2.0
"""A predicted gain of this many times p should have been found before."""
_TRUE = 0.5
"""The part of a predicted gain that has to come true."""
_SEEN = 4
"""The samples after an action in which its results are counted ..."""
_SKIPPED = 2
"""... besides the first ones, in which states are still those of the budgets before."""


@dataclass(frozen=True)
class _Action:
    """Budgets that were replaced, and the gain that was predicted."""

    before: tuple[float, ...]
    part: float
    gain: float


@dataclass
class Thresholds:
    """The current thresholds; those that were not given tune themselves."""

    given_change: float | None = USUAL
    given_gain: float | None = USUAL
    change: float = field(init=False)
    gain: float = field(init=False)
    _action: _Action | None = None
    _results: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.change = USUAL if self.given_change is None else self.given_change
        self.gain = USUAL if self.given_gain is None else self.given_gain

    def analyzed(self, recommendation: Recommendation, *, acted: bool) -> None:
        """Learn from an analysis of changed statistics."""
        request = recommendation.request
        now = recommendation.predicted_now
        gain = recommendation.predicted / now - 1 if now > 0 else 0.0
        if self.given_change is None and not request.forced and request.current is not None:
            if not acted:
                self.change = min(_RISE * self.change, MOST)
            elif gain > _CLEARLY * self.gain:
                self.change = max(self.change / _FALL, LEAST)
        if acted:
            self._results.clear()
            known = request.current is not None and gain > 0
            self._action = (
                _Action(request.current, request.part, gain)
                if known and request.current is not None
                else None
            )

    def follow(self, sample: Sample, model: PlanModel) -> None:
        """Learn from the results after the last action."""
        action = self._action
        if action is None or self.given_gain is not None:
            return
        made = sum(sample.matches[h] for h in model.shape.top)
        self._results.append((float(made), sample.seconds))
        if len(self._results) < _SKIPPED + _SEEN:
            return
        results, seconds = (sum(numbers) for numbers in zip(*self._results[_SKIPPED:], strict=True))
        budgets = [inf if allowed < 0 else allowed for allowed in action.before]
        otherwise = model.flow_of_part(budgets, action.part).throughput
        came_true = results / seconds >= (1 + _TRUE * action.gain) * otherwise
        self.gain = max(self.gain / _FALL, LEAST) if came_true else min(_RISE * self.gain, MOST)
        self._action = None
