"""What a query computes above its joins: DISTINCT, GROUP BY, set operators, and selects over sub-selects.

A tree of nodes. Its leaves are select-project-join queries (:class:`muntin.plan.query.Query`) and stored tables; every node says
what its rows look like. At every instant a node's rows are those that SQL makes of the rows of its inputs at that instant.

Expressions over a node's inputs name their columns as expressions over sources do: ``"0.k"`` is the column ``k`` of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa

from muntin.model.window import PartitionedWindow
from muntin.plan.join import JoinPlan
from muntin.plan.query import Expression, OutputColumn, Predicate, Query, Source


@dataclass(frozen=True)
class Leaf:
    """The rows that a select-project-join query has in its answer."""

    query: Query

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the select list."""
        return _schema(self.query.select)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """None: it reads streams."""
        return ()


@dataclass(frozen=True)
class Stored:
    """The rows of a stored table, beside a sub-select in FROM."""

    source: Source

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self.source.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        """None: its rows never change."""
        return ()


@dataclass(frozen=True)
class Combine:
    """A select over entries of FROM of which at least one is a sub-select."""

    inputs: tuple[Node, ...]
    predicates: tuple[Predicate, ...]
    select: tuple[OutputColumn, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the select list."""
        return _schema(self.select)


@dataclass(frozen=True)
class Aggregate:
    """One aggregate: a function by its plain name, and the column of the input that it is over; none for ``COUNT(*)``.

    ``fraction`` is that of a quantile, as the user wrote it; ``order`` has for FIRST and LAST the columns by which rows are in
    order; ``text`` is the whole call, for people.
    """

    function: str
    argument: int | None
    type: pa.DataType
    distinct: bool = False
    fraction: str = ""
    order: tuple[int, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class GroupBy:
    """Rows grouped by the first ``keys`` columns of the input; without keys they are one group, which is always there.

    ``having`` and ``select`` are over one input whose columns are the keys and the aggregates, see :attr:`groups`.
    """

    input: Node
    keys: int
    aggregates: tuple[Aggregate, ...]
    having: Expression | None
    select: tuple[OutputColumn, ...]

    @cached_property
    def groups(self) -> pa.Schema:
        """The columns of the groups: keys under their names in the input, aggregates as ``a0``, ``a1``, ..."""
        keys = [self.input.schema.field(place) for place in range(self.keys)]
        return pa.schema(
            [
                *keys,
                *(
                    pa.field(f"a{number}", aggregate.type)
                    for number, aggregate in enumerate(self.aggregates)
                ),
            ]
        )

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the select list."""
        return _schema(self.select)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """What is grouped."""
        return (self.input,)


@dataclass(frozen=True)
class Distinct:
    """Every row once."""

    input: Node

    @property
    def schema(self) -> pa.Schema:
        """That of the input."""
        return self.input.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        """What may have rows more than once."""
        return (self.input,)


class SetOperator(StrEnum):
    """How two selects are put together; MINUS keeps a left row, as often as it is there, while no equal right row is there."""

    UNION = "UNION"
    UNION_ALL = "UNION ALL"
    INTERSECT = "INTERSECT"
    INTERSECT_ALL = "INTERSECT ALL"
    EXCEPT = "EXCEPT"
    EXCEPT_ALL = "EXCEPT ALL"
    MINUS = "MINUS"


@dataclass(frozen=True)
class SetOperation:
    """Two inputs with the same types; names are those of the left one."""

    operator: SetOperator
    left: Node
    right: Node

    @property
    def schema(self) -> pa.Schema:
        """That of the left input."""
        return self.left.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Left and right."""
        return (self.left, self.right)


Node: TypeAlias = Leaf | Stored | Combine | GroupBy | Distinct | SetOperation


@dataclass(frozen=True, kw_only=True)
class Pipeline(Query):
    """A standing query with more to compute than a join.

    As a :class:`Query` it has the name, clauses and result columns that users see, and the sources of all its leaves; it has no
    predicates, and cannot be planned as a join. What to compute is ``root``.
    """

    root: Node

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, inputs before those who read them."""
        return tuple(_walk(self.root))

    @cached_property
    def leaves(self) -> tuple[Query, ...]:
        """The joins below everything else."""
        return tuple(node.query for node in self.nodes if isinstance(node, Leaf))

    @cached_property
    def has_beginning(self) -> bool:
        """Whether it may have results before any row has come: of aggregates over nothing, or of stored tables."""
        return any(
            isinstance(node, Stored) or (isinstance(node, GroupBy) and not node.keys)
            for node in self.nodes
        )


@dataclass(frozen=True)
class PipelinePlan:
    """How a pipeline is run: the plans of its leaves, in the order of the leaves among its nodes."""

    query: Pipeline
    leaves: tuple[JoinPlan, ...]


def leave_in_order(node: Node) -> bool:
    """Whether rows that leave at an instant are always the oldest of those there: all come from one stream with one end of its window."""
    match node:
        case Leaf():
            streams = [source for source in node.query.sources if not source.stored]
            return len(streams) == 1 and not isinstance(streams[0].window, PartitionedWindow)
        case Combine():
            return len(node.inputs) == 1 and leave_in_order(node.inputs[0])
        case _:
            return False


def _walk(node: Node) -> Iterator[Node]:
    for child in node.inputs:
        yield from _walk(child)
    yield node


def _schema(select: tuple[OutputColumn, ...]) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.expression.type) for column in select])
