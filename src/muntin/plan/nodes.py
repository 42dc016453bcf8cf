"""The nodes of plan trees.

What a node means is defined in four registries, each keyed by node class, and nowhere else: its
operator (:mod:`muntin.operators.registry`), its partitioning rule
(:mod:`muntin.planner.partitioning_rules`), its cost (:mod:`muntin.planner.node_costs`) and its
oracle clause (:mod:`muntin.testing.oracle_clauses`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import pyarrow as pa

from muntin.model.window import PartitionedWindow, TimeWindow, Window
from muntin.plan.description import Fact
from muntin.plan.expression import Expression, OutputColumn, Predicate, select_schema
from muntin.plan.node import Node


@dataclass(frozen=True)
class Scan(Node):
    """One entry of FROM: a stream under its window, or a stored table."""

    alias: str
    relation: str
    stored: bool
    window: Window
    schema: pa.Schema

    @property
    def label(self) -> str:
        """Return the relation."""
        return f"{'table' if self.stored else 'stream'} {self.relation}"

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Return the relation."""
        return (Fact("relation", self.relation),)

    @property
    def begins(self) -> bool:
        """Return whether it is a stored table."""
        return self.stored

    @property
    def is_table(self) -> bool:
        """Return whether it is a stored table."""
        return self.stored

    @property
    def parameters(self) -> Hashable:
        """All but the alias, which has no effect on rows."""
        return Scan, self.relation, self.stored, self.window, tuple(self.schema.names)


class JoinKind(StrEnum):
    """Which combinations of rows a join keeps."""

    INNER = "inner"


@dataclass(frozen=True)
class Join(Node):
    """A join of n sources, and the select list over it.

    A join of scans of which at least one is a stream is a *window join*: it takes rows from
    streams. Otherwise the sources are other nodes and stored tables, and it takes their changes.
    ``on`` and ``where`` stay apart until a planner rule merges them, which is sound for inner joins
    only. ``name`` names a window join below other operators, such as ``q/1``; a query that is
    nothing but a window join leaves it empty.
    """

    sources: tuple[Node, ...]
    on: tuple[Predicate, ...]
    where: tuple[Predicate, ...]
    select: tuple[OutputColumn, ...]
    kind: JoinKind = JoinKind.INNER
    name: str = ""

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the columns of the select list."""
        return select_schema(self.select)

    @cached_property
    def scans(self) -> tuple[Scan, ...]:
        """Return the sources that are streams or tables; of a window join, all."""
        return tuple(source for source in self.sources if isinstance(source, Scan))

    @cached_property
    def is_leaf(self) -> bool:
        """Return whether it is a window join."""
        return any(not scan.stored for scan in self.scans)

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """Return the conjunction that combinations of rows must satisfy, with ON merged into it."""
        assert not self.on, "the planner merges ON into WHERE first"
        return self.where

    @property
    def label(self) -> str:
        """Return what it is to the operators above it, or what it does with its inputs."""
        if self.is_leaf:
            return "join" if len(self.sources) > 1 else "rows"
        return "join of the inputs"

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Conditions and columns."""
        return select_facts((*self.on, *self.where), self.select)

    @property
    def expires_in_order(self) -> bool:
        """Return whether all rows come from one stream with one window, which alone ends them."""
        windows = [scan.window for scan in self.scans if not scan.stored]
        if len(windows) != 1 or isinstance(windows[0], PartitionedWindow):
            return False
        return not isinstance(windows[0], TimeWindow) or windows[0].until is None


