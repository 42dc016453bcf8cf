"""Overload in process ([Mukherji11, section 4.4]): monitor, analyze and act after every cycle.

While an engine is pushed and advanced, an analysis is made at once, between two cycles: the same
rows give the same results, however they are cut into batches. In an engine that works in the
background a thread makes it, and its recommendation holds from the first cycle that ends after it
is done; the join never waits.

Resources are probes per second of event time. Where the user gives none and the engine works in the
background, they are derived: the probes that the join makes per second of work, including all that
belongs to them, times the fraction of the time that it may work. This assumes that a second of
event time is a second of the clock, as with streams that come as they happen.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from time import perf_counter

from muntin.adapt import (
    LONGEST,
    Adapter,
    AdapterConfig,
    ProbeCosts,
    Recommendation,
    Sample,
    TreeShape,
    analyze,
)
from muntin.model.clock import format_interval
from muntin.model.settings import ProbeChoice, ProbeCost, Settings
from muntin.model.window import TimeWindow
from muntin.operators.join.probe_limiter import Budgets, CycleSample, ProbeLimiter
from muntin.plan.join import JoinPlan, TreePlan
from muntin.runtime.calibration import calibrated_costs
from muntin.runtime.half_join_costs import half_join_costs
from muntin.runtime.log_cursors import LogCursors
from muntin.runtime.overload_control import OverloadControl, same_half_joins

_log = logging.getLogger("muntin")

_SECOND = 1_000_000
_SHARE_OF_TIME = 0.5
"""The fraction of the time that a join may work; other joins, results and bursts need time, too."""
_LEAST_PROBES = 2_000
"""Probes after which their cost counts as measured."""
_FORGETTING = 0.5
"""The factor by which older measurements count less after each cycle with enough probes."""


@cache
def _analysts() -> ThreadPoolExecutor:
    """Return the thread for the analyses of all joins; each takes milliseconds."""
    return ThreadPoolExecutor(1, thread_name_prefix="muntin-analysis")


class Overload(OverloadControl):
    """Controls one limited join for as long as it runs, even when its operator is replaced."""

    mode = "adapt"

    def __init__(self, plan: JoinPlan, settings: Settings, *, live: bool) -> None:
        assert plan.tree is not None, "only trees are limited"
        assert plan.limiting is not None, "a limited plan has limits"
        self.plan, self._limiting, self._tree = plan, plan.limiting, plan.tree
        self._given = settings.overload.resources
        self._seconds = self._limiting.period / _SECOND
        self.adapter = Adapter(TreeShape.of(plan.tree), control_of(plan, settings))
        self._live = live
        self._pending: Future[Recommendation] | None = None
        self._work = self._probes = 0.0
        self._probed_before = 0
        self._rates: tuple[float | None, ...] = (None,) * self.adapter.shape.count

    def controls(self, plan: JoinPlan) -> bool:
        """Return whether it can continue with a plan."""
        return same_half_joins(self.plan, plan)

    def attach(self, limiter: ProbeLimiter) -> None:
        """Control this limiter from now on."""
        self.limiter = limiter
        limiter.on_sample = self._on_sample
        self.set_live(live=self._live)
        self._probed_before = 0
        self._set()

    def set_live(self, *, live: bool) -> None:
        """Note whether the engine works in the background.

        Then a thread makes the analyses, and resources may be derived.
        """
        self._live = live
        if not live:
            self._take(wait=True)
            self.limiter.see_nothing()

    def see(self, frontier: int, cursors: LogCursors) -> None:
        """Measure freshness from the newest final row during overload.

        Without overload results are complete, however many rows come at once.
        """
        if not self._live:
            return
        if self.adapter.overloaded:
            self.limiter.see(min(cursors.newest(), frontier), cursors.counts())
        else:
            self.limiter.see_nothing()

    def present(self) -> Sequence[int] | None:
        """Return the instant of each source by which results may be stale; None: none can be."""
        return self.limiter.present

    # -- resources ---------------------------------------------------------------------------------

    @property
    def has_resources(self) -> bool:
        """Return whether resources are given or will be derived."""
        return self._given is not None or self._live

    @property
    def resources(self) -> float | None:
        """Units of work per second that are available; None: no limit."""
        if self._given is not None or not self._live or self._probes < _LEAST_PROBES:
            return self._given
        return _SHARE_OF_TIME * self._probes / self._work * self.adapter.price

    @contextmanager
    def working(self) -> Iterator[None]:
        """Measure the time of some work of the join."""
        begin = perf_counter()
        yield
        probed = sum(self.limiter.totals().probes)
        fresh = probed - self._probed_before
        if self._live and fresh:
            keep = _FORGETTING if fresh >= _LEAST_PROBES else 1.0
            self._probes = keep * self._probes + fresh
            self._work = keep * self._work + perf_counter() - begin
        self._probed_before = probed

    # -- monitoring, analysis, actuation -----------------------------------------------------------

    def _on_sample(self, sample: CycleSample) -> None:
        resources = self.resources
        self._take(wait=False)
        calm = (
            not self.adapter.overloaded and self.adapter.budgets is None and self._pending is None
        )
        if calm and (resources is None or not any(sample.arrivals)):
            self._set()
            return  # nothing to divide: slow streams have more cycles than rows
        request = self.adapter.observe(
            Sample(
                sample.cycle,
                self._seconds,
                sample.arrivals,
                sample.probes,
                sample.matches,
                sample.states,
                resources,
                self.limiter.budgets.part,
            )
        )
        if request is not None and self._live:
            self._pending = _analysts().submit(analyze, request)
        elif request is not None:
            self._act(analyze(request))
        self._set()

    def _take(self, *, wait: bool) -> None:
        """Act on an analysis that is done, if there is one."""
        pending = self._pending
        if pending is None or not (wait or pending.done()):
            return
        self._pending = None
        error = pending.exception()
        if error is not None:
            _log.error(
                "query %s: the analysis of overload failed, probe budgets stay as they are: %s",
                self.plan.query.name,
                error,
            )
            self.adapter.abandon()
            return
        self._act(pending.result())

    def _act(self, recommendation: Recommendation) -> None:
        decided = self.adapter.decide(recommendation)
        if decided is not None:
            self._rates = tuple(None if rate < 0 else rate for rate in decided)
            _log.info("query %s: %s", self.plan.query.name, self.adapter.decisions[-1])

    def _set(self) -> None:
        adapter = self.adapter
        budgets = Budgets(self._rates, adapter.cap(self.resources), adapter.part)
        if budgets != self.limiter.budgets:
            self.limiter.set_budgets(budgets)

    # -- reports -----------------------------------------------------------------------------------

    def budgets(self) -> dict[str, float | None]:
        """Return probes per second by half join, None: no limit; empty while not overloaded."""
        names = half_join_names(self.plan, self._tree)
        return (
            dict(zip(names, self.limiter.budgets.rates, strict=True))
            if self.adapter.overloaded
            else {}
        )

    def costs(self) -> dict[str, float]:
        """Return the work of a probe and its matches by half join; empty if each is a unit."""
        model = self.adapter.model
        if model is None or model.costs is None:
            return {}
        return dict(zip(half_join_names(self.plan, self._tree), model.step_costs, strict=True))

    def stats(self) -> dict[str, object]:
        """Return the measurements and decisions."""
        limiter, names = self.limiter, half_join_names(self.plan, self._tree)
        totals = limiter.totals()
        return {
            **self.adapter.report(),
            "resources": self.resources,
            "budgets": self.budgets(),
            "costs": self.costs(),
            "arrivals": dict(zip(names, totals.arrivals, strict=True)),
            "probes": dict(zip(names, totals.probes, strict=True)),
            "matches": dict(zip(names, totals.matches, strict=True)),
            "stale_results": limiter.stale_results(),
            "oldest_rows": ages_in_words(self.plan, limiter.oldest_rows()),
        }


def control_of(plan: JoinPlan, settings: Settings) -> AdapterConfig:
    """Return the shape of a plan, as a controller needs it."""
    assert plan.limiting is not None, "a limited plan has limits"
    fresh = dict(plan.query.freshness)
    windows = tuple(source.window for source in plan.query.sources)
    return AdapterConfig(
        windows=windows,
        freshness=tuple(fresh.get(place, window) for place, window in enumerate(windows)),
        policy=settings.overload.policy,
        change=settings.overload.change,
        gain=settings.overload.gain,
        longest_period=LONGEST if settings.overload.monitoring is None else 1,
        state_rows=plan.limiting.state_rows,
        enforced=plan.limiting.enforce,
        by_key=plan.limiting.choice is ProbeChoice.KEY and bool(plan.common_key),
        costs=_costs(plan, settings),
    )


def _costs(plan: JoinPlan, settings: Settings) -> ProbeCosts | None:
    if plan.tree is None or settings.overload.probe_cost is ProbeCost.UNIT:
        return None
    return half_join_costs(plan.tree, calibrated_costs())


def ages_in_words(plan: JoinPlan, ages: Sequence[int]) -> dict[str, str]:
    """Return how old rows in results were, by alias: a time or rows, as the window is."""
    return {
        source.alias: format_interval(age)
        if isinstance(source.window, TimeWindow)
        else f"{age} ROWS"
        for source, age in zip(plan.query.sources, ages, strict=False)
    }


def half_join_names(plan: JoinPlan, tree: TreePlan) -> list[str]:
    """Return the half joins in words, by number: which input probes which state.

    The order is that of the sources, then of the tree's inner nodes.
    """
    aliases = [source.alias for source in plan.query.sources]
    shape = TreeShape.of(tree)
    sides = [
        aliases[h]
        if h < len(aliases)
        else "+".join(aliases[s] for s in tree.nodes[h - len(aliases)].sources)
        for h in range(shape.count)
    ]
    return [f"{sides[h]} into {sides[shape.partner[h]]}" for h in range(shape.count)]
