"""The counts of a running join, for ``stats`` and ``explain``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from muntin.kernels import layout
from muntin.model.clock import BEFORE_ALL, format_instant
from muntin.model.window import resized
from muntin.operators.join import NewRows
from muntin.planner.rules.choose_expiry import expiry_without_effect
from muntin.runtime.join_scheduling import levels_of, weights_of
from muntin.runtime.metrics import Measured, WorkMark, measured_between
from muntin.runtime.overload_settings import overload_without_effect

if TYPE_CHECKING:
    from muntin.runtime.running_join import RunningJoin

_SECOND = 1_000_000
_COUNTERS = {
    "probes": layout.N_PROBES,
    "rows_scanned": layout.N_SCANNED,
    "comparisons": layout.N_COMPARED,
    "stale_rows_met": layout.N_STALE,
    "rows_inserted": layout.N_INSERTED,
    "rows_expired": layout.N_EXPIRED,
    "expiry_checks": layout.N_EXPIRY_CHECKS,
    "matches": layout.N_RESULTS,
    "retractions": layout.N_RETRACTED,
    "intermediate_results": layout.N_PARTIAL_MATCHES,
}
_WORK = ("comparisons", "rows_scanned", "matches")


class JoinMetrics:
    """The counts of one join, and those at the moment when it began to follow its present plan."""

    def __init__(self, join: RunningJoin) -> None:
        self._join = join
        self._began: WorkMark | None = None

    def begin(self, instant: int | None) -> None:
        """Measure the present plan from an instant on; None: from the first row on."""
        self._began = None if instant is None else self._mark(instant)

    def see(self, news: Sequence[NewRows]) -> None:
        """Measure from these rows on, if nothing has come before."""
        if self._began is None and any(len(new.batch) for new in news):
            self.begin(min(int(new.batch.times[0]) for new in news if len(new.batch)))

    def _mark(self, instant: int) -> WorkMark:
        counters = self._join.operator.state.counters
        work = {name: int(counters[_COUNTERS[name]]) for name in _WORK}
        results = sum(member.rows_out for member in self._join.members)
        return WorkMark(instant, {**work, "results": results})

    def measured(self) -> Measured | None:
        """Return the work under the present plan; None while no event time has passed."""
        if self._began is None:
            return None
        return measured_between(self._began, self._mark(self._join.now))

    @property
    def scheduler(self) -> str:
        """Return the scheduler of the join's work where results are released early."""
        schedule = self._join.operator.tactic.schedule
        return "lwo" if schedule is None else str(schedule.scheduler)

    def levels(self) -> list[dict[str, object]]:
        """Return the windows among which work is scheduled, with what each counts for MQT."""
        join = self._join
        schedule = join.operator.tactic.schedule
        if schedule is None:
            return []
        sources, weights = join.query.sources, weights_of(join.query, join.group)
        levels = zip(levels_of(join.query, join.group), schedule.levels.counts, strict=True)
        return [
            {
                "windows": {
                    source.alias: str(resized(source.window, size))
                    for source, size in zip(sources, sizes, strict=True)
                    if size
                },
                "queries": len(weights[sizes]),
                "weight": float(sum(weights[sizes])),
                "count": count,
            }
            for sizes, count in levels
        ]

    def scan_rates(self) -> dict[str, int]:
        """Return how many rows a unit of each window counts for, relative to the others."""
        schedule, sources = self._join.operator.tactic.schedule, self._join.query.sources
        if schedule is None:
            return {}
        pairs = zip(sources, schedule.levels.rates, strict=True)
        return {source.alias: rate for source, rate in pairs if not source.stored}

    @property
    def without_effect(self) -> dict[str, str]:
        """Return the settings that have no effect on the join, each with the reason."""
        join = self._join
        plan, given = join.plan, join.settings.expiry.policy
        reasons = {
            "scheduler": join.scheduling.without_effect(plan, join.group),
            "expiry": expiry_without_effect(given, plan.expiry, len(plan.sources)),
            "overload": plan.limiting_obstacle,
            **overload_without_effect(
                join.settings,
                limited=plan.limiting is not None,
                has_resources=join.overload.has_resources,
            ),
        }
        return {name: reason for name, reason in reasons.items() if reason}

    def stats(self) -> dict[str, object]:
        """Return all counts of the join."""
        join, operator = self._join, self._join.operator
        rows = join.state_rows()
        counters = operator.state.counters
        held = int(operator.state.stores[:, layout.HELD].sum())
        return {
            "processed_until": None if join.now <= BEFORE_ALL else format_instant(join.now),
            "rows_in": join.cursors.rows_in,
            "state_rows": rows,
            "stale_rows_held": held - sum(rows.values()),
            "state_bytes": operator.nbytes(),
            "state_bytes_per_row": operator.nbytes() / max(sum(rows.values()), 1),
            "expression_failures": join.evaluator.failures,
            "last_expression_failure": join.evaluator.last_failure,
            "intermediate_rows": operator.tactic.stats().partial_matches,
            **join.monitor.stats(),
            "measured": join.monitor.measured(join.plan),
            "scheduler": self.scheduler,
            "levels": self.levels(),
            "scan_rates": self.scan_rates(),
            "overload": self._overload(),
            "work": {name: int(counters[place]) for name, place in _COUNTERS.items()},
        }

    def _overload(self) -> dict[str, object]:
        """Return the overload mode and the lag of the join in event time."""
        control = self._join.overload
        return {"mode": control.mode, "lag_seconds": self.lag_seconds, **control.stats()}

    @property
    def lag_seconds(self) -> float:
        """Return how far the join is behind the newest row of its streams, in event time."""
        newest, now = self._join.cursors.newest(), self._join.now
        behind = newest > BEFORE_ALL and now > BEFORE_ALL
        return max(newest - now, 0) / _SECOND if behind else 0.0