@dataclass(frozen=True)
class Project(Node):
    """The rows of the input that satisfy ``where``, under a select list."""

    input: Node
    where: tuple[Predicate, ...]
    select: tuple[OutputColumn, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the columns of the select list."""
        return select_schema(self.select)

    @property
    def label(self) -> str:
        """Return what it does."""
        return "select over the input"

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Conditions and columns."""
        return select_facts(self.where, self.select)

    @property
    def expires_in_order(self) -> bool:
        """As the input."""
        return self.input.expires_in_order


@dataclass(frozen=True)
class Aggregate:
    """One aggregate: a function and the column of the input it is over; none for ``COUNT(*)``.

    ``fraction`` is that of a quantile, as the user wrote it; ``order`` has for FIRST and LAST the
    columns that order the rows; ``text`` is the call as users read it.
    """

    function: str
    argument: int | None
    type: pa.DataType
    distinct: bool = False
    fraction: str = ""
    order: tuple[int, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class GroupBy(Node):
    """Rows grouped by the first ``keys`` columns of the input; without keys, one permanent group.

    ``having`` and ``select`` are over one input whose columns are the keys and the aggregates, see
    :attr:`groups`.
    """

    input: Node
    keys: int
    aggregates: tuple[Aggregate, ...]
    having: Expression | None
    select: tuple[OutputColumn, ...]

    @cached_property
    def groups(self) -> pa.Schema:
        """Return the columns of the groups: keys as in the input, then ``a0``, ``a1``, ..."""
        keys = [self.input.schema.field(place) for place in range(self.keys)]
        aggregates = [pa.field(f"a{n}", one.type) for n, one in enumerate(self.aggregates)]
        return pa.schema([*keys, *aggregates])

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the columns of the select list."""
        return select_schema(self.select)

    @property
    def label(self) -> str:
        """Return the number of its keys, in words."""
        return f"group by {self.keys} of the columns below" if self.keys else "one group"

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Keys, aggregates, HAVING and columns."""
        names = [aggregate.text for aggregate in self.aggregates]
        having = self.having
        return (
            Fact("keys", self.input.schema.names[: self.keys]),
            Fact("aggregates", names, ", ".join(names)),
            *((Fact("having", having.sql, f"having {_unquoted(having)}"),) if having else ()),
            Fact("columns", [column.name for column in self.select]),
        )

    @property
    def begins(self) -> bool:
        """Return whether it aggregates over nothing before any row has arrived."""
        return not self.keys


@dataclass(frozen=True)
class Distinct(Node):
    """Every row once."""

    input: Node

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the input."""
        return self.input.schema

    @property
    def label(self) -> str:
        """Return the keyword."""
        return "distinct"


class SetOperator(StrEnum):
    """How two selects are combined.

    MINUS keeps a left row, with its duplicates, as long as no equal right row is present.
    """

    UNION = "UNION"
    UNION_ALL = "UNION ALL"
    INTERSECT = "INTERSECT"
    INTERSECT_ALL = "INTERSECT ALL"
    EXCEPT = "EXCEPT"
    EXCEPT_ALL = "EXCEPT ALL"
    MINUS = "MINUS"


@dataclass(frozen=True)
class SetOperation(Node):
    """Two inputs with the same types; names are those of the left one."""

    operator: SetOperator
    left: Node
    right: Node

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the left input."""
        return self.left.schema

    @property
    def label(self) -> str:
        """Return the keyword."""
        return self.operator.value.lower()


@dataclass(frozen=True)
class Exchange(Node):
    """The rows of a part of the tree that partitions compute, gathered from all of them."""

    part: str
    schema: pa.Schema

    @property
    def is_leaf(self) -> bool:
        """Yes: partitions send its changes."""
        return True

    @property
    def label(self) -> str:
        """Return where its rows come from."""
        return "rows from all partitions"


def select_facts(
    predicates: tuple[Predicate, ...], select: tuple[OutputColumn, ...]
) -> tuple[Fact, ...]:
    """Return the facts of a node with conditions and a select list."""
    conditions = [_unquoted(predicate.expression) for predicate in predicates]
    text = f"where {' and '.join(conditions)}" if conditions else ""
    return Fact("conditions", conditions, text), Fact("columns", [column.name for column in select])


def _unquoted(expression: Expression) -> str:
    return expression.sql.replace('"', "")
