"""Compare the queries of a checkpoint with the declared ones: resume, drop, add, or refuse.

A query is resumed if it still has the same results: the same text, apart from layout, and the same
settings on which results depend. Its other settings may change freely, because partitions are
rebuilt from the rows in the checkpoint.

Exactly-once hazard: a changed query starts again and has no record of the rows it emitted before,
so nothing would retract those in its sink. That is refused, unless the user asks to replace them. A
query with EMIT CHANGES whose sink has changed starts again as well, so that the new sink never gets
a retraction of a row it does not have.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from muntin.model.settings import Settings
from muntin.plan.query import Emit, Query
from muntin.planner.overload_plan import is_adapting
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.deployment_file import StoredDeployment
from muntin.spark.exchange.frames import CheckpointError
from muntin.sql.equivalence import meaning

_TRANSIENT = ("", "memory", "console")
"""Sinks that keep nothing of a dropped query."""


@dataclass(frozen=True)
class ResumePlan:
    """The run and the deployment to resume with, and the queries to drop and add before a batch."""

    run: str
    deployment: Deployment
    dropped: tuple[str, ...] = ()
    added: tuple[DeployedQuery, ...] = ()


def meaning_of(query: Query, settings: Settings) -> str:
    """Return a short text that is equal for queries with equal results."""
    return hashlib.sha256(
        json.dumps([meaning(query.text), _decisive(settings)]).encode()
    ).hexdigest()[:24]


def _decisive(settings: Settings) -> dict[str, str]:
    """Return the settings that determine the results and their batches."""
    changed = settings.changed()
    if is_adapting(settings):
        return changed
    # Lazy joins hold results back until the next re-evaluation; a switch would lose or repeat them.
    return {
        name: changed[name]
        for name in ("algorithm", "reevaluation")
        if settings.join.reevaluation and name in changed
    }


def plan_resume(
    stored: StoredDeployment, declared: Deployment, restarted: frozenset[str], *, may_replace: bool
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
    may_replace : bool
        Whether a changed query may start again in its old sink.

    Raises
    ------
    CheckpointError
        When a query has changed and its sink has not.
    """
    running = {query.name: query for query in stored.deployment.in_force()}
    asked = {query.name: query for query in declared.queries}
    resumed = {}
    for name, query in asked.items():
        if name not in running or name in restarted:
            continue
        if query.meaning != running[name].meaning:
            _check_replaceable(running[name], query, may_replace=may_replace)
        elif query.sink == running[name].sink or declared.bind(query).emit is not Emit.CHANGES:
            resumed[name] = replace(query, incarnation=running[name].incarnation)
    dropped = tuple(name for name in running if name not in resumed)
    added = tuple(query for name, query in asked.items() if name not in resumed)
    deployment = _with_settings(stored.deployment, running, resumed)
    return ResumePlan(stored.run, deployment, dropped, added)


def _check_replaceable(before: DeployedQuery, query: DeployedQuery, *, may_replace: bool) -> None:
    if may_replace or query.sink != before.sink or query.sink in _TRANSIENT:
        return
    what = (
        "its text"
        if meaning(before.sql) != meaning(query.sql)
        else "a setting that determines its results"
    )
    raise CheckpointError(
        f"query {query.name} has changed ({what}), and its sink ({query.sink}) holds results that "
        "nothing would retract",
        hint="Give it another name or sink, or delete its earlier output with "
        "SparkEngine(..., replace=True) or muntin run --replace",
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
