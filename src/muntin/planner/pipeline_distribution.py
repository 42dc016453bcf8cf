"""How the rows of a pipeline are spread over partitions, and which part of it partitions can compute.

A sub-tree is *local* when every partition can compute a part of its rows from the rows at home there, and all partitions together have
each of them once. A grouping is local when one of its keys can be traced to the streams (:mod:`muntin.planner.column_lineage`), DISTINCT
and set operators when one of their columns can. The ways to spread the streams are compared by how much of the tree is local; a
leaf always is. What is above the largest local sub-trees is the *last stage*: it takes their changes from all partitions.

A stream has one key in the whole query. A leaf that wants another takes the one there is: any will do for a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, product

from muntin.plan.pipeline import (
    Combine,
    Distinct,
    GroupBy,
    Leaf,
    Node,
    Pipeline,
    SetOperation,
    SetOperator,
    Stored,
)
from muntin.plan.query import Emit, OutputColumn, Query
from muntin.planner.column_lineage import MOST, NOTHING, Spread, column_of, plain, ways, ways_by
from muntin.planner.distribution import Distribution, Route, distribute, local_join, routes_of
from muntin.planner.partial_aggregates import combined_groups, counted_apart, partial_groups


@dataclass(frozen=True)
class PipelineDistribution:
    """The routes of a pipeline's streams, what partitions compute, and what is left to the last stage, if anything is."""

    routes: tuple[Route, ...]
    local: tuple[Pipeline, ...]
    last: Pipeline | None

    @property
    def apart(self) -> bool:
        """Whether rows of different partitions are never equal: they show by what they are spread."""
        return self.last is None and _shows_home(self.local[0].root)

    def parts(self, query: Query) -> tuple[Query, ...]:
        """The pipelines that a partition runs."""
        del query
        return self.local


AnyDistribution = Distribution | PipelineDistribution


def distribution_of(query: Query) -> AnyDistribution:
    """How to spread a query of either kind."""
    return distribute_pipeline(query) if isinstance(query, Pipeline) else distribute(query)


def distribute_pipeline(query: Pipeline) -> PipelineDistribution:
    """How to spread a pipeline."""
    choice = max(_choices(query.root), key=lambda choice: choice.worth)
    sources = [
        (leaf, place, source) for leaf in query.leaves for place, source in enumerate(leaf.sources)
    ]
    spread = choice.spread
    routes = routes_of(
        [(source, (leaf.name, place) in spread.keys) for leaf, place, source in sources],
        spread.homes,
    )
    if choice.roots[0] is query.root:
        # Two partitions may make changes of an instant that cancel out; so what is inserted shows only where all of them are.
        emit = Emit.CHANGES if query.emit is Emit.INSERTS else query.emit
        return PipelineDistribution(
            routes, (replace(query, root=_local(query.root, routes, spread), emit=emit),), None
        )
    parts: list[Pipeline] = []

    def sent(root: Node) -> Leaf:
        """A part that partitions compute, and the leaf that stands for it in the last stage."""
        local = _local(root, routes, spread)
        parts.append(
            replace(
                query,
                name=part_name(query, len(parts)),
                root=local,
                select=_shown(root),
                emit=Emit.CHANGES,
            )
        )
        return Leaf(replace(parts[-1], sources=()))

    last = _above(query.root, choice.roots, sent)
    return PipelineDistribution(routes, tuple(parts), replace(query, root=last))


def part_name(query: Query, number: int) -> str:
    """The name under which partitions run a part of a query; no query of a user has it."""
    return f"{query.name}\x1f{number}"


@dataclass(frozen=True)
class _Choice:
    """A way to spread the streams below a node, and the largest sub-trees that are local then."""

    spread: Spread
    roots: tuple[Node, ...]

    @property
    def worth(self) -> tuple[int, int]:
        """How many operators are local, then how many sources are spread."""
        return sum(_operators(root) for root in self.roots), len(self.spread.keys)


def _choices(node: Node) -> list[_Choice]:
    """Some choices for a sub-tree; the last one goes with any other, since its keys do not matter."""
    found = [_Choice(spread, (node,)) for spread in ways(node)]
    if not isinstance(node, Leaf):
        found += _below(node)
    best = sorted(found, key=lambda choice: choice.worth, reverse=True)
    free = next(choice for choice in best if not choice.spread.homes)
    return [*[choice for choice in best if choice is not free][: MOST - 1], free]


def _below(node: Node) -> Iterator[_Choice]:
    """The choices in which a node is not local; a grouping may begin in the partitions all the same."""
    if isinstance(node, GroupBy):
        yield from (_Choice(spread, (partial,)) for spread, partial, _ in _partials(node))
    inputs = [_choices(child) for child in node.inputs if not isinstance(child, Stored)]
    # All combinations of the best few; and of the last, which go together.
    for chosen in [*islice(product(*inputs), MOST * MOST), tuple(some[-1] for some in inputs)]:
        spread: Spread | None = NOTHING
        for choice in chosen:
            spread = spread.with_(choice.spread) if spread is not None else None
        if spread is not None:
            yield _Choice(spread, tuple(root for choice in chosen for root in choice.roots))


def _partials(node: GroupBy) -> Iterator[tuple[Spread, GroupBy, int | None]]:
    """The ways in which a grouping can begin in the partitions, what these compute then, and by which column it is spread, if that matters."""
    for home in (None, *counted_apart(node)):
        partial = partial_groups(node, home)
        for spread in (
            []
            if partial is None
            else ways(node.input)
            if home is None
            else ways_by(node.input, column_of(node.input, home))
        ):
            assert partial is not None, "there are ways only then"
            yield spread, partial, home


def _shows_home(node: Node) -> bool:
    """Whether a local node has the column by which its rows are spread: that is one of the columns, or of the keys."""
    match node:
        case Distinct():
            return True
        case SetOperation(operator):
            return operator is not SetOperator.UNION_ALL
        case GroupBy(child, keys, _, _, select):
            shown = {
                column.expression.column.column for column in select if column.expression.column
            }
            return bool(keys) and set(child.schema.names[:keys]) <= shown
        case _:
            return False


def _operators(node: Node) -> int:
    return sum(map(_operators, node.inputs)) + (not isinstance(node, (Leaf, Stored)))


def _local(node: Node, routes: tuple[Route, ...], spread: Spread) -> Node:
    """A sub-tree as partitions run it: over streams that have the mark where they go everywhere."""
    if isinstance(node, Leaf):
        places = {place for leaf, place in spread.keys if leaf == node.query.name}
        return Leaf(local_join(node.query, routes, places))
    return _with_inputs(node, tuple(_local(child, routes, spread) for child in node.inputs))


def _above(node: Node, roots: tuple[Node, ...], sent: Callable[[Node], Leaf]) -> Node:
    """What is above the local sub-trees, with a leaf for each of them.

    Roots are told by identity: what partitions begin of a grouping may look just like it.
    """
    if any(node is root for root in roots):
        return sent(node)
    if isinstance(node, GroupBy):
        for _, partial, home in _partials(node):
            if partial in roots:
                return combined_groups(node, sent(partial), home)
    return _with_inputs(node, tuple(_above(child, roots, sent) for child in node.inputs))


def _with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    match node:
        case GroupBy():
            return replace(node, input=inputs[0])
        case Distinct():
            return Distinct(inputs[0])
        case SetOperation():
            return SetOperation(node.operator, *inputs)
        case Combine():
            return replace(node, inputs=inputs)
        case Leaf() | Stored():
            return node


def _shown(node: Node) -> tuple[OutputColumn, ...]:
    return tuple(OutputColumn(field.name, plain(field)) for field in node.schema)
