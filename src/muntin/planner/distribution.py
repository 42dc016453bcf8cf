"""How a query is distributed over partitions: the largest part of its tree that they can compute.

The ways to partition the streams (:mod:`muntin.planner.partitioning_rules`) are compared by how
much of the tree is local; a window join always is. The operators above the largest local sub-trees
are the *global stage*: it takes the changes of those sub-trees from all partitions.

A stream has one key in the query. A window join that needs another key uses the given one: any key
is correct for a window join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, product

from muntin.errors import SqlError
from muntin.plan.node import Node
from muntin.plan.nodes import Exchange, GroupBy, Join
from muntin.plan.query import Emit, Query
from muntin.plan.sessions import SessionWindows
from muntin.plan.top_n import TopN
from muntin.planner.column_lineage import column_of
from muntin.planner.node_costs import operator_work
from muntin.planner.partial_aggregates import combined_groups, counted_apart, partial_groups
from muntin.planner.partitioning import Partitioning, local_join, routes_of
from muntin.planner.partitioning_rules import MOST, NOTHING, Spread, shows_key, ways, ways_by
from muntin.planner.rewrite import rewrite


@dataclass(frozen=True)
class Distribution:
    """The routes of a query's streams, the parts that partitions run, and the rest.

    ``last`` is the global stage, if one is needed. ``apart``: rows of different partitions are
    never equal.
    """

    routes: tuple[Partitioning, ...]
    parts: tuple[Query, ...]
    last: Query | None = None
    apart: bool = False


def distribution_of(query: Query) -> Distribution:
    """Return the distribution of a query."""
    query = rewrite(query)
    choices = _local_choices(query.root) if query.is_join else _choices(query.root)
    if not choices:
        raise SqlError(
            f"query {query.name} reads sessions of one stream by keys that differ, and partitions "
            "get a stream by one key",
            place=query.place,
            hint="Use a key in common for all of them, or write a query for each",
        )
    choice = max(choices, key=lambda choice: choice.worth)
    spread = choice.spread
    joins = [node for node in query.leaves if isinstance(node, Join)]
    routes = routes_of(
        [
            (source, (join.name, place) in spread.keys)
            for join in joins
            for place, source in enumerate(join.scans)
        ],
        spread.streams,
    )

    def local(root: Node) -> Node:
        return root.transform(lambda node: _local(node, routes, spread))

    if choice.roots[0] is query.root:
        # Changes of one instant may cancel out across partitions: only their sum has inserts.
        gathers = query.emit is Emit.INSERTS and not query.is_join
        part = replace(query, root=local(query.root), emit=Emit.CHANGES if gathers else query.emit)
        return Distribution(routes, (part,), apart=shows_key(part.root))
    parts: list[Query] = []

    def sent(root: Node) -> Exchange:
        """Add a part that partitions compute, and return the node for it in the global stage."""
        name = f"{query.name}\x1f{len(parts)}"  # no query of a user has such a name
        part = replace(
            query, name=name, root=local(root), emit=Emit.CHANGES, sort=(), closes=None, hidden=0
        )
        parts.append(part)
        return Exchange(name, root.schema)

    last = _above(query.root, choice.roots, sent)
    return Distribution(routes, tuple(parts), replace(query, root=last))


@dataclass(frozen=True)
class _Choice:
    """A way to partition the streams below a node, and the largest sub-trees that are local."""

    spread: Spread
    roots: tuple[Node, ...]

    @property
    def worth(self) -> tuple[float, int]:
        """Return the work that is local, then how many sources are hashed."""
        return sum(operator_work(root) for root in self.roots), len(self.spread.keys)


def _local_choices(node: Node) -> list[_Choice]:
    """Return the choices in which a sub-tree is local."""
    return [_Choice(spread, (node,)) for spread in ways(node)]


def _choices(node: Node) -> list[_Choice]:
    """Return some choices for a sub-tree; the last one has no keys, so it fits any other.

    Sessions need keys: they are in partitions or nowhere, so there may be no choice.
    """
    found = _local_choices(node)
    if not node.is_leaf and not isinstance(node, SessionWindows):
        found += _below(node)
    best = sorted(found, key=lambda choice: choice.worth, reverse=True)
    free = next((choice for choice in best if not choice.spread.streams), None)
    rest = [choice for choice in best if choice is not free][: MOST - 1]
    return rest if free is None else [*rest, free]


def _below(node: Node) -> Iterator[_Choice]:
    """Yield the choices in which a node is not local; a grouping may still begin in partitions."""
    if isinstance(node, GroupBy):
        yield from (_Choice(spread, (partial,)) for spread, partial, _ in _partials(node))
    if isinstance(node, TopN) and (partial := _local_top_n(node)) is not None:
        yield from (_Choice(spread, (partial,)) for spread in ways(node.input))
    inputs = [_choices(child) for child in node.inputs if not child.is_table]
    # All combinations of the best few, and of the last, which fit each other.
    last = [tuple(some[-1] for some in inputs)] if all(inputs) else []
    for chosen in [*islice(product(*inputs), MOST * MOST), *last]:
        spread: Spread | None = NOTHING
        for choice in chosen:
            spread = spread.with_(choice.spread) if spread is not None else None
        if spread is not None:
            yield _Choice(spread, tuple(root for choice in chosen for root in choice.roots))


def _partials(node: GroupBy) -> Iterator[tuple[Spread, GroupBy, int | None]]:
    """Yield the ways in which a grouping can begin in partitions, and what they compute then.

    The third value is the column by which rows must be hashed, if that matters.
    """
    for key in (None, *counted_apart(node)):
        partial = partial_groups(node, key)
        if partial is None:
            continue
        column = None if key is None else column_of(node.input, key)
        for spread in ways(node.input) if key is None else ways_by(node.input, column):
            yield spread, partial, key


def _local_top_n(node: TopN) -> TopN | None:
    """Return the rows of each partition of which the first ones of all are some; None: all."""
    if node.stop is None:
        return None
    every = tuple(range(len(node.input.schema)))
    return replace(node, limit=node.stop, offset=0, columns=every, number="")


def _local(node: Node, routes: tuple[Partitioning, ...], spread: Spread) -> Node:
    """Return a node as partitions run it: over streams that are marked where they are broadcast."""
    if not (isinstance(node, Join) and node.is_leaf):
        return node
    places = {place for name, place in spread.keys if name == node.name}
    return local_join(node, routes, places)


def _above(node: Node, roots: tuple[Node, ...], sent: Callable[[Node], Exchange]) -> Node:
    """Return the tree above the local sub-trees, with an exchange for each of them.

    Roots are compared by identity: the partial form of a grouping may be equal to the grouping.
    """
    if any(node is root for root in roots):
        return sent(node)
    if isinstance(node, GroupBy):
        for _, partial, key in _partials(node):
            if partial in roots:
                return combined_groups(node, sent(partial), key)
    if isinstance(node, TopN):
        first = _local_top_n(node)
        if first is not None and first in roots:
            return replace(node, input=sent(first))
    return node.with_children(tuple(_above(child, roots, sent) for child in node.children))
