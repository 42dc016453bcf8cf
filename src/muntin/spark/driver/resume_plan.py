"""Compare the queries of a checkpoint with the declared ones: resume, replace, drop, add or refuse.

A query is resumed if it still has the same results (see :mod:`muntin.spark.driver.query_meaning`).
Its other settings may change freely, because partitions are rebuilt from the rows in the
checkpoint.

Exactly-once hazard: a query that starts again has no record of the rows it emitted before, so
nothing would retract those in its sink. A changed query is therefore refused, unless the user asks
to replace it. A query that the user names is replaced even if it has not changed. A query with EMIT
CHANGES whose sink has changed starts again as well, so that the new sink never gets a retraction of
a row it does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from muntin.plan.query import Emit
from muntin.runtime.frames import CheckpointError
from muntin.spark.driver.query_meaning import changes_of
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.deployment_file import StoredDeployment
from muntin.spark.replacement import Replacement


class Action(StrEnum):
    """What a start does with a query."""

    KEEP = "keep"
    START = "start"
    RESTART = "restart"
    REPLACE = "replace"
    DROP = "drop"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Decision:
    """What a start does with a query, and why.

    ``query`` is as it is in force afterwards: what is kept has the incarnation that it had. What is
    dropped, or refused, is as it was. ``restart`` leaves earlier output where it is, ``replace``
    deletes it.
    """

    action: Action
    query: DeployedQuery
    reason: str = ""


@dataclass(frozen=True)
class ResumePlan:
    """The run and the deployment to resume with, and the queries to drop and add before a batch.

    ``replaced`` has the queries that start again as the user asked, and what has changed of them.
    If the run ``begins``, what is left of an earlier one in the checkpoint has to be deleted.
    """

    run: str
    deployment: Deployment
    dropped: tuple[str, ...] = ()
    added: tuple[DeployedQuery, ...] = ()
    replaced: Mapping[str, str] = field(default_factory=dict)
    begins: bool = False


def decide(
    before: Deployment,
    declared: Deployment,
    restarted: frozenset[str],
    replacement: Replacement,
) -> dict[str, Decision]:
    """Return what a start does with each query that is in force or declared, by name.

    Parameters
    ----------
    before : Deployment
        The deployment of the checkpoint, without changes that never came into force.
    declared : Deployment
        The deployment as it is declared now.
    restarted : frozenset of str
        Queries that were dropped and declared again since: they start again even if unchanged.
    replacement : Replacement
        The queries to replace.
    """
    running = {query.name: query for query in before.in_force()}
    found = {}
    for query in declared.queries:
        was = running.pop(query.name, None)
        if was is None:
            found[query.name] = Decision(Action.START, query)
        elif query.name in restarted:
            found[query.name] = Decision(Action.RESTART, query, "it was dropped and declared again")
        else:
            found[query.name] = _decision(was, query, declared, replacement)
    return found | {name: Decision(Action.DROP, query) for name, query in running.items()}


def _decision(
    was: DeployedQuery, query: DeployedQuery, declared: Deployment, replacement: Replacement
) -> Decision:
    """Return what a start does with a query that is in force and declared."""
    changes = changes_of(was, query, declared)
    if replacement.restarts(query.name) or (changes and replacement.allows(query.name)):
        return Decision(Action.REPLACE, query, changes)
    if changes:
        return Decision(Action.REFUSE, was, changes)
    if query.sink == was.sink or declared.bind(query).emit is not Emit.CHANGES:
        return Decision(Action.KEEP, replace(query, incarnation=was.incarnation))
    return Decision(
        Action.RESTART,
        query,
        f"its sink was {was.sink or 'none'}: a new one has none of the rows that EMIT CHANGES may "
        "retract",
    )


def plan_resume(
    stored: StoredDeployment,
    declared: Deployment,
    restarted: frozenset[str],
    replacement: Replacement,
) -> ResumePlan:
    """Return how to resume after what :func:`decide` returns.

    Raises
    ------
    CheckpointError
        When a query has changed and is not to be replaced.
    """
    before = stored.deployment
    decisions = decide(before, declared, restarted, replacement)
    refused = {name: one for name, one in decisions.items() if one.action is Action.REFUSE}
    if refused:
        raise refusal(refused, replacement)
    resumed = {name: one.query for name, one in decisions.items() if one.action is Action.KEEP}
    running = {query.name: query for query in before.in_force()}
    return ResumePlan(
        stored.run,
        _with_settings(before, running, resumed),
        dropped=tuple(name for name in running if name not in resumed),
        added=tuple(query for query in declared.queries if query.name not in resumed),
        replaced={
            name: one.reason for name, one in decisions.items() if one.action is Action.REPLACE
        },
    )


def refusal(refused: Mapping[str, Decision], replacement: Replacement) -> CheckpointError:
    """Return the error for queries that have changed and are not to be replaced."""
    facts = [
        f"query {name} has changed ({one.reason}), so it can continue neither its state nor its "
        f"results ({one.query.sink or 'no sink'})"
        for name, one in refused.items()
    ]
    them = "it" if len(refused) == 1 else "them"
    return CheckpointError(
        "; ".join(facts),
        hint=f"To start {them} again and delete the results, while the other queries continue: "
        f"{replacement.remedy(refused)}. To keep the results, give {them} another name and folder",
    )


def _with_settings(
    deployment: Deployment,
    running: Mapping[str, DeployedQuery],
    resumed: Mapping[str, DeployedQuery],
) -> Deployment:
    """Return the deployment with the current settings of resumed queries."""
    now = {id(running[name]): query for name, query in resumed.items()}
    queries = tuple(now.get(id(query), query) for query in deployment.queries)
    changes = tuple(
        replace(change, added=now[id(change.added)]) if id(change.added) in now else change
        for change in deployment.changes
    )
    return replace(deployment, queries=queries, changes=changes)
