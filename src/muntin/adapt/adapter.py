"""The controller: when to analyze, what to recommend, when to act [Mukherji11, section 4.4].

``observe`` takes one sample per cycle and may request an analysis
(:mod:`muntin.adapt.analysis`); ``decide`` applies or rejects its outcome. A state machine without
I/O, clock or threads: the same samples and the same moments of decision give the same probe
budgets.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import inf

from muntin.adapt.analysis import UNLIMITED, AnalysisRequest, Recommendation
from muntin.adapt.config import AdapterConfig
from muntin.adapt.model import PlanModel, ratio
from muntin.adapt.monitor import Monitor, Sample, Statistics
from muntin.adapt.sample_period import SamplePeriod
from muntin.adapt.shape import TreeShape
from muntin.adapt.thresholds import Thresholds

_CALM = 0.9
"""Overload ends when the load needs less than this share of the resources ..."""
_CALM_CYCLES = 2
"""... for this many cycles, doubled each time that overload returned soon."""
_MOST_CALM_CYCLES = 64
_SOON = 8
_IDLE = 0.75
"""Paths that use less than this share of the resources for two cycles get a boost ..."""
_BUSY = 0.95
"""... until they use this share: the model underestimates them, for example under bursts."""
_MOST_BOOST = 64.0
_SCATTER = 1.0
_MOST_DECISIONS = 100


@dataclass
class Adapter:
    """Controls the probe budgets of one tree of joins.

    ``budgets`` are the current ones, None without limits, and ``part`` the fraction of keys that
    they are for; ``overloaded`` follows the load at once, even while an analysis is running.
    """

    shape: TreeShape
    config: AdapterConfig
    overloaded: bool = False
    budgets: tuple[float, ...] | None = None
    part: float = 1.0
    analyses: int = 0
    actuations: int = 0
    decisions: deque[dict[str, object]] = field(
        default_factory=lambda: deque(maxlen=_MOST_DECISIONS)
    )
    resources: float | None = None
    price: float = 1.0
    """The units of work of an average probe and its matches, under the current budgets."""
    infeasible: str | None = None
    _monitor: Monitor = field(init=False, repr=False)
    _period: SamplePeriod = field(init=False, repr=False)
    thresholds: Thresholds = field(init=False, repr=False)
    _pending: bool = False
    _analyzed: tuple[Statistics, float] | None = None
    _calm: int = 0
    _calm_needed: int = _CALM_CYCLES
    _left_at: int | None = None
    _used: deque[float] = field(default_factory=lambda: deque(maxlen=2))
    _boost: float = 1.0
    _maximal: bool = True
    _filled: bool = False

    def __post_init__(self) -> None:
        self._monitor = Monitor(self.shape, self.config)
        self._period = SamplePeriod(self.shape, self.config.longest_period)
        self.thresholds = Thresholds(self.config.change, self.config.gain)

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the plan; None before the first sample."""
        return self._monitor.statistics

    @property
    def model(self) -> PlanModel | None:
        """Return the plan without limits, as measured."""
        return None if self.statistics is None else self.statistics.model

    @property
    def cycles_observed_together(self) -> int:
        """Return the current period of monitoring, in cycles."""
        return self._period.cycles

    @property
    def share(self) -> float:
        """Return the estimated share of all results that is produced."""
        return 1.0 if self.statistics is None or not self.overloaded else self.statistics.share

    def observe(self, sample: Sample) -> AnalysisRequest | None:
        """Take the sample of a cycle; return a request if an analysis is due.

        None while another analysis is running, or while a longer period than a cycle is gathered.
        """
        self.resources = sample.resources
        request = None
        for period in self._period.take(sample):
            request = self._observe(period) or request
        return request

    def _observe(self, sample: Sample) -> AnalysisRequest | None:
        statistics = self._monitor.take(sample)
        limit = inf if sample.resources is None else sample.resources
        self.thresholds.follow(sample, statistics.model)
        needed = statistics.model.saturation.resources
        self._note_load(sample.cycle, needed, limit)
        self._set_price(statistics)
        if self._pending:
            return None
        filled, self._filled = self._filled, self._monitor.filled
        forced = self._rebalance(sample, statistics.model, limit)
        reason = forced or self._reason(statistics, needed, limit)
        if reason is None and self.overloaded and self._filled and not filled:
            reason = "windows are full for the first time"
        if reason is None:
            self._period.lengthen()
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
            tolerance=self.thresholds.change,
            gain=self.thresholds.gain,
            boost=self._boost,
            forced=forced is not None,
            current=self.budgets,
            part=self.part,
            filled=filled,
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
        self._maximal = allocation is None or allocation.maximal
        better = recommendation.predicted > (1 + request.gain) * recommendation.predicted_now
        acted = better or not recommendation.keeps_now
        self.thresholds.analyzed(recommendation, acted=acted)
        if not acted:
            self._period.lengthen()
            return None
        self._period.shorten()
        self.actuations += 1
        self.budgets = recommendation.budgets if self.overloaded else None
        self.part = 1.0 if allocation is None else allocation.part
        self._used.clear()
        self._set_price(request.statistics)
        self._log(request.cycle, request.goal, request.reason, recommendation)
        return recommendation.budgets

    def cap(self, resources: float | None) -> float | None:
        """Return the probes per second that resources pay for; None: any number."""
        return None if resources is None else resources / self.price

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
            "cost_per_probe": _round(self.price),
            "resources_needed": None if model is None else _round(model.saturation.resources),
            "share_of_results": _round(self.share),
            "budgets": None
            if self.budgets is None
            else [_round(allowed) for allowed in self.budgets],
            "part_of_keys": _round(self.part),
            "freshness_infeasible": self.infeasible,
            "cycles_observed_together": self.cycles_observed_together,
            "adapt_change": _round(self.thresholds.change),
            "adapt_gain": _round(self.thresholds.gain),
            "analyses": self.analyses,
            "actuations": self.actuations,
            "decisions": list(self.decisions),
        }

    def _set_price(self, statistics: Statistics) -> None:
        """Follow the work of an average probe, unless it has hardly changed."""
        model = statistics.model
        budgets = self.budgets or (UNLIMITED,) * self.shape.count
        flow = model.flow_of_part([inf if rate < 0 else rate for rate in budgets], self.part)
        price = ratio(flow.resources, sum(flow.probes), self.price)
        if _changed(self.price, price, self.thresholds.change):
            self.price = price

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

    def _rebalance(self, sample: Sample, model: PlanModel, limit: float) -> str | None:
        """Change the boost if paths use clearly more or less than predicted; return why."""
        if not self.overloaded or self.budgets is None or not self._maximal:
            self._boost = self._boost if self.overloaded else 1.0
            return None
        self._used.append(model.work(sample.probes, sample.matches) / sample.seconds)
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
        if _changed(limit_before, limit, self.thresholds.change):
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
            if _changed(old, new, self.thresholds.change + _SCATTER * max(scatter)):
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
