"""How the rows of a query are spread over partitions so that every result is made exactly once.

Rows with equal join keys meet in one partition, their *home*: the sources of the equality that covers most of them are spread by
it, the others go to every partition, and stored tables are everywhere anyway. A query without such an equality spreads its first
stream by time. A result is made in the home of its spread rows, which is one partition: their keys are equal.

Some streams go to every partition although they are spread, each row marked as at home there or not: those that the query also
reads in another role, and those whose windows count rows, since every row has to be counted wherever it may push another out.
A spread source takes only rows that are at home (the predicate on :data:`OWN`), after its window has counted them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import pyarrow as pa

from muntin.model.window import PartitionedWindow, RowsWindow
from muntin.plan.join import Code
from muntin.plan.query import ColumnRef, Expression, Predicate, Query, Source, quote
from muntin.planner.classes import Node, equality_classes
from muntin.planner.predicates import SortedPredicates, sort_predicates

OWN = "_own"
"""The column that marks rows at home, in streams that go everywhere."""


@dataclass(frozen=True)
class Route:
    """Where rows of a stream go: to the partition of ``key`` (a code over source 0; None: of their time), or everywhere.

    ``counted``: rows that are not at home are only counted there, so nothing but their time is sent.
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
        return f"{self.stream} {'counted' if self.counted else 'sent'} everywhere, at home by {by}"


@dataclass(frozen=True)
class Distribution:
    """The routes of a query's streams, and which of its sources take only rows that are at home."""

    routes: tuple[Route, ...]
    spread: frozenset[int]

    def route(self, stream: str) -> Route:
        """The route of a stream."""
        return next(route for route in self.routes if route.stream == stream)

    def parts(self, query: Query) -> tuple[Query, ...]:
        """The query as a partition runs it: over streams that have the mark where they go everywhere."""
        return (local_join(query, self.routes, self.spread),)

    @property
    def apart(self) -> bool:
        """Whether rows of different partitions are never equal: nobody has looked."""
        return False

    @property
    def last(self) -> None:
        """Nothing is left to do where the partitions' results come together."""


def local_join(query: Query, routes: Iterable[Route], spread: AbstractSet[int]) -> Query:
    """A join as a partition runs it; sources that are ``spread`` take only rows at home."""
    everywhere = {route.stream for route in routes if route.everywhere}
    sources, predicates = [], list(query.predicates)
    for place, source in enumerate(query.sources):
        if source.stored or source.relation not in everywhere:
            sources.append(source)
            continue
        sources.append(replace(source, schema=marked(source.schema)))
        if place in spread:
            reference = ColumnRef(place, OWN)
            predicates.append(
                Predicate(Expression(quote(reference.flat), (reference,), pa.bool_()))
            )
    return replace(query, sources=tuple(sources), predicates=tuple(predicates))


def marked(schema: pa.Schema) -> pa.Schema:
    """The schema of a stream that goes everywhere."""
    return schema.append(pa.field(OWN, pa.bool_()))


def distribute(query: Query) -> Distribution:
    """How to spread a join."""
    tied = home_keys(query)
    first = next(place for place, source in enumerate(query.sources) if not source.stored)
    keys: Mapping[int, Code | None] = max(tied, key=len) if tied else {first: None}
    homes = {query.sources[place].relation: key for place, key in keys.items()}
    return Distribution(
        routes_of([(source, place in keys) for place, source in enumerate(query.sources)], homes),
        frozenset(keys),
    )


def home_keys(query: Query) -> list[dict[int, Code]]:
    """For each equality class the sources that can be spread by it, each with the code that tells its home."""
    parts = sort_predicates(query)
    classes = sorted(set(equality_classes(parts.equalities).values()), key=sorted)
    found = [_consistent(query, parts, sorted(members)) for members in classes]
    return [keys for keys in found if keys]


def _consistent(query: Query, parts: SortedPredicates, members: list[Node]) -> dict[int, Code]:
    """The stream sources of a class; of a stream that occurs twice, those with the key that comes first."""
    keys: dict[int, Code] = {}
    homes: dict[str, Code] = {}
    for source, number in members:
        relation = query.sources[source]
        if relation.stored or source in keys:
            continue
        code = over_first(source, parts.codes.codes[source][number])
        if homes.setdefault(relation.relation, code) == code:
            keys[source] = code
    return keys


def over_first(source: int, code: Code) -> Code:
    """A code as if its source were the first one, so that codes of different sources can be compared."""
    sql = code.expression.sql
    references = []
    for reference in code.expression.references:
        moved = ColumnRef(0, reference.column)
        sql = sql.replace(quote(reference.flat), quote(moved.flat))
        references.append(moved)
    assert all(reference.source == source for reference in code.expression.references), (
        "a code is over one source"
    )
    return Code(Expression(sql, tuple(references), code.expression.type), code.kind)


def routes_of(
    sources: Sequence[tuple[Source, bool]], keys: Mapping[str, Code | None]
) -> tuple[Route, ...]:
    """The routes of all streams, given their sources, each with whether it is spread, and by what; streams without a key by time."""
    streams = dict.fromkeys(source.relation for source, _ in sources if not source.stored)
    return tuple(
        _route(
            stream,
            [(source, spread) for source, spread in sources if source.relation == stream],
            keys.get(stream),
        )
        for stream in streams
    )


def _route(stream: str, readers: Sequence[tuple[Source, bool]], key: Code | None) -> Route:
    elsewhere = not all(spread for _, spread in readers)
    counting = any(_counts_rows(source, key) for source, _ in readers)
    whole = any(isinstance(source.window, PartitionedWindow) for source, _ in readers)
    return Route(
        stream,
        key,
        everywhere=elsewhere or counting,
        counted=counting and not elsewhere and not whole,
    )


def _counts_rows(source: Source, key: Code | None) -> bool:
    """Whether the window has to see rows of other homes: it counts all rows, or rows of partitions that homes cut apart."""
    if isinstance(source.window, PartitionedWindow):
        column = key.expression.column if key else None
        return column is None or column.column not in source.window.columns
    return isinstance(source.window, RowsWindow)


def home_text(code: Code) -> str:
    """SQL for a whole number that decides the home of a hashed key: equal for equal keys, in every process and version."""
    text = code.expression.sql
    return f"CASE WHEN ({text}) IS NOT NULL THEN ('0x' || substr(md5(({text})::VARCHAR), 1, 15))::BIGINT END"
