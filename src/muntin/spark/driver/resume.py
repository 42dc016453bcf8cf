"""Start a run from its checkpoint: what was stored, plus what has been declared differently since.

Safe order: first every check that can refuse the start, then the sinks, whose claim deletes output
only if the user allows it, then the number of partitions, and last the deployment. A process killed
in between leaves a checkpoint that the next start treats in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable

from muntin.spark.driver.engine_parts import EngineParts
from muntin.spark.driver.query_changes import PendingChange, exports, settled
from muntin.spark.driver.rescale import rescale
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.partition.offline_state import rows_in_checkpoint
from muntin.spark.sink_ownership import SinkOwner, occupied


def resume(
    parts: EngineParts, declared: Deployment, *, may_replace: bool
) -> tuple[str, Deployment]:
    """Return the run and the deployment to resume with; it is in the checkpoint then.

    Queries added and dropped since the last run are in force from the next batch on.
    """
    checkpoint = parts.checkpoint
    found = checkpoint.resume(declared, frozenset(parts.state.dropped), may_replace=may_replace)
    checkpoint.logs.check_intact()
    deployment = found.deployment
    kept = [query for query in deployment.in_force() if query.name not in found.dropped]
    _claim_sinks(parts, found.run, [*kept, *found.added], may_replace=may_replace)
    rescale(checkpoint, deployment, parts.writer)
    parts.changes.clear()
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
    checkpoint.write(found.run, deployment)
    parts.state.dropped.clear()
    return found.run, deployment


def owner_of(parts: EngineParts, run: str, query: DeployedQuery) -> SinkOwner:
    """Return a query of a run as the owner of the folder of its sink."""
    return SinkOwner(run, query.name, query.incarnation, str(parts.checkpoint.folder))


def _claim_sinks(
    parts: EngineParts, run: str, queries: Iterable[DeployedQuery], *, may_replace: bool
) -> None:
    """Claim the folders of all sinks, or none if a single one belongs to another run."""
    registered = parts.registry.queries
    claims = [
        (registered[query.name.casefold()].sink, owner_of(parts, run, query)) for query in queries
    ]
    for sink, owner in claims if not may_replace else ():
        place = sink.place()
        obstacle = place.obstacle(owner) if place is not None else ""
        if obstacle:
            raise occupied(obstacle)
    for sink, owner in claims:
        sink.claim(owner, replace=may_replace)
