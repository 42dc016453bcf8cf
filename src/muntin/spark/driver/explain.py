"""The explanation of a query on Spark: its plan, its partitioning, and what it waits for."""

from __future__ import annotations

from dataclasses import replace

from muntin.engine.explain_pipeline import describe_any, describe_tree
from muntin.plan.description import Description, Fact
from muntin.plan.join import JoinPlan
from muntin.plan.query import Query
from muntin.plan.query_plan import QueryPlan
from muntin.planner.distribution import distribution_of
from muntin.runtime.stalled_stream import Waiting, describe_waiting


def described(
    query: Query,
    plan: JoinPlan | QueryPlan,
    partitions: int,
    *,
    waiting: Waiting | None,
    suspended: str | None,
) -> Description:
    """Return the description of a planned query.

    Parameters
    ----------
    waiting : Waiting, optional
        The stream that delays the query.
    suspended : str, optional
        The reason why it is suspended.
    """
    node = describe_any(plan)
    waits = () if waiting is None else (describe_waiting(waiting),)
    reasons = (Fact("suspended", suspended, f"suspended: {suspended}"),) if suspended else ()
    return replace(
        node,
        facts=(*node.facts, *reasons),
        children=(_partitioning(query, partitions), *node.children, *waits),
    )


def _partitioning(query: Query, partitions: int) -> Description:
    """Return which rows each partition gets, and what partitions and the global stage compute."""
    distribution = distribution_of(query)
    facts = [Fact(route.stream, str(route), str(route)) for route in distribution.routes]
    if not query.is_join:
        local = [describe_tree(part.root) for part in distribution.parts]
        facts.append(Fact("partitions", local, f"partitions compute {' and '.join(local)}"))
        above = describe_tree(distribution.last.root) if distribution.last else None
        text = (
            f"the global stage computes {above}"
            if above
            else "the results of the partitions are merged as they are"
        )
        facts.append(Fact("last_stage", above, text))
    return Description("spread", f"spread over {partitions} partitions", tuple(facts))
