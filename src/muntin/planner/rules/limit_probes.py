"""Rule: under ``overload = 'adapt'`` the join is a tree whose half joins have probe budgets.

[Mukherji11]. Without overload the tree has the same results as any other plan. Under overload it
makes fewer results, never wrong ones. A join that cannot be limited runs as without the setting.
"""

from __future__ import annotations

from dataclasses import replace

from muntin.planner.draft import JoinDraft
from muntin.planner.orders import along_graph
from muntin.planner.overload_plan import choose_shape, is_adapting, not_limited, plan_limiting


def limit_probes(draft: JoinDraft) -> JoinDraft:
    """Limit the join if the settings ask for it and it can be limited."""
    query, settings = draft.query, draft.settings
    if not is_adapting(settings):
        return draft
    obstacle = not_limited(query, settings, draft.algorithm)
    if obstacle:
        reason = f"not limited under overload: {obstacle}"
        return replace(draft, limiting_reason=reason, limiting_obstacle=obstacle)
    limits, reason = draft.limits, "overload adapt: a tree, whose half joins have probe budgets"
    if limits.tree is None:
        order = along_graph(len(query.sources), 0, draft.connected)
        shape, why = choose_shape(order, draft.graph, draft.known.costs)
        limits, reason = replace(limits, tree=shape), f"{reason}; this one: {why}"
    return replace(
        draft, limits=limits, limiting=plan_limiting(query, settings), limiting_reason=reason
    )
