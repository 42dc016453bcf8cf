"""How the rows of a stream are partitioned so that every result of a join is made exactly once.

Rows with equal join keys meet in one partition, their *owner*: the sources that one equality ties
together are hashed by it, the others are broadcast, and stored tables are everywhere anyway. A
result is made by the owner of its hashed rows, which is one partition: their keys are equal.

Some streams are broadcast although they are hashed, each row marked as owned or not: those that the
query also reads in another role, and those whose windows count rows, since every row has to be
counted wherever it may push another one out. A hashed source takes only rows that the partition
owns (the predicate on :data:`OWN`), after its window has counted them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import pyarrow as pa

from muntin.model.window import PartitionedWindow, RowsWindow
from muntin.plan.column_rename import renamed
from muntin.plan.expression import ColumnRef, Predicate, column_expression
from muntin.plan.join import Code
from muntin.plan.nodes import Join, Scan
from muntin.planner.classes import CodeRef, equality_classes
from muntin.planner.predicates import SortedPredicates, sort_predicates

OWN = "_own"
"""The column that marks owned rows, in streams that are broadcast."""


@dataclass(frozen=True)
class Partitioning:
    """Where rows of a stream go: to the owner of ``key``, or to every partition.

    ``key`` is a code over source 0; None hashes the time. ``counted``: other partitions only count
    the rows, so only their times are sent there.
    """

    stream: str
    key: Code | None
    everywhere: bool = False
    counted: bool = False

    def __str__(self) -> str:
        by = (
            self.key.expression.sql.replace('"0.', f'"{self.stream}.').replace('"', "")
            if self.key
            else f"the time of {self.stream}"
        )
        if not self.everywhere:
            return f"by {by}"
        return f"{self.stream} {'counted' if self.counted else 'sent'} everywhere, owner by {by}"


def local_join(join: Join, routes: Iterable[Partitioning], hashed: AbstractSet[int]) -> Join:
    """Return a window join as a partition runs it; ``hashed`` sources take only owned rows."""
    everywhere = {route.stream for route in routes if route.everywhere}
    sources, owned = [], []
    for place, source in enumerate(join.scans):
        if source.stored or source.relation not in everywhere:
            sources.append(source)
            continue
        sources.append(replace(source, schema=marked(source.schema)))
        if place in hashed:
            owned.append(Predicate(column_expression(ColumnRef(place, OWN), pa.bool_())))
    return replace(join, sources=tuple(sources), where=(*join.where, *owned))


def marked(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a broadcast stream."""
    return schema.append(pa.field(OWN, pa.bool_()))


def owner_keys(join: Join) -> list[dict[int, Code]]:
    """Return, for each equality class, the sources that can be hashed by it, each with its key."""
    parts = sort_predicates(join)
    classes = sorted(set(equality_classes(parts.equalities).values()), key=sorted)
    found = [_consistent(join, parts, sorted(members)) for members in classes]
    return [keys for keys in found if keys]


def _consistent(join: Join, parts: SortedPredicates, members: list[CodeRef]) -> dict[int, Code]:
    """Return the streams of a class; of one that occurs twice, those with the first key."""
    keys: dict[int, Code] = {}
    owners: dict[str, Code] = {}
    for source, number in members:
        scan = join.scans[source]
        if scan.stored or source in keys:
            continue
        code = over_first(source, parts.codes.codes[source][number])
        if owners.setdefault(scan.relation, code) == code:
            keys[source] = code
    return keys


def over_first(source: int, code: Code) -> Code:
    """Return a code over source 0, so that codes of different sources can be compared."""
    references = code.expression.references
    assert all(ref.source == source for ref in references), "a code is over one source"
    moved = renamed(code.expression, {ref: ColumnRef(0, ref.column) for ref in references})
    return Code(moved, code.kind)


def routes_of(
    sources: Sequence[tuple[Scan, bool]], keys: Mapping[str, Code | None]
) -> tuple[Partitioning, ...]:
    """Return the routes of all streams, given for each source whether it is hashed.

    Streams without a key are hashed by time.
    """
    streams = dict.fromkeys(source.relation for source, _ in sources if not source.stored)
    return tuple(
        _route(
            stream,
            [(source, hashed) for source, hashed in sources if source.relation == stream],
            keys.get(stream),
        )
        for stream in streams
    )


def _route(stream: str, readers: Sequence[tuple[Scan, bool]], key: Code | None) -> Partitioning:
    elsewhere = not all(hashed for _, hashed in readers)
    counting = any(_counts_rows(source, key) for source, _ in readers)
    partitioned = any(isinstance(source.window, PartitionedWindow) for source, _ in readers)
    return Partitioning(
        stream,
        key,
        everywhere=elsewhere or counting,
        counted=counting and not elsewhere and not partitioned,
    )


def _counts_rows(source: Scan, key: Code | None) -> bool:
    """Return whether the window has to see rows of other owners.

    It does if it counts all rows, or rows of window partitions that the key splits.
    """
    if isinstance(source.window, PartitionedWindow):
        column = key.expression.column if key else None
        return column is None or column.column not in source.window.columns
    return isinstance(source.window, RowsWindow)


def owner_text(code: Code) -> str:
    """Return SQL for the integer that decides the owner of a hashed key.

    It is equal for equal keys, in every process and version.
    """
    text = code.expression.sql
    digest = f"('0x' || substr(md5(({text})::VARCHAR), 1, 15))::BIGINT"
    return f"CASE WHEN ({text}) IS NOT NULL THEN {digest} END"
