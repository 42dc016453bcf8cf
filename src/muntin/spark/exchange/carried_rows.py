"""Rows set aside in the checkpoint for a new dataflow, which starts with what earlier queries hold.

Safe under failures: the rows are written before the change that names them, and removed only after
the first batch in which the dataflow runs is complete. From then on they are part of the partition
batches that Spark keeps. Rows whose change was never written belong to nobody and are removed at
the next start.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from muntin.spark.exchange.codec import decode, encode
from muntin.spark.exchange.deployment import Deployment, PlacedQuery
from muntin.spark.exchange.frames import read_file, write_file, writing
from muntin.spark.exchange.messages import Part, from_blob, to_blob
from muntin.spark.exchange.packer import Packer

HeldRows = Mapping[tuple[str, str], Sequence[pa.Table]]
"""Rows by dataflow and stream, one table per partition."""

_KIND = "carried rows"


@dataclass(frozen=True)
class _CarriedRows:
    stream: str
    rows: bytes


def set_aside(folder: Path, held: HeldRows) -> bool:
    """Write, by stream, the rows of the dataflow that holds most of it; return if any."""
    most: dict[str, tuple[int, pa.Table]] = {}
    for (_, stream), tables in held.items():
        together = pa.concat_tables(tables)
        if len(together) > most.get(stream, (0, None))[0]:
            most[stream] = (len(together), together)
    for number, (stream, (_, table)) in enumerate(most.items()):
        content = encode(_CarriedRows(stream, to_blob(table)), _KIND)
        with writing(folder):
            write_file(folder / f"{number}.rows", content)
    return bool(most)


def carried_parts(
    deployment: Deployment, epochs: range, partition: int, folder: Path
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
        for path in sorted((folder / placed.dataflow).glob("*.rows")):
            kept = decode(read_file(path), _KIND, _CarriedRows, str(path))
            route = placed.partitioning.route(kept.stream)
            assert route is not None, "only rows of its streams were set aside"
            part = Packer(deployment, kept.stream).part_of(
                partition, route, placed.partitioning_number, from_blob(kept.rows)
            )
            if part is not None:
                found.append((placed.dataflow, part))
    return tuple(found)


def remove_carried(deployment: Deployment, batch: int, folder: Path) -> None:
    """Remove the rows of dataflows that were opened up to a complete batch."""
    for change in deployment.changes if folder.is_dir() else ():
        if change.carried and change.batch <= batch:
            shutil.rmtree(folder / change.dataflow, ignore_errors=True)


def remove_unclaimed(deployment: Deployment, folder: Path) -> None:
    """Remove rows whose change was never written because the process was killed before."""
    known = {change.dataflow for change in deployment.changes if change.carried}
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in known:
            shutil.rmtree(path, ignore_errors=True)


def _first_of(deployment: Deployment, dataflows: set[str]) -> Iterable[PlacedQuery]:
    """Return one query of each of some dataflows."""
    return {
        placed.dataflow: placed for placed in deployment.placed() if placed.dataflow in dataflows
    }.values()
