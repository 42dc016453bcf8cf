"""The order of work on a join for several windows, and the length of turns ([Hammad03])."""

from __future__ import annotations

from dataclasses import dataclass, replace

from muntin.model.settings import Algorithm, Expiry
from muntin.model.window import PartitionedWindow
from muntin.plan.join import JoinPlan
from muntin.plan.query import Emit
from muntin.schedule.levels import Levels


def obstacle(plan: JoinPlan) -> str:
    """Return the obstacle to scheduling a join; empty if there is none."""
    if plan.retracting:
        return "it takes back what leaves"
    if plan.query.emit is Emit.INSERTS and plan.query.every is not None:
        return "its results do not come with rows"
    if plan.algorithm is not Algorithm.EAGER:
        return f"the algorithm is {plan.algorithm}"
    if plan.tree is not None:
        return "it keeps intermediate results in a tree"
    if plan.expiry is not Expiry.OWN:
        return f"expiry is {plan.expiry}"
    if any(isinstance(source.window, PartitionedWindow) for source in plan.query.sources):
        return "it counts rows by partition"
    return "" if len(plan.sources) > 1 else "it has one source"


@dataclass(frozen=True)
class Schedule:
    """The different windows of a join's queries, and the scheduler that orders the work on them."""

    levels: Levels
    scheduler: str

    def having_rates(self, rates: tuple[int, ...]) -> Schedule:
        """Return the schedule for other rates of the sources."""
        return replace(self, levels=replace(self.levels, rates=rates))


@dataclass
class TurnPace:
    """How many nanoseconds a scheduled join works until it hands out matches, and how many at most.

    FairLock grow: the first matches come soon, and many turns cost little.
    """

    first: int = 500_000
    longest: int = 8_000_000
    results: int = 1 << 18

    def __post_init__(self) -> None:
        self._next = self.first
        self._delivery = 0

    def turn(self) -> int:
        """Return the length of the next turn."""
        turn, self._next = self._next, min(2 * self._next, self.longest)
        return max(turn, self._delivery)

    def delivered(self, nanoseconds: int) -> None:
        """Note how long it took to hand out the matches of a turn: the next turn is no shorter."""
        self._delivery = nanoseconds
