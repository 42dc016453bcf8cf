"""From a column of a node down to the streams: by what to spread them so that equal values of the column meet in one partition.

A column is *traced* through the nodes below it: a select list puts an expression in its place, a grouping passes on what is made of
its keys, both sides of a set operator have it. At a leaf it is an expression over one stream, and the sources of that leaf which
an equality ties to it are spread along; the others go everywhere. Where FROM has several sub-selects, one is traced, and those that
an equality ties to the column too; the others are computed whole in every partition.

Sound because the home of a row is a function of the value: expressions of the same type are coded the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

import pyarrow as pa

from muntin.plan.join import Code, CodeKind
from muntin.plan.pipeline import (
    Combine,
    Distinct,
    GroupBy,
    Leaf,
    Node,
    SetOperation,
    SetOperator,
    Stored,
)
from muntin.plan.query import ColumnRef, Comparison, Expression, OutputColumn, Query, quote
from muntin.planner.codes import code_kind
from muntin.planner.distribution import home_keys, over_first

MOST = 16
"""Ways that are looked at for each node."""

_NAMES = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")


@dataclass(frozen=True)
class Spread:
    """The sources that are spread, by leaf and place, each with its key; None: by whatever its stream is. Others go everywhere."""

    keys: Mapping[tuple[str, int], Code | None]
    homes: Mapping[str, Code]
    """The keys of streams."""

    def with_(self, other: Spread) -> Spread | None:
        """Both, of different leaves, unless they want a stream spread by different keys."""
        if any(other.homes.get(stream, key) != key for stream, key in self.homes.items()):
            return None
        return Spread({**self.keys, **other.keys}, {**self.homes, **other.homes})


NOTHING = Spread({}, {})


def together(alternatives: Iterable[Sequence[Spread]]) -> list[Spread]:
    """The ways to have one of each, as far as they go together."""
    found = [NOTHING]
    for some in alternatives:
        both = (one.with_(other) for one, other in product(found, some))
        found = list(islice((spread for spread in both if spread is not None), MOST))
    return found


def ways(node: Node) -> list[Spread]:
    """The ways to spread the streams below a node so that every partition computes a part of its rows, and all have them once."""
    match node:
        case Leaf(query):
            streams = [place for place, source in enumerate(query.sources) if not source.stored]
            tied = home_keys(query)[: MOST // 2]
            return [
                *(_of_leaf(query, keys) for keys in tied),
                *(_of_leaf(query, {place: None}) for place in streams[: MOST // 2]),
            ]
        case GroupBy(child, keys):
            return _first(ways_by(child, column_of(child, place)) for place in range(keys))
        case SetOperation(SetOperator.UNION_ALL, left, right):
            return together([ways(left), ways(right)])
        case SetOperation() | Distinct():
            return _first(
                ways_by(node, column_of(node, place)) for place in range(len(node.schema))
            )
        case Combine((child,)):
            return ways(child)
        case Combine():
            return _of_combine(node)
        case Stored():
            return []


def ways_by(node: Node, column: Expression | None, kind: CodeKind | None = None) -> list[Spread]:
    """The ways of :func:`ways` in which rows with equal values of an expression over the node's columns are in one partition."""
    if column is None:
        return []
    kind = kind or code_kind(column.type, column.type, "=")
    if kind is None:
        return []
    match node:
        case Leaf(query):
            return _of_leaf_by(query, _over(column, query.select), kind)
        case GroupBy(child, keys, _, _, select):
            below = _over(column, select)
            names = set(child.schema.names[:keys])
            if (
                below is None
                or not below.references
                or any(reference.column not in names for reference in below.references)
            ):
                return []
            return ways_by(child, below, kind)
        case Distinct(child):
            return ways_by(child, column, kind)
        case SetOperation(_, left, right):
            return together(
                [ways_by(left, column, kind), ways_by(right, _renamed(column, left, right), kind)]
            )
        case Combine(_, _, select):
            below = _over(column, select)
            if below is None or len(below.sources) != 1:
                return []
            return (
                ways_by(node.inputs[0], below, kind)
                if len(node.inputs) == 1
                else _of_combine_by(node, below, kind)
            )
        case Stored():
            return []


def _first(found: Iterable[list[Spread]]) -> list[Spread]:
    return [spread for some in found for spread in some][:MOST]


# -- leaves ---------------------------------------------------------------------------------------


def _of_leaf(query: Query, keys: Mapping[int, Code | None]) -> Spread:
    homes = {query.sources[place].relation: key for place, key in keys.items() if key is not None}
    return Spread({(query.name, place): key for place, key in keys.items()}, homes)


