"""Rule: choose indexes, buckets, join orders and a tree by predicted cost.

Sound because all of them have the same results. Settings are kept; cost decides the rest, in
seconds of work per second, and only if the join was estimated.
"""

from __future__ import annotations

from dataclasses import replace

from muntin.errors import SettingError
from muntin.model.settings import Algorithm, Expiry, GivenTree, JoinMethod, Settings, TreeChoice
from muntin.model.window import PartitionedWindow
from muntin.plan.query import Query
from muntin.planner.choices import ChoiceLimits, choose
from muntin.planner.draft import JoinDraft
from muntin.planner.index_settings import indexed_sources
from muntin.planner.orders import OrderSources, choose_orders
from muntin.planner.overload_plan import is_adapting
from muntin.planner.strategies import retracts
from muntin.planner.tree_planner import parse_shape
from muntin.planner.unit_costs import UnitCosts

_NEVER_SCAN = 1e6
"""Cost of a scanned row under join = 'hash': an order that scans is the last resort."""


def limit_choices(draft: JoinDraft) -> JoinDraft:
    """Derive from the settings what is left to choose."""
    indexed = frozenset(indexed_sources(draft.query, draft.settings))
    limits = choice_limits(draft.query, draft.settings, draft.algorithm, draft.expiry)
    return replace(draft, indexed=indexed, limits=limits)


def choose_by_cost(draft: JoinDraft) -> JoinDraft:
    """Make the cheapest choice within the limits."""
    if draft.graph is None or len(draft.query.sources) < 2:
        return draft
    costs = weighed(draft.settings, draft.known.costs)
    choice = choose(draft.graph, draft.limits, costs, draft.aliases)
    scanned = {source for source, buckets in enumerate(choice.buckets) if buckets == 1}
    return replace(draft, choice=choice, indexed=draft.indexed - scanned)


def choice_limits(
    query: Query, settings: Settings, algorithm: Algorithm, expiry: Expiry
) -> ChoiceLimits:
    """Return the choices that the settings leave open."""
    possible = (
        len(query.sources) > (1 if is_adapting(settings) else 2)
        and not retracts(query, settings)
        and algorithm is Algorithm.EAGER
        and expiry is Expiry.OWN
        and not any(isinstance(source.window, PartitionedWindow) for source in query.sources)
    )
    join, shape = settings.join, None
    if isinstance(join.tree, GivenTree):
        shape = parse_shape(join.tree.text, query) if len(query.sources) > 1 else None
        if not possible:
            raise SettingError(
                f"query {query.name} cannot run as a tree",
                hint="Trees are for three or more sources without PARTITION BY windows, "
                "joins that retract nothing, algorithm and expiry 'auto'",
            )
    given = OrderSources(join.order, None, lambda _a, _b: True)
    return ChoiceLimits(
        orders=tuple(choose_orders(query, given, Algorithm.EAGER)) if join.order else None,
        memory=join.index_memory,
        scan_allowed=join.method is None and not join.index and join.buckets is None,
        tree=shape,
        tree_allowed=possible
        and join.tree is TreeChoice.AUTO
        and join.method is not JoinMethod.NESTED_LOOP
        and join.index_memory is None,
    )


def weighed(settings: Settings, costs: UnitCosts) -> UnitCosts:
    """Return the costs by which to choose under the settings."""
    return replace(costs, scanned=_NEVER_SCAN) if settings.join.method is JoinMethod.HASH else costs
