"""The partitioning rule of every node: how to hash the streams below it so that it is *local*.

A node is local if every partition computes a part of its rows from the rows that it owns, and all
partitions together have each row once. A rule returns the ways to achieve that, and those ways in
which rows with equal values of an expression are in one partition. The expression is traced down:
a select list puts another expression in its place, a grouping passes on what is made of its keys,
both sides of a set operator have it. At a window join it is an expression over one stream; sources
that an equality ties to it are hashed too, the others are broadcast. Of several sub-selects in FROM
one is traced, and those that an equality ties to the column; the others are computed in full in
every partition.

Sound because the owner of a row is a function of the value: expressions of the same type are coded
in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any, NamedTuple

import pyarrow as pa

from muntin.plan.asof_join import AsofJoin
from muntin.plan.expression import Comparison, Expression
from muntin.plan.join import Code, CodeKind
from muntin.plan.node import Node
from muntin.plan.nodes import (
    Distinct,
    Exchange,
    GroupBy,
    Join,
    Project,
    Scan,
    SetOperation,
    SetOperator,
)
from muntin.plan.outer_inserts import OuterInserts
from muntin.plan.semi_join import KeyPair, SemiJoin
from muntin.plan.sessions import HIDDEN, SessionWindows
from muntin.plan.top_n import TopN
from muntin.plan.window_functions import WindowFunctions
from muntin.planner.codes import code_kind
from muntin.planner.column_lineage import below_select, column_of, on_right_side, over_one_input
from muntin.planner.partitioning import over_first, owner_keys

MOST = 16
"""Ways that are considered for each node."""


@dataclass(frozen=True)
class Spread:
    """The sources that are hashed, by window join and place, each with its key; others broadcast.

    A key of None stands for whatever key the stream has.
    """

    keys: Mapping[tuple[str, int], Code | None]
    streams: Mapping[str, Code]
    """The keys of streams."""

    def with_(self, other: Spread) -> Spread | None:
        """Return both, of different joins; None if they need different keys for one stream."""
        if any(other.streams.get(stream, key) != key for stream, key in self.streams.items()):
            return None
        return Spread({**self.keys, **other.keys}, {**self.streams, **other.streams})


NOTHING = Spread({}, {})


class PartitioningRule(NamedTuple):
    """How a node of one class can be made local.

    ``ways_by`` gets an expression over the node's columns and the kind of its codes. ``shows_key``
    tells whether a local node has the columns that decide the owner, so that rows of different
    partitions are never equal.
    """

    ways: Callable[[Any], list[Spread]]
    ways_by: Callable[[Any, Expression, CodeKind], list[Spread]]
    shows_key: Callable[[Any], bool] = lambda _node: False


def ways(node: Node) -> list[Spread]:
    """Return the ways to make a node local."""
    return PARTITIONING_RULES[type(node)].ways(node)


def ways_by(node: Node, column: Expression | None, kind: CodeKind | None = None) -> list[Spread]:
    """Return the ways in which rows with equal values of an expression are in one partition."""
    if column is None:
        return []
    kind = kind or code_kind(column.type, column.type, "=")
    if kind is None:
        return []
    return PARTITIONING_RULES[type(node)].ways_by(node, column, kind)


def shows_key(node: Node) -> bool:
    """Return whether rows of a local node that are in different partitions always differ."""
    return PARTITIONING_RULES[type(node)].shows_key(node)


def together(alternatives: Iterable[Sequence[Spread]]) -> list[Spread]:
    """Return the ways to have one of each, as far as they are compatible."""
    found = [NOTHING]
    for some in alternatives:
        both = (one.with_(other) for one, other in product(found, some))
        found = list(islice((spread for spread in both if spread is not None), MOST))
    return found


def _first(found: Iterable[list[Spread]]) -> list[Spread]:
    return [spread for some in found for spread in some][:MOST]


# -- joins -----------------------------------------------------------------------------------------


def _join_by(node: Join, column: Expression, kind: CodeKind) -> list[Spread]:
    value = below_select(column, node.select)
    if value is None or len(value.sources) != 1:
        return []
    by = _window_join_by if node.is_leaf else _join_of_inputs_by
    return by(node, value, kind)


def _window_join(node: Join) -> list[Spread]:
    """By an equality, or one stream alone by anything."""
    tied = owner_keys(node)
    tied = sorted(tied, key=len, reverse=True)[: MOST // 2] if len(tied) > MOST // 2 else tied
    streams = [place for place, source in enumerate(node.scans) if not source.stored]
    return [
        *(_hashed(node, keys) for keys in tied),
        *(_hashed(node, {place: None}) for place in streams[: MOST // 2]),
    ]


def _window_join_by(node: Join, value: Expression, kind: CodeKind) -> list[Spread]:
    (place,) = value.sources
    if node.scans[place].stored:
        return []
    code = over_first(place, Code(value, kind))
    return [
        *(_hashed(node, keys) for keys in owner_keys(node) if keys.get(place) == code),
        _hashed(node, {place: code}),
    ]


def _hashed(node: Join, keys: Mapping[int, Code | None]) -> Spread:
    streams = {node.scans[place].relation: key for place, key in keys.items() if key is not None}
    return Spread({(node.name, place): key for place, key in keys.items()}, streams)


def _join_of_inputs(node: Join) -> list[Spread]:
    """By an equality between two inputs, or one input in parts and the others in full."""
    found: list[Spread] = []
    for comparison in _equalities(node):
        kind = code_kind(comparison.left.type, comparison.right.type, "=")
        sides = (comparison.left, comparison.right)
        found += together(_by_side(node, side, kind) for side in sides) if kind else []
    return _first([found, *(ways(child) for child in node.sources)])


def _join_of_inputs_by(node: Join, value: Expression, kind: CodeKind) -> list[Spread]:
    """By an expression over one input; inputs that an equality ties to it are hashed along."""
    alone = _by_side(node, value, kind)
    found: list[Spread] = []
    for comparison in _equalities(node):
        sides = (comparison.left, comparison.right)
        for one, other in (sides, sides[::-1]):
            if one.sql == value.sql and code_kind(one.type, other.type, "=") is kind:
                found += together([alone, _by_side(node, other, kind)])
    return [*found, *alone][:MOST]


def _by_side(node: Join, side: Expression, kind: CodeKind) -> list[Spread]:
    return ways_by(node.sources[min(side.sources)], over_one_input(side), kind)


def _equalities(node: Join) -> list[Comparison]:
    """Return the conditions that an expression over one input equals one over another."""
    found = [predicate.comparison for predicate in node.predicates if predicate.comparison]
    return [
        comparison
        for comparison in found
        if comparison.operator == "="
        and len(comparison.left.sources) == len(comparison.right.sources) == 1
        and comparison.left.sources != comparison.right.sources
    ]


# -- operators -------------------------------------------------------------------------------------


def _project_by(node: Project, column: Expression, kind: CodeKind) -> list[Spread]:
    value = below_select(column, node.select)
    if value is None or len(value.sources) != 1:
        return []
    return ways_by(node.input, value, kind)


def _group_by(node: GroupBy) -> list[Spread]:
    """By one of the keys: then every group is in one partition."""
    return _first(ways_by(node.input, column_of(node.input, place)) for place in range(node.keys))


def _group_by_by(node: GroupBy, column: Expression, kind: CodeKind) -> list[Spread]:
    below = below_select(column, node.select)
    keys = set(node.input.schema.names[: node.keys])
    if below is None or not below.references:
        return []
    if any(reference.column not in keys for reference in below.references):
        return []
    return ways_by(node.input, below, kind)


def _group_by_shows_key(node: GroupBy) -> bool:
    """Return whether it shows all of its keys; the owner is a function of one of them."""
    shown = {column.expression.column.column for column in node.select if column.expression.column}
    return bool(node.keys) and set(node.input.schema.names[: node.keys]) <= shown


def _distinct(node: Distinct | SetOperation) -> list[Spread]:
    """By one of the columns: then equal rows are in one partition."""
    return _first(ways_by(node, column_of(node, place)) for place in range(len(node.schema)))


def _set_operation(node: SetOperation) -> list[Spread]:
    if node.operator is SetOperator.UNION_ALL:
        return together([ways(node.left), ways(node.right)])
    return _distinct(node)


def _semi_join(node: SemiJoin | AsofJoin) -> list[Spread]:
    """By a key, or the left input in parts and the right one in full."""
    found: list[Spread] = []
    for key in node.keys:
        kind = code_kind(key.left.type, key.right.type, "=")
        found += together([ways_by(node.left, key.left, kind), _right_of(node, key)])
    return _first([found, ways(node.left)])


def _semi_join_by(node: SemiJoin | AsofJoin, column: Expression, kind: CodeKind) -> list[Spread]:
    alone = ways_by(node.left, column, kind)
    found: list[Spread] = []
    for key in node.keys:
        if key.left.sql == column.sql and code_kind(key.left.type, key.right.type, "=") is kind:
            found += together([alone, _right_of(node, key)])
    return [*found, *alone][:MOST]


def _asof_join_by(node: AsofJoin, column: Expression, kind: CodeKind) -> list[Spread]:
    """Trace columns of the left input only: those of the right one may be NULL."""
    passed = {node.left.schema.names[place] for place in node.left_columns}
    if any(reference.column not in passed for reference in column.references):
        return []
    return _semi_join_by(node, column, kind)


def _right_of(node: SemiJoin | AsofJoin, key: KeyPair) -> list[Spread]:
    kind = code_kind(key.left.type, key.right.type, "=")
    return (
        ways_by(node.right, over_one_input(key.right), kind) if kind and key.right.sources else []
    )


def _outer_inserts(node: OuterInserts) -> list[Spread]:
    """Have all matches of a row in the partition of the row: there it knows whether it had one.

    The streams of a side are hashed in the same way below the side and below the matches.
    """
    found = together(map(ways, node.children))
    return [spread for spread in found if all(_meets(node, side, spread) for side in node.sides)]


def _meets(node: OuterInserts, side: Node, spread: Spread) -> bool:
    """Return whether the same streams of a side are hashed in both of its joins."""
    below, own = (
        _hashed_by_identity(node, node.matches, spread),
        _hashed_by_identity(node, side, spread),
    )
    return any(own.values()) and all(below[name] == hashed for name, hashed in own.items())


def _hashed_by_identity(node: OuterInserts, join: Node, spread: Spread) -> dict[str, bool]:
    """Return for each column that identifies rows whether its stream is hashed below a join."""
    assert isinstance(join, Join), "both are window joins"
    identity = set(node.matches.schema.names[node.shown :])
    return {
        column.name: (join.name, min(column.expression.sources)) in spread.keys
        for column in join.select
        if column.name in identity
    }


def _set_operation_by(node: SetOperation, column: Expression, kind: CodeKind) -> list[Spread]:
    right = on_right_side(column, node.left, node.right)
    return together([ways_by(node.left, column, kind), ways_by(node.right, right, kind)])


def _per_group(node: TopN | WindowFunctions) -> list[Spread]:
    """By one of the keys: then every group is in one partition."""
    return _first(ways_by(node.input, column_of(node.input, place)) for place in node.keys)


def _per_group_by(node: TopN | WindowFunctions, column: Expression, kind: CodeKind) -> list[Spread]:
    names = node.input.schema.names
    keys = {names[place] for place in node.keys}
    if not column.references or any(one.column not in keys for one in column.references):
        return []
    return ways_by(node.input, column, kind)


def _sessions(node: SessionWindows) -> list[Spread]:
    """By one of the keys: then every session is in one partition; without keys, all are in one."""
    if node.keys:
        return _first(ways_by(node.input, column_of(node.input, place)) for place in node.keys)
    time = column_of(node.input, len(node.input.schema) - HIDDEN)
    assert time is not None, "the hidden columns have names of their own"
    return ways_by(node.input, replace(time, sql=f"({time.sql} IS NULL)", type=pa.bool_()))


def _sessions_by(node: SessionWindows, column: Expression, kind: CodeKind) -> list[Spread]:
    names = node.input.schema.names
    keys = {names[place] for place in node.keys}
    if not column.references or any(one.column not in keys for one in column.references):
        return []
    return ways_by(node.input, column, kind)


_LEAF = PartitioningRule(lambda _node: [], lambda _node, _column, _kind: [])
"""Rows that are not partitioned, or that partitions have sent already."""

PARTITIONING_RULES: Mapping[type[Node], PartitioningRule] = {
    Scan: _LEAF,
    Exchange: _LEAF,
    Join: PartitioningRule(
        lambda node: _window_join(node) if node.is_leaf else _join_of_inputs(node), _join_by
    ),
    Project: PartitioningRule(lambda node: ways(node.input), _project_by),
    GroupBy: PartitioningRule(_group_by, _group_by_by, _group_by_shows_key),
    Distinct: PartitioningRule(
        _distinct, lambda node, column, kind: ways_by(node.input, column, kind), lambda _node: True
    ),
    SetOperation: PartitioningRule(
        _set_operation,
        _set_operation_by,
        lambda node: node.operator is not SetOperator.UNION_ALL,
    ),
    TopN: PartitioningRule(
        _per_group,
        _per_group_by,
        lambda node: bool(node.keys) and set(node.keys) <= set(node.columns),
    ),
    WindowFunctions: PartitioningRule(_per_group, _per_group_by, lambda node: bool(node.keys)),
    SemiJoin: PartitioningRule(_semi_join, _semi_join_by),
    AsofJoin: PartitioningRule(_semi_join, _asof_join_by),
    OuterInserts: PartitioningRule(_outer_inserts, lambda _node, _column, _kind: []),
    SessionWindows: PartitioningRule(_sessions, _sessions_by, lambda node: bool(node.keys)),
}
"""The rule of every node class."""