def _of_leaf_by(query: Query, value: Expression | None, kind: CodeKind) -> list[Spread]:
    if value is None or len(value.sources) != 1:
        return []
    (place,) = value.sources
    if query.sources[place].stored:
        return []
    code = over_first(place, Code(value, kind))
    return [
        *(_of_leaf(query, keys) for keys in home_keys(query) if keys.get(place) == code),
        _of_leaf(query, {place: code}),
    ]


# -- several entries of FROM ----------------------------------------------------------------------


def _of_combine(node: Combine) -> list[Spread]:
    """By an equality between two inputs, or one input in parts and the others whole."""
    found: list[Spread] = []
    for comparison in _equalities(node):
        kind = code_kind(comparison.left.type, comparison.right.type, "=")
        sides = (comparison.left, comparison.right)
        found += (
            together(
                [ways_by(node.inputs[min(side.sources)], _moved(side), kind) for side in sides]
            )
            if kind
            else []
        )
    return _first([found, *(ways(child) for child in node.inputs)])


def _of_combine_by(node: Combine, value: Expression, kind: CodeKind) -> list[Spread]:
    """By an expression over one input: others that an equality ties to it are spread along, the rest is whole everywhere."""
    (place,) = value.sources
    alone = ways_by(node.inputs[place], _moved(value), kind)
    found: list[Spread] = []
    for comparison in _equalities(node):
        for one, other in (
            (comparison.left, comparison.right),
            (comparison.right, comparison.left),
        ):
            if one.sql == value.sql and code_kind(one.type, other.type, "=") is kind:
                found += together(
                    [alone, ways_by(node.inputs[min(other.sources)], _moved(other), kind)]
                )
    return [*found, *alone][:MOST]


def _equalities(node: Combine) -> list[Comparison]:
    """The conditions that an expression over one input equals one over another."""
    found = [predicate.comparison for predicate in node.predicates if predicate.comparison]
    return [
        comparison
        for comparison in found
        if comparison.operator == "="
        and len(comparison.left.sources) == len(comparison.right.sources) == 1
        and comparison.left.sources != comparison.right.sources
    ]


# -- expressions ----------------------------------------------------------------------------------


def column_of(node: Node, place: int) -> Expression | None:
    """A column of a node as an expression; None where another has its name."""
    name = node.schema.names[place]
    return plain(node.schema.field(place)) if node.schema.names.count(name) == 1 else None


def plain(column: pa.Field) -> Expression:
    """A column of a node as an expression over it."""
    reference = ColumnRef(0, column.name)
    return Expression(quote(reference.flat), (reference,), column.type)


def _over(column: Expression, select: Sequence[OutputColumn]) -> Expression | None:
    """An expression over the columns of a select list as one over what the list is over; None where names are not clear."""
    names = [output.name for output in select]
    if any(names.count(reference.column) != 1 for reference in column.references):
        return None
    meant = {ColumnRef(0, output.name).flat: output.expression for output in select}
    if column.column is not None:
        return meant[column.column.flat]
    # A value that cannot be computed is NULL on its way up, see Evaluator; here it must be so inside.
    texts = {
        flat: inner.sql if inner.column else f"TRY({inner.sql})" for flat, inner in meant.items()
    }
    references = tuple(
        dict.fromkeys(ref for outer in column.references for ref in meant[outer.flat].references)
    )
    return Expression(_replaced(column.sql, texts), references, column.type)


def _renamed(column: Expression, left: Node, right: Node) -> Expression | None:
    """An expression over the left input of a set operator as one over the right, whose columns have other names."""
    places = [left.schema.names.index(reference.column) for reference in column.references]
    renamed = [right.schema.names[place] for place in places]
    if any(right.schema.names.count(name) != 1 for name in renamed):
        return None
    texts = {
        ref.flat: quote(ColumnRef(0, name).flat)
        for ref, name in zip(column.references, renamed, strict=True)
    }
    return Expression(
        _replaced(column.sql, texts), tuple(ColumnRef(0, name) for name in renamed), column.type
    )


def _moved(column: Expression) -> Expression:
    """An expression over one input as if that were the first."""
    texts = {
        reference.flat: quote(ColumnRef(0, reference.column).flat)
        for reference in column.references
    }
    return Expression(
        _replaced(column.sql, texts),
        tuple(ColumnRef(0, ref.column) for ref in column.references),
        column.type,
    )


def _replaced(sql: str, texts: Mapping[str, str]) -> str:
    """SQL with other texts in the place of columns; what stands in quotes of a text is left alone."""

    def put(found: re.Match[str]) -> str:
        name = found.group().strip('"').replace('""', '"')
        return texts.get(name, found.group()) if found.group().startswith('"') else found.group()

    return _NAMES.sub(put, sql)
