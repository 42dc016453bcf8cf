"""The controller: when to analyze, what to recommend, when to act [Mukherji11, section 4.4].

``observe`` takes one sample per cycle and may request an analysis; ``analyze`` is a pure function
that the engine may run in another thread; ``decide`` applies or rejects its outcome. A state
machine without I/O, clock or threads: the same samples and the same moments of decision give the
same probe budgets.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal

from muntin.adapt.allocation import Allocation
from muntin.adapt.config import AdapterConfig
from muntin.adapt.freshness import is_fresh
from muntin.adapt.model import PlanModel
from muntin.adapt.monitor import Monitor, Sample, Statistics, leaves_below
from muntin.adapt.policies import allocate
from muntin.adapt.shape import TreeShape

UNLIMITED = -1.0
_CALM = 0.9
"""Overload ends when the load needs less than this share of the resources ..."""
_CALM_CYCLES = 2
"""... for this many cycles, doubled each time that overload returned soon."""
_MOST_CALM_CYCLES = 64
_SOON = 8
_HEADROOM = 2.0
"""Budgets of half joins where all rows may probe are this multiple of the average arrivals.

So random bursts are not cut off; the sum of all probes is capped.
"""
_OVERSPENT = 1.1
"""Probe budgets that are predicted to use more than this share of the resources are replaced."""
_IDLE = 0.75
"""Paths that use less than this share of the resources for two cycles get a boost ..."""
_BUSY = 0.95
"""... until they use this share: the model underestimates them, for example under bursts."""
_MOST_BOOST = 64.0
_EXPLORING = 0.02
"""Share of the resources for paths through joins without statistics."""
_SCATTER = 1.0
_MOST_DECISIONS = 100


@dataclass(frozen=True)
class AnalysisRequest:
    """The input of an analysis: statistics, resources, and the current budgets (None: no limits).

    ``boost`` multiplies the resources to allocate, because less is used than predicted; when it has
    changed, the outcome is ``forced``.
    """

    cycle: int
    goal: Literal["limit", "release"]
    reason: str
    policy: str
    statistics: Statistics
    resources: float
    tolerance: float
    boost: float
    forced: bool
    current: tuple[float, ...] | None


@dataclass(frozen=True)
class Recommendation:
    """The outcome of an analysis.

    ``budgets`` is UNLIMITED where all rows may probe; ``predicted`` and ``predicted_now`` are the
    results per second under the recommended and the current budgets.
    """

    request: AnalysisRequest
    budgets: tuple[float, ...]
    allocation: Allocation | None
    predicted: float
    predicted_now: float
    keeps_now: bool


def analyze(request: AnalysisRequest) -> Recommendation:
    """Divide the resources again; pure, may run in any thread."""
    model = request.statistics.model
    if request.goal == "release":
        full = model.saturation.throughput
        return Recommendation(
            request, (UNLIMITED,) * model.shape.count, None, full, full, keeps_now=False
        )
    if model.saturation.throughput <= 0:
        return _blind(request)
    exploring = _explored(request)
    left = request.resources - sum(
        model.path_limit(leaf) * share for leaf, share in exploring.items()
    )
    allocation = _divided(request, max(left, 0.0))
    budgets = list(allocation.budgets)
    for leaf, share in exploring.items():
        for h, more in zip(
            model.shape.paths[leaf],
            model.division(leaf, model.path_limit(leaf) * share),
            strict=True,
        ):
            budgets[h] += max(more, model.rates[leaf] * share)
    arrivals = model.flow(budgets).arrivals
    given = tuple(
        _HEADROOM * allowed if allowed >= 0.999 * arrives else allowed
        for allowed, arrives in zip(budgets, arrivals, strict=True)
    )
    predicted = allocation.throughput / request.boost
    if request.current is None:
        return Recommendation(request, given, allocation, predicted, 0.0, keeps_now=False)
    flow = model.flow([inf if allowed < 0 else allowed for allowed in request.current])
    within = flow.resources <= request.resources * _OVERSPENT * request.boost
    makes = flow.throughput * min(request.resources / max(flow.resources, 1e-9), 1.0)
    fresh = is_fresh(model, flow.probes, request.tolerance) or not is_fresh(
        model, allocation.budgets, request.tolerance
    )
    # Policies by half joins do not maximize the prediction: keeping the best budgets seen so far
    # would make them another policy.
    by_paths = allocation.assigned is not None
    return Recommendation(
        request,
        given,
        allocation,
        predicted,
        makes,
        keeps_now=by_paths and within and fresh and not request.forced,
    )


def _divided(request: AnalysisRequest, resources: float) -> Allocation:
    """Return the allocation of the policy; a boost applies to throughput, not to freshness."""
    model = request.statistics.model
    found = allocate(request.policy, model, resources)
    if request.boost <= 1:
        return found
    if found.infeasible is None:
        return allocate(request.policy, model, request.boost * resources)
    return replace(
        allocate("grepp", model, request.boost * resources),
        policy=request.policy,
        infeasible=found.infeasible,
    )


def _blind(request: AnalysisRequest) -> Recommendation:
    """Return the same share of all streams: before the first result, no path is productive."""
    model = request.statistics.model
    share = min(request.boost * request.resources / max(model.saturation.resources, 1e-9), 1.0)
    given = tuple(share * rate for rate in model.rates) + (UNLIMITED,) * len(
        model.shape.susceptible
    )
    return Recommendation(request, given, None, 0.0, 0.0, keeps_now=request.current == given)


def _explored(request: AnalysisRequest) -> dict[int, float]:
    """Return the share of rows to send up from each leaf below a join that is not measured."""
    model = request.statistics.model
    leaves = {
        leaf for join in request.statistics.unmeasured for leaf in leaves_below(model.shape, join)
    }
    limits = {leaf: model.path_limit(leaf) for leaf in leaves if model.path_limit(leaf) > 0}
    return {
        leaf: min(_EXPLORING * request.resources / len(limits) / limit, 1.0)
        for leaf, limit in limits.items()
    }


@dataclass
class Adapter:
    """Controls the probe budgets of one tree of joins.

    ``budgets`` are the current ones, None without limits; ``overloaded`` follows the load at once,
    even while an analysis is running.
    """

    shape: TreeShape
    config: AdapterConfig
    overloaded: bool = False
    budgets: tuple[float, ...] | None = None
    analyses: int = 0
    actuations: int = 0
    decisions: deque[dict[str, object]] = field(
        default_factory=lambda: deque(maxlen=_MOST_DECISIONS)
    )
    resources: float | None = None
    infeasible: str | None = None
    _monitor: Monitor = field(init=False, repr=False)
    _pending: bool = False
    _analyzed: tuple[Statistics, float] | None = None
    _calm: int = 0
    _calm_needed: int = _CALM_CYCLES
    _left_at: int | None = None
    _used: deque[float] = field(default_factory=lambda: deque(maxlen=2))
    _boost: float = 1.0
    _by_paths: bool = True

    def __post_init__(self) -> None:
        self._monitor = Monitor(self.shape, self.config)

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the plan; None before the first sample."""
        return self._monitor.statistics

    @property
    def model(self) -> PlanModel | None:
        """The plan without limits, as measured."""
        return None if self.statistics is None else self.statistics.model

    @property
    def share(self) -> float:
        """The estimated share of all results that is produced."""
        return 1.0 if self.statistics is None or not self.overloaded else self.statistics.share

    def observe(self, sample: Sample) -> AnalysisRequest | None:
        """Take the sample of a cycle; return a request if an analysis is due.

        None while another analysis is running.
        """
        statistics = self._monitor.take(sample)
        limit = inf if sample.resources is None else sample.resources
        self.resources = sample.resources
        needed = statistics.model.saturation.resources
        self._note_load(sample.cycle, needed, limit)
        if self._pending:
            return None
        forced = self._rebalance(sample, limit)
        reason = forced or self._reason(statistics, needed, limit)
        if reason is None:
            return None
        self._pending = True
        self.analyses += 1
        self._analyzed = (statistics, limit)
        return AnalysisRequest(
            cycle=sample.cycle,
            goal="limit" if self.overloaded else "release",
            reason=reason,
            policy=self.config.policy,
            statistics=statistics,
            resources=limit,
            tolerance=self.config.change,
            boost=self._boost,
            forced=forced is not None,
            current=self.budgets,
        )

    def decide(self, recommendation: Recommendation) -> tuple[float, ...] | None:
        """Return the probe budgets to apply from now on, None to keep the current ones."""
        self._pending = False
        request = recommendation.request
        if (request.goal == "limit") != self.overloaded:
            self._analyzed = (
                None  # the load has changed meanwhile: the next sample requests another
            )
            return None
        allocation = recommendation.allocation
        self.infeasible = (
            None
            if allocation is None or allocation.infeasible is None
            else str(allocation.infeasible)
        )
        self._by_paths = allocation is None or allocation.assigned is not None
        better = recommendation.predicted > (1 + self.config.gain) * recommendation.predicted_now
        if recommendation.keeps_now and not better:
            return None
        self.actuations += 1
        self.budgets = recommendation.budgets if self.overloaded else None
        self._used.clear()
        self._log(request.cycle, request.goal, request.reason, recommendation)
        return recommendation.budgets

    def abandon(self) -> None:
        """Discard an analysis that failed; the next sample requests another."""
        self._pending = False
        self._analyzed = None

    def report(self) -> dict[str, object]:
        """Return plain numbers and texts for ``stats``."""
        model = self.model
        return {
            "overloaded": self.overloaded,
            "policy": self.config.policy,
            "resources": self.resources,
            "resources_needed": None if model is None else _round(model.saturation.resources),
            "share_of_results": _round(self.share),
            "budgets": None
            if self.budgets is None
            else [_round(allowed) for allowed in self.budgets],
            "freshness_infeasible": self.infeasible,
            "analyses": self.analyses,
            "actuations": self.actuations,
            "decisions": list(self.decisions),
        }

    def _note_load(self, cycle: int, needed: float, limit: float) -> None:
        """Enter overload when arrivals need more than the limit; leave after some calm cycles."""
        if not self.overloaded:
            if needed > limit:
                soon = self._left_at is not None and cycle - self._left_at <= _SOON
                self._calm_needed = (
                    min(2 * self._calm_needed, _MOST_CALM_CYCLES) if soon else _CALM_CYCLES
                )
                self.overloaded, self._calm = True, 0
            return
        self._calm = self._calm + 1 if needed <= _CALM * limit else 0
        if self._calm >= self._calm_needed:
            self.overloaded, self._left_at = False, cycle

    def _rebalance(self, sample: Sample, limit: float) -> str | None:
        """Change the boost if paths use clearly more or less than predicted; return why."""
        if not self.overloaded or self.budgets is None or not self._by_paths:
            self._boost = self._boost if self.overloaded else 1.0
            return None
        self._used.append(sum(sample.probes) / sample.seconds)
        used = max(sum(self._used) / len(self._used), 1e-9)
        if len(self._used) < 2:
            return None
        left = any(sample.probes[leaf] < sample.arrivals[leaf] for leaf in range(self.shape.leaves))
        if used < _IDLE * limit and left and self._boost < _MOST_BOOST:
            self._boost = min(self._boost * min(limit / used, 2.0), _MOST_BOOST)
            return f"only {_round(used)} of {_round(limit)} probes per second were used"
        if used >= _BUSY * limit and self._boost > 1:
            self._boost = max(self._boost / 1.25, 1.0)
            return f"{_round(used)} of {_round(limit)} probes per second were used"
        return None

    def _reason(self, statistics: Statistics, needed: float, limit: float) -> str | None:
        if not self.overloaded:
            if self.budgets is None:
                return None
            return f"all that arrives needs {_round(needed)} probes per second of {_round(limit)}"
        if self.budgets is None or self._analyzed is None:
            return (
                f"all that arrives needs {_round(needed)} probes per second, "
                f"there are {_round(limit)}"
            )
        before, limit_before = self._analyzed
        if _changed(limit_before, limit, self.config.change):
            return f"resources: {_round(limit_before)} before, {_round(limit)} now"
        names = [
            *(f"rate of source {leaf}" for leaf in range(self.shape.leaves)),
            *(f"productivity of half join {h}" for h in range(self.shape.count)),
        ]
        figures = zip(
            names,
            before.figures,
            statistics.figures,
            before.scatter,
            statistics.scatter,
            strict=True,
        )
        for name, old, new, *scatter in figures:
            if _changed(old, new, self.config.change + _SCATTER * max(scatter)):
                return f"{name}: {_round(old)} before, {_round(new)} now"
        if set(before.unmeasured) != set(statistics.unmeasured):
            return (
                f"joins that are not measured: {len(before.unmeasured)} before, "
                f"{len(statistics.unmeasured)} now"
            )
        return None

    def _log(self, cycle: int, goal: str, reason: str, recommendation: Recommendation) -> None:
        allocation = recommendation.allocation
        self.decisions.append({
            "cycle": cycle,
            "decision": goal,
            "reason": reason,
            "predicted": _round(recommendation.predicted),
            "predicted_before": _round(recommendation.predicted_now),
            "budgets": [_round(allowed) for allowed in recommendation.budgets],
            "for_freshness": _round(allocation.for_freshness) if allocation else 0.0,
            "freshness_infeasible": self.infeasible,
        })  # fmt: skip


def _changed(old: float, new: float, share: float) -> bool:
    return abs(new - old) > share * max(old, 1e-12) if old != new else False


def _round(number: float) -> float:
    return float(f"{number:.6g}")
