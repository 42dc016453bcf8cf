"""Queries added and dropped: which lane a new query joins, and the rows with which a lane begins that is opened for it.

A new query finds the rows that the queries before it hold, as in process. Where queries that are spread alike hold as much as any
other, it joins their lane. Otherwise it opens one: partitions tell what they hold (see :mod:`muntin.spark.exchange.controls`), those
rows are put aside in the checkpoint, and in the batch from which on the change is in force every partition takes its part of them.
"""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from muntin.spark.deployment import DeployedQuery, Deployment, PlacedQuery, QueryChange
from muntin.spark.exchange.codec import decode, encode
from muntin.spark.exchange.controls import ControlRow
from muntin.spark.exchange.frames import read_file, write_file, writing
from muntin.spark.exchange.messages import Part, from_blob, to_blob
from muntin.spark.exchange.packer import Packer
from muntin.spark.partition.partition import Reach, reach_into

Held = Mapping[tuple[str, str], Sequence[pa.Table]]
"""Rows by lane and stream, a table for each partition."""


_KIND = "rows put aside"


@dataclass(frozen=True)
class _PutAside:
    stream: str
    rows: bytes


@dataclass
class PendingChange:
    """A query to be added or dropped; ``done`` when it is settled from which batch on."""

    added: DeployedQuery | None = None
    dropped: str | None = None
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def about(self) -> str:
        """Return words for errors."""
        return f"query {self.added.name if self.added else self.dropped}"

    def after(self, program: Deployment) -> Deployment:
        """The program as it would be with it; where, is settled later."""
        return replace(
            program,
            changes=(
                *program.changes,
                QueryChange(0, self.added, self.dropped, self.name if self.added else ""),
            ),
        )

    def control(self, program: Deployment) -> ControlRow:
        """The control row that announces it under a program."""
        return ControlRow(self.name, () if self.added is None else exports(program, self.added))


def exports(program: Deployment, added: DeployedQuery) -> tuple[tuple[str, str], ...]:
    """The lanes and streams whose rows a new query needs to begin with; none where it joins a lane."""
    lane, others = _lanes(program, added)
    return () if lane is not None else tuple(others)


def settled(
    program: Deployment, wanted: PendingChange, batch: int, held: Held, folder: Path
) -> Deployment:
    """The program with a change in force from a batch on; rows with which it begins are put aside in a folder."""
    if wanted.added is None:
        return replace(
            program, changes=(*program.changes, QueryChange(batch, dropped=wanted.dropped))
        )
    lane, _ = _lanes(program, wanted.added)
    carried = lane is None and _put_aside(folder / wanted.name, held)
    change = QueryChange(batch, wanted.added, None, lane or wanted.name, carried)
    return replace(program, changes=(*program.changes, change))


def _lanes(
    program: Deployment, added: DeployedQuery
) -> tuple[str | None, dict[tuple[str, str], Reach]]:
    """The lane that a query can join, if there is one, and how far every lane reaches into the streams of the query."""
    *before, query = PendingChange(added).after(program).placed()
    reach: dict[tuple[str, str], Reach] = {}
    alike: dict[str, None] = {}
    for place in program.active(len(program.changes)):
        placed = before[place]
        if placed.partitioning_number == query.partitioning_number:
            alike[placed.dataflow] = None
        for stream in set(placed.streams) & set(query.streams):
            key = (placed.dataflow, stream)
            reach[key] = reach_into(stream, placed, reach.get(key, Reach()))
    joined = (
        lane
        for lane in alike
        if all(reach[lane, stream].covers(other) for (_, stream), other in reach.items())
    )
    return next(joined, None), reach


def _put_aside(folder: Path, held: Held) -> bool:
    """Write, for each stream, the rows of the lane that holds most of it; whether there are any."""
    most: dict[str, tuple[int, pa.Table]] = {}
    for (_, stream), tables in held.items():
        whole = pa.concat_tables(tables)
        if len(whole) > most.get(stream, (0, None))[0]:
            most[stream] = (len(whole), whole)
    for number, (stream, (_, table)) in enumerate(most.items()):
        with writing(folder):
            write_file(folder / f"{number}.rows", encode(_PutAside(stream, to_blob(table)), _KIND))
    return bool(most)


def brought(
    program: Deployment, epochs: range, partition: int, folder: Path
) -> tuple[tuple[str, Part], ...]:
    """What a partition gets of the rows that were put aside for lanes which the changes of some epochs open, with the lanes' names."""
    opened = {
        change.dataflow for change in program.changes[epochs.start : epochs.stop] if change.carried
    }
    found = []
    for placed in _first_of(program, opened):
        for path in sorted((folder / placed.dataflow).glob("*.rows")):
            kept = decode(read_file(path), _KIND, _PutAside, str(path))
            route = placed.partitioning.route(kept.stream)
            assert route is not None, "only rows of its streams were put aside"
            part = Packer(program, kept.stream).part_of(
                partition, route, placed.partitioning_number, from_blob(kept.rows)
            )
            if part is not None:
                found.append((placed.dataflow, part))
    return tuple(found)


def forget_brought(program: Deployment, batch: int, folder: Path) -> None:
    """Remove the rows of lanes that were opened up to a batch, once that is complete: they are in the shares then."""
    for change in program.changes if folder.is_dir() else ():
        if change.carried and change.batch <= batch:
            shutil.rmtree(folder / change.dataflow, ignore_errors=True)


def forget_unknown(program: Deployment, folder: Path) -> None:
    """Remove rows that were put aside for changes that never came to be: the process was killed before it wrote them down."""
    known = {change.dataflow for change in program.changes if change.carried}
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in known:
            shutil.rmtree(path, ignore_errors=True)


def _first_of(program: Deployment, lanes: set[str]) -> Iterable[PlacedQuery]:
    """For each of some lanes a query of it."""
    return {
        placed.dataflow: placed for placed in program.placed() if placed.dataflow in lanes
    }.values()
