"""The schedule of the work of a join, if it has one ([Hammad03, section 3])."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from muntin.model.settings import Scheduler, Settings, TreeChoice
from muntin.model.window import window_size
from muntin.operators.join.schedule import Schedule, obstacle
from muntin.plan.join import JoinPlan
from muntin.plan.query import Query
from muntin.planner.sharing_groups import SharingGroup
from muntin.schedule.levels import Levels, level_counts

_TWO = 2


@dataclass
class JoinScheduling:
    """Chooses the schedule of a join from its settings, its queries and whether the engine runs.

    ``live``: the engine works in the background. Then work is cut into turns also for one window.
    ``paced``: its driver may ask for results before all are there, as partitions do. ``rates``:
    rows per unit of the window of each source, as last measured; empty before that.
    """

    settings: Settings
    live: bool = False
    paced: bool = False
    rates: tuple[int, ...] = ()

    def schedule(self, plan: JoinPlan, group: SharingGroup | None) -> Schedule | None:
        """Return how work is ordered; None: row by row over the largest windows, all at once."""
        windows = levels_of(plan.query, group)
        scheduler = self._scheduler(plan, len(windows))
        if scheduler is None or obstacle(plan):
            return None
        weights = weights_of(plan.query, group)
        sizes = tuple(tuple(size or 1 for size in level) for level in windows)
        looks = tuple(steps[0].source for steps in plan.orders)
        counts = level_counts([weights[level] for level in windows])
        rates = self.rates or (1,) * len(looks)
        return Schedule(Levels(sizes, counts, looks, rates), scheduler)

    def without_effect(self, plan: JoinPlan, group: SharingGroup | None) -> str:
        """Return why the setting has no effect on a join; empty if it has one."""
        if self.settings.sharing.scheduler is Scheduler.LWO:
            return ""
        if plan.limiting is not None:
            return "its join has probe budgets"
        reason = obstacle(plan)
        if reason:
            return f"its join cannot be scheduled: {reason}"
        if len(levels_of(plan.query, group)) == 1:
            return "no query with other windows shares its join"
        return "" if self.live or self.paced else "the engine does not run in the background"

    def weight_without_effect(self, plan: JoinPlan, group: SharingGroup | None) -> str:
        """Return why weights have no effect on a join; empty if they have one."""
        return uncounted(self.settings) or self.without_effect(plan, group)

    def plan_settings(self, plan: JoinPlan, group: SharingGroup | None) -> Settings:
        """Return the settings to plan by: a scheduled join keeps no intermediate results.

        A tree that the user asked for stays.
        """
        scheduled = self._scheduler(plan, len(levels_of(plan.query, group))) is not None
        if scheduled and self.settings.join.tree is TreeChoice.AUTO:
            return self.settings.having("tree", "off")
        return self.settings

    def _scheduler(self, plan: JoinPlan, levels: int) -> str | None:
        if plan.retracting or plan.limiting is not None:
            return None
        if levels > 1 and self.settings.sharing.scheduler is not Scheduler.LWO:
            return self.settings.sharing.scheduler
        if not self.live:
            return None
        # With one window all schedulers are equal; over three sources LWO is the eager join.
        if len(plan.sources) == _TWO:
            return "lwo"
        return "swf" if levels == 1 else None


def uncounted(settings: Settings) -> str:
    """Return why the scheduler does not count queries; empty if it does."""
    scheduler = settings.sharing.scheduler
    return "" if scheduler is Scheduler.MQT else f"scheduler {scheduler} does not count queries"


def weights_of(query: Query, group: SharingGroup | None) -> dict[tuple[int, ...], list[Fraction]]:
    """Return the weights of a join's queries, by the sizes of their windows."""
    if group is None:
        return {windows: [Fraction(1)] for windows in levels_of(query, None)}
    found: dict[tuple[int, ...], list[Fraction]] = {}
    for member in group.members:
        found.setdefault(member.sizes, []).append(member.weight)
    return found


def levels_of(query: Query, group: SharingGroup | None) -> tuple[tuple[int, ...], ...]:
    """Return the different windows of a join's queries, small to large, as sizes per source."""
    if group is not None:
        return group.levels
    return (tuple(window_size(source.window) for source in query.sources),)
