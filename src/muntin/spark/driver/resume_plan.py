"""What becomes of the queries of a checkpoint when a run starts: resumed, dropped, added, or refused.

A query is resumed if it still has the same results: its text, apart from layout, and the settings on
which results depend. Its other settings may change freely, because partitions are rebuilt from the rows
in the checkpoint. A query that has changed starts anew and knows nothing of the rows it has emitted
before; in the same sink, nobody would ever retract those. That is refused, unless the user asks to
replace them. A query with EMIT CHANGES whose sink has changed starts anew as well, so that the new sink
never has a row retracted that it did not get.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from muntin.model.settings import Settings
from muntin.plan.query import Emit, Query
from muntin.planner.overload_plan import is_adapting
from muntin.spark.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.frames import CheckpointError
from muntin.sql.equivalence import meaning

_TRANSIENT = ("", "memory", "console")
"""Sinks that keep nothing of a query that is gone."""


@dataclass(frozen=True)
class Resumption:
    """The program to resume with, and the queries to drop and add before its first batch."""

    deployment: Deployment
    dropped: tuple[str, ...]
    added: tuple[DeployedQuery, ...]


def meaning_of(query: Query, settings: Settings) -> str:
    """Return what decides on the results of a query, as a short text that is equal for equal results."""
    return hashlib.sha256(
        json.dumps([meaning(query.text), _decisive(settings)]).encode()
    ).hexdigest()[:24]


def _decisive(settings: Settings) -> dict[str, str]:
    """Return the settings that decide which results there are, and in which batch."""
    changed = settings.changed()
    if is_adapting(settings):
        return changed
    # Lazy joins hold results back until the next re-evaluation; a switch would lose those or repeat them.
    return {
        name: changed[name]
        for name in ("algorithm", "reevaluation")
        if settings.join.reevaluation and name in changed
    }


def resumption(
    stored: Deployment, wanted: Deployment, anew: frozenset[str], *, may_replace: bool
) -> Resumption:
    """Compare the queries in force with those that are wanted.

    Parameters
    ----------
    stored : Deployment
        The program of the checkpoint, without changes that never came into force.
    wanted : Deployment
        The program as it was declared.
    anew : frozenset of str
        Queries that were dropped and declared again since: they start anew even if nothing has changed.
    may_replace : bool
        Whether a changed query may start anew in its old sink.

    Raises
    ------
    CheckpointError
        When a query has changed and its sink has not.
    """
    running = {query.name: query for query in in_force(stored)}
    asked = {query.name: query for query in wanted.queries}
    resumed = {}
    for name, query in asked.items():
        if name not in running or name in anew:
            continue
        if query.meaning != running[name].meaning:
            _check_replaceable(running[name], query, may_replace=may_replace)
        elif query.sink == running[name].sink or wanted.bind(query).emit is not Emit.CHANGES:
            resumed[name] = replace(query, incarnation=running[name].incarnation)
    dropped = tuple(name for name in running if name not in resumed)
    added = tuple(query for name, query in asked.items() if name not in resumed)
    return Resumption(_replaced(stored, running, resumed), dropped, added)


def _check_replaceable(before: DeployedQuery, query: DeployedQuery, *, may_replace: bool) -> None:
    if may_replace or query.sink != before.sink or query.sink in _TRANSIENT:
        return
    what = (
        "its text"
        if meaning(before.sql) != meaning(query.sql)
        else "a setting that decides on its results"
    )
    raise CheckpointError(
        f"query {query.name} has changed ({what}), and its sink ({query.sink}) holds results that nobody would retract",
        hint="Give it another name or sink, or delete its earlier output with SparkEngine(..., replace=True) or muntin run --replace",
    )


def _replaced(
    deployment: Deployment,
    running: Mapping[str, DeployedQuery],
    resumed: Mapping[str, DeployedQuery],
) -> Deployment:
    """Return the deployment with the settings that resumed queries have now."""
    now = {id(running[name]): query for name, query in resumed.items()}
    queries = tuple(now.get(id(query), query) for query in deployment.queries)
    changes = tuple(
        replace(change, added=now[id(change.added)]) if id(change.added) in now else change
        for change in deployment.changes
    )
    return replace(deployment, queries=queries, changes=changes)


def in_force(deployment: Deployment) -> list[DeployedQuery]:
    """Return the queries after all changes."""
    queries = list(deployment.queries)
    for change in deployment.changes:
        if change.added:
            queries.append(change.added)
        else:
            queries = [query for query in queries if query.name != change.dropped]
    return queries
