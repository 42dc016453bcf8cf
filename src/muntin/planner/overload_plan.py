"""Plans for overload [Mukherji11]: joins that can be limited are trees with probe budgets.

What cannot be limited runs as without ``overload = 'adapt'``, and ``explain`` says why.
"""

from __future__ import annotations

from collections.abc import Sequence

from muntin.model.settings import (
    Algorithm,
    Expiry,
    Freshness,
    OverloadMode,
    Settings,
    TreeChoice,
)
from muntin.model.window import PartitionedWindow, TimeWindow, window_size
from muntin.plan.probe_limits import Limiting
from muntin.plan.query import Emit, Query
from muntin.planner.join_graph import JoinGraph
from muntin.planner.strategies import choose_strategy, retracts
from muntin.planner.tree_choice import TreeShape, best_tree, linear_shape
from muntin.planner.unit_costs import UnitCosts


def is_adapting(settings: Settings) -> bool:
    """Return whether joins are to be limited."""
    return settings.overload.mode is OverloadMode.ADAPT


def not_limited(query: Query, settings: Settings, algorithm: Algorithm) -> str:
    """Return the reason why the join of a query cannot be limited; empty if it can."""
    expiry = settings.expiry.policy or Expiry.OWN
    if len(query.sources) < 2:
        return "one source has nothing to join with"
    if any(isinstance(source.window, PartitionedWindow) for source in query.sources):
        return "a window that counts rows by partition releases rows out of arrival order"
    if any(
        isinstance(each.window, TimeWindow) and each.window.is_landmark for each in query.sources
    ):
        return "rows never leave a landmark window, so no freshness bounds the work"
    if retracts(query, settings):
        return f"the join retracts what leaves ({choose_strategy(query, settings)[1]})"
    if algorithm is not Algorithm.EAGER:
        return f"the algorithm is {algorithm}"
    if expiry is not Expiry.OWN:
        return f"expiry is {expiry}"
    if settings.join.tree is TreeChoice.OFF:
        return "trees are off"
    if settings.overload.state_rows and query.emit is Emit.CHANGES:
        return (
            "under state_rows results may have ended before they are made, and cannot be retracted"
        )
    return ""


def fresh_sizes(query: Query) -> tuple[int, ...]:
    """Return the largest age of each source's rows in a result, in microseconds or rows.

    FRESHNESS, or the window; 0 for tables.
    """
    given = dict(query.freshness)
    return tuple(
        window_size(given.get(place, source.window)) for place, source in enumerate(query.sources)
    )


def plan_limiting(query: Query, settings: Settings) -> Limiting:
    """Return the plan by which a query's join is limited."""
    return Limiting(
        period=settings.overload.period,
        freshness=fresh_sizes(query),
        choice=settings.overload.probe_choice,
        seed=settings.overload.probe_seed,
        state_rows=settings.overload.state_rows,
        enforce=settings.overload.freshness is Freshness.ENFORCE,
    )


def choose_shape(
    order: Sequence[int], graph: JoinGraph | None, costs: UnitCosts
) -> tuple[TreeShape, str]:
    """Return the tree to limit, and why this one.

    The cheapest, or one source after the other along ``order`` where nothing is known.
    """
    if len(order) == 2:
        return (0, 1), "two sources have no other"
    found = best_tree(graph, costs) if graph is not None else None
    if found is not None:
        return found.shape, "it is predicted to be the cheapest"
    why = (
        "too many sources to look at all trees"
        if graph is not None
        else "nothing is known of the streams"
    )
    return linear_shape(
        order
    ), f"{why}, so sources are joined one after the other along the conditions"
