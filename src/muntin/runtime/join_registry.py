"""The joins of a group of queries: a query has a separate join or shares one with others.

Sharing is that of [Hammad03], see :mod:`muntin.planner.sharing_groups`. Queries can share a join if
their results are due when rows arrive: EMIT INSERTS without EVERY, and changes that are retracted
above the join (:mod:`muntin.planner.strategies`), also those of pipelines, with others of the same
EVERY. The join then has the largest windows, and each query takes the matches inside its own.
Queries over partitioned windows, with a plan set by the user, or whose results would have to be
sorted again have separate joins; so do those with other settings, and under overload = 'adapt'
those with another freshness where stale results are only counted. Otherwise the join has the
largest freshness, and each query leaves out what is stale by its own.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias, TypeVar

from muntin.expressions.duck import Duck
from muntin.model.functions import function_keys
from muntin.model.settings import Freshness, Settings
from muntin.model.window import PartitionedWindow, has_own_ends
from muntin.plan.query import Emit, Query
from muntin.planner.overload_plan import fresh_sizes, is_adapting
from muntin.planner.sharing_groups import SharingGroup, add_query, drop_query
from muntin.planner.sharing_reasons import reasons
from muntin.planner.strategies import choose_strategy, retracts
from muntin.runtime.running_join import RunningJoin
from muntin.runtime.running_query import RunningQuery

Running = TypeVar("Running", bound=RunningQuery)
Alike: TypeAlias = tuple[Settings, Emit, int | None, frozenset[str]]
"""The common properties of queries of one join besides its signature.

The last one is the Python functions in their conditions: if one fails below a join, all of its
queries fail.
"""


class JoinRegistry:
    """All running joins."""

    def __init__(self, duck: Duck) -> None:
        self.running: list[RunningJoin] = []
        self._duck = duck
        self._groups: dict[Alike, tuple[SharingGroup, ...]] = {}

    def add(
        self,
        query: Query,
        settings: Settings,
        make: Callable[[], RunningJoin],
        run: Callable[[Query, RunningJoin, Duck], Running],
    ) -> Running:
        """Run a query over a running join, or over the one that ``make`` returns."""
        alike = settings, query.emit, query.every, _functions_below(query)
        weight = settings.sharing.weight
        before = self._groups.get(alike, ())
        taken = any(member.query.name == query.name for group in before for member in group.members)
        fresh = fresh_sizes(query) if is_adapting(settings) else ()
        counted = settings.overload.freshness is Freshness.MEASURE
        after = (
            ()
            if taken or _obstacle(query, settings)
            else add_query(before, query, fresh, weight, counted=counted)
        )
        place = next(
            (place for place, group in enumerate(after) if group.members[-1].query is query), None
        )
        group = None if place is None else after[place]
        if group is not None and (group.members[-1].keeps_order or query.emit is Emit.CHANGES):
            self._groups[alike] = after
        else:
            group = None
        try:
            if group is None or place is None or len(group.members) == 1:
                join = make()
                join.group = group
                self.running.append(join)
            else:
                join = next(join for join in self.running if join.group is before[place])
                join.adopt(group)
        except BaseException:
            self._groups[alike] = before
            self._revert(group, before)
            raise
        running = run(query, join, self._duck)
        running.weight = weight
        join.members.append(running)
        self._bind(join)
        return running

    def _revert(self, group: SharingGroup | None, before: tuple[SharingGroup, ...]) -> None:
        """Return a join that could not adopt a group to the one it had."""
        for join in self.running:
            if group is not None and join.group is group:
                own = {member.query.name for member in group.members[:-1]}
                join.adopt(
                    next(
                        old
                        for old in before
                        if {member.query.name for member in old.members} == own
                    )
                )
                self._bind(join)

    def _bind(self, join: RunningJoin) -> None:
        """Bind the queries of a join to its group as it is now."""
        for running in join.members:
            running.bind(join.group.member(running.query.name) if join.group else None)

    def remove(self, join: RunningJoin) -> None:
        """Remove a join that cannot continue, with the group of its queries."""
        if join in self.running:
            self.running.remove(join)
            for alike, groups in self._groups.items():
                self._groups[alike] = tuple(group for group in groups if group is not join.group)

    def drop(self, running: RunningQuery) -> None:
        """End a query; its join goes with the last one, and shrinks when it needs less."""
        join = running.join
        join.members.remove(running)
        if join not in self.running:
            return
        if not join.members:
            self.running.remove(join)
        for alike, groups in self._groups.items():
            if join.group in groups:
                self._groups[alike] = drop_query(groups, running.query.name)
                if join.members:
                    join.adopt(self._groups[alike][groups.index(join.group)])
                    self._bind(join)
                return

    def reweigh(self, running: RunningQuery, weight: Fraction) -> None:
        """Let a query count with another weight for the scheduler of its join."""
        join, before, running.weight = running.join, running.join.group, weight
        if before is None or before.member(running.query.name).weight == weight:
            return
        for alike, groups in self._groups.items():
            if before in groups:
                group = before.reweighed(running.query.name, weight)
                self._groups[alike] = tuple(group if each is before else each for each in groups)
                join.adopt(group)
                self._bind(join)
                return

    def why(self, running: RunningQuery) -> str:
        """Return the reason in words why a query shares its join or does not."""
        for groups in self._groups.values():
            if running.join.group in groups:
                return reasons(groups)[running.query.name]
        return (
            _obstacle(running.query, running.join.settings)
            or "names its sources in an order in which results would have to be sorted"
        )


def _functions_below(query: Query) -> frozenset[str]:
    """Return the keys of the Python functions in the conditions of a join."""
    predicates = (*query.join.on, *query.join.where)
    return frozenset(key for each in predicates for key in function_keys(each.expression.sql))


def _obstacle(query: Query, settings: Settings) -> str:
    """Return why a query can never share a join, or an empty text if it can."""
    planned = [
        name
        for name in ("order", "index", "buckets", "index_memory")
        if getattr(settings.join, name)
    ]
    if not settings.sharing.enabled:
        return "sharing is off"
    if retracts(query, settings):
        return f"its join retracts what leaves ({choose_strategy(query, settings)[1]})"
    if query.every is not None and query.emit is Emit.INSERTS:
        return "is brought up to date by EVERY"
    if planned:
        return f"has a plan set by {', '.join(planned)}"
    if any(isinstance(source.window, PartitionedWindow) for source in query.sources):
        return "counts rows by partition"
    if any(has_own_ends(source.window) for source in query.sources):
        return "has rows with their own ends"
    if is_adapting(settings) and settings.overload.state_rows:
        return "limits its intermediate states by state_rows"
    return ""
