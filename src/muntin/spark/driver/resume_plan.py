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

from muntin.plan.query import Emit
from muntin.runtime.frames import CheckpointError
from muntin.spark.driver.query_meaning import changes_of
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.deployment_file import StoredDeployment
from muntin.spark.replacement import Replacement


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


def plan_resume(
    stored: StoredDeployment,
    declared: Deployment,
    restarted: frozenset[str],
    replacement: Replacement,
) -> ResumePlan:
    """Compare the queries in force with the declared ones.

    Parameters
    ----------
    stored : StoredDeployment
        The run and the deployment of the checkpoint, without changes that never came into force.
    declared : Deployment
        The deployment as it is declared now.
    restarted : frozenset of str
        Queries that were dropped and declared again since: they start again even if unchanged.
    replacement : Replacement
        The queries to replace.

    Raises
    ------
    CheckpointError
        When a query has changed and is not to be replaced.
    """
    running = {query.name: query for query in stored.deployment.in_force()}
    asked = {query.name: query for query in declared.queries}
    resumed, replaced, refused = {}, {}, {}
    for name, query in asked.items():
        if name not in running or name in restarted:
            continue
        changes = changes_of(running[name], query, declared)
        if replacement.restarts(name) or (changes and replacement.allows(name)):
            replaced[name] = changes
        elif changes:
            refused[name] = changes
        elif query.sink == running[name].sink or declared.bind(query).emit is not Emit.CHANGES:
            resumed[name] = replace(query, incarnation=running[name].incarnation)
    if refused:
        raise _refusal(refused, running, replacement)
    dropped = tuple(name for name in running if name not in resumed)
    added = tuple(query for name, query in asked.items() if name not in resumed)
    deployment = _with_settings(stored.deployment, running, resumed)
    return ResumePlan(stored.run, deployment, dropped, added, replaced)


def _refusal(
    refused: Mapping[str, str], running: Mapping[str, DeployedQuery], replacement: Replacement
) -> CheckpointError:
    facts = [
        f"query {name} has changed ({changes}), so it can continue neither its state nor its "
        f"results ({running[name].sink or 'no sink'})"
        for name, changes in refused.items()
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
