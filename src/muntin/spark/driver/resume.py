"""Start a run from its checkpoint: what was stored, plus what has been declared differently since.

Safe order: first every check that can refuse the start, then the number of partitions, then the
deployment, and last the sinks, whose claim deletes the output of replaced queries. A process killed
before the deployment is written leaves a checkpoint that the next start treats in the same way. One
killed after it leaves replaced queries with new incarnations and folders that name the old ones as
owners: the next start deletes that output if it replaces the queries too, and is refused otherwise.
No query is ever resumed over output that is partly deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from muntin.spark.driver.engine_parts import EngineParts
from muntin.spark.driver.query_changes import PendingChange, exports, settled
from muntin.spark.driver.rescale import rescale
from muntin.spark.driver.resume_plan import ResumePlan
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.partition.offline_state import rows_in_checkpoint
from muntin.spark.sink_ownership import SinkOwner, occupied
from muntin.spark.sinks import MemorySink, Sink

_log = logging.getLogger("muntin.spark")


def resume(parts: EngineParts, declared: Deployment) -> tuple[str, Deployment]:
    """Return the run and the deployment to resume with; it is in the checkpoint then.

    Queries added, dropped and replaced since the last run are in force from the next batch on.
    """
    checkpoint, replacement = parts.checkpoint, parts.state.replacement
    found = checkpoint.resume(declared, frozenset(parts.state.dropped), replacement)
    checkpoint.logs.check_intact()
    kept = [query for query in found.deployment.in_force() if query.name not in found.dropped]
    claims = claims_of(parts, found.run, [*kept, *found.added])
    check_sinks(parts, claims)
    if found.begins:
        checkpoint.clear()
    rescale(checkpoint, found.deployment, parts.writer)
    parts.changes.clear()
    deployment = _changed(parts, found)
    checkpoint.write(found.run, deployment)
    for sink, owner in claims:
        # Memory that is not replaced keeps its results even if everything may be deleted.
        restarts = replacement.restarts(owner.query)
        allowed = replacement.allows(owner.query) and sink.place() is not None
        sink.claim(owner, replace=restarts or allowed)
    registered = parts.registry.queries
    parts.writer.resumed = {
        registered[query.name.casefold()].deployed.incarnation: query.incarnation
        for query in (*kept, *found.added)
    }
    parts.state.dropped.clear()
    parts.state.replacement = replacement.finished()
    _report(parts, found)
    return found.run, deployment


def owner_of(parts: EngineParts, run: str, query: DeployedQuery) -> SinkOwner:
    """Return a query of a run as the owner of the folder of its sink."""
    return SinkOwner(run, query.name, query.incarnation, parts.checkpoint.name)


def _changed(parts: EngineParts, found: ResumePlan) -> Deployment:
    """Return the deployment without the dropped queries and with the added ones.

    All are dropped first: a query that starts again finds the rows that others hold, as a new one
    does, and none that only its earlier self held.
    """
    checkpoint, deployment = parts.checkpoint, found.deployment
    changes = [PendingChange(dropped=name) for name in found.dropped]
    changes += [PendingChange(added=query) for query in found.added]
    last = checkpoint.last_batch()
    for change in changes:
        needed = exports(deployment, change.added) if change.added else ()
        held = (
            rows_in_checkpoint(checkpoint.storage, checkpoint.manifests.state, deployment, needed)
            if needed and last >= 0
            else {}
        )
        deployment = settled(deployment, change, last + 1, held, checkpoint.tasks.carried)
    return deployment


def claims_of(
    parts: EngineParts, run: str, queries: Sequence[DeployedQuery]
) -> list[tuple[Sink, SinkOwner]]:
    """Return the sinks of queries of a run, each with the owner that claims it."""
    registered = parts.registry.queries
    return [
        (registered[query.name.casefold()].sink, owner_of(parts, run, query)) for query in queries
    ]


def check_sinks(parts: EngineParts, claims: Sequence[tuple[Sink, SinkOwner]]) -> None:
    """Raise if the folder of a sink holds output of others that may not be deleted."""
    replacement = parts.state.replacement
    obstacles = {}
    for sink, owner in claims:
        place = sink.place()
        if place is not None and not replacement.allows(owner.query):
            obstacles[owner.query] = place.obstacle(owner)
    obstacles = {query: obstacle for query, obstacle in obstacles.items() if obstacle}
    if obstacles:
        raise occupied("; ".join(obstacles.values()), replacement.remedy(obstacles))


def _report(parts: EngineParts, found: ResumePlan) -> None:
    """Log which queries have started again, and why."""
    for name, changes in found.replaced.items():
        _log.info(
            "query %s is replaced (%s): it starts again, and %s",
            name,
            f"it has changed: {changes}" if changes else "it has not changed, but was named",
            "its earlier output was deleted"
            if deletes_output(parts, name)
            else "what its sink received before remains there",
        )


def deletes_output(parts: EngineParts, query: str) -> bool:
    """Return whether the earlier output of a query is deleted when it is replaced."""
    sink = parts.registry.queries[query.casefold()].sink
    return sink.place() is not None or isinstance(sink, MemorySink)
