"""Rows set aside in the checkpoint for a new dataflow, which starts with what earlier queries hold.

Safe under failures: the rows are written before the change that names them, and removed only after
the first batch in which the dataflow runs is complete. From then on they are part of the partition
batches that the checkpoint keeps. Rows whose change was never written belong to nobody and are
removed at the next start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from muntin.runtime.codec import decode, encode
from muntin.spark.exchange.deployment import Deployment, PlacedQuery
from muntin.spark.exchange.messages import Part, from_blob, to_blob
from muntin.spark.exchange.packer import Packer
from muntin.spark.storage import Storage

HeldRows = Mapping[tuple[str, str], Sequence[pa.Table]]
"""Rows by dataflow and stream, one table per partition."""

_KIND = "carried rows"


@dataclass(frozen=True)
class _CarriedRows:
    stream: str
    rows: bytes


def set_aside(storage: Storage, dataflow: str, held: HeldRows) -> bool:
    """Write, by stream, the rows of the dataflow that holds most of it; return if any."""
    most: dict[str, tuple[int, pa.Table]] = {}
    for (_, stream), tables in held.items():
        together = pa.concat_tables(tables)
        if len(together) > most.get(stream, (0, None))[0]:
            most[stream] = (len(together), together)
    for number, (stream, (_, table)) in enumerate(most.items()):
        content = encode(_CarriedRows(stream, to_blob(table)), _KIND)
        storage.put(f"{dataflow}/{number}.rows", content)
    return bool(most)


def carried_parts(
    deployment: Deployment, epochs: range, partition: int, storage: Storage
) -> tuple[tuple[str, Part], ...]:
    """Return a partition's part of the rows for the dataflows that the changes of ``epochs`` open.

    Each part comes with the name of its dataflow.
    """
    opened = {
        change.dataflow
        for change in deployment.changes[epochs.start : epochs.stop]
        if change.carried
    }
    found = []
    for placed in _first_of(deployment, opened):
        for file in storage.names(placed.dataflow):
            name = f"{placed.dataflow}/{file}"
            kept = decode(storage.get(name), _KIND, _CarriedRows, storage.where(name))
            route = placed.partitioning.route(kept.stream)
            assert route is not None, "only rows of its streams were set aside"
            part = Packer(deployment, kept.stream).part_of(
                partition, route, placed.partitioning_number, from_blob(kept.rows)
            )
            if part is not None:
                found.append((placed.dataflow, part))
    return tuple(found)


def remove_carried(deployment: Deployment, batch: int, storage: Storage) -> None:
    """Remove the rows of dataflows that were opened up to a complete batch."""
    done = {
        change.dataflow for change in deployment.changes if change.carried and change.batch <= batch
    }
    if done:
        storage.delete([name for name in storage.tree() if name.partition("/")[0] in done])


def remove_unclaimed(deployment: Deployment, storage: Storage) -> None:
    """Remove rows whose change was never written because the process was killed before."""
    known = {change.dataflow for change in deployment.changes if change.carried}
    storage.delete([name for name in storage.tree() if name.partition("/")[0] not in known])


def _first_of(deployment: Deployment, dataflows: set[str]) -> Iterable[PlacedQuery]:
    """Return one query of each of some dataflows."""
    return {
        placed.dataflow: placed for placed in deployment.placed() if placed.dataflow in dataflows
    }.values()
