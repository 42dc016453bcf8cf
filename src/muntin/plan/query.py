"""A standing query: a plan tree with its name and clauses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from muntin.errors import Place
from muntin.model.window import Window
from muntin.plan.expression import OutputColumn, Predicate
from muntin.plan.node import Node
from muntin.plan.nodes import Join, Scan
from muntin.plan.outer_inserts import OuterInserts
from muntin.plan.sessions import SessionWindows
from muntin.plan.top_n import SortKey


class Emit(StrEnum):
    """What a query sends out."""

    INSERTS = "inserts"
    CHANGES = "changes"
    SNAPSHOT = "snapshot"
    FINAL = "final"


class WindowEnd(NamedTuple):
    """The column that tells the end of the window of a row, ``micros`` after its instant."""

    column: int
    micros: int


_START = Place(1, 1)

Freshness: TypeAlias = tuple[tuple[int, Window], ...]
"""The largest age of the rows of some sources in a result, by place."""


@dataclass(frozen=True)
class Query:
    """A standing query; ``every`` is its re-evaluation interval in microseconds, if it has one.

    ``freshness`` has how old rows may be in results under overload, by the place of their source;
    ``leaf_freshness`` has the same for the window joins below operators, by the name of the join.
    ``retracts`` is false for a window join whose rows operators take only as they come.
    ``sort`` orders the rows of each snapshot, and with EMIT FINAL ``closes`` tells when rows are
    final; the last ``hidden`` columns of the root are only for that.
    """

    name: str
    text: str
    root: Node
    emit: Emit = Emit.INSERTS
    every: int | None = None
    freshness: Freshness = ()
    leaf_freshness: tuple[tuple[str, Freshness], ...] = ()
    retracts: bool = True
    sort: tuple[SortKey, ...] = ()
    closes: WindowEnd | None = None
    hidden: int = 0
    options: tuple[tuple[str, str], ...] = ()
    place: Place = _START
    views: tuple[str, ...] = ()
    """The views and queries that it reads by name; ``text`` has their selects in front."""

    @cached_property
    def output_schema(self) -> pa.Schema:
        """Return the schema of the results: ``_op``, ``_ts``, then the root's columns."""
        fields = [pa.field("_op", pa.string()), pa.field("_ts", pa.timestamp("us"))]
        columns = list(self.root.schema)
        return pa.schema([*fields, *columns[: len(columns) - self.hidden]])

    @cached_property
    def sources(self) -> tuple[Scan, ...]:
        """All entries of FROM that are streams or tables."""
        return tuple(node for node in self.root.walk() if isinstance(node, Scan))

    @cached_property
    def leaves(self) -> tuple[Node, ...]:
        """Return the nodes whose changes come from outside the operators above joins."""
        return tuple(node for node in self.root.dataflow() if node.is_leaf)

    @cached_property
    def is_join(self) -> bool:
        """Return whether it is a window join alone, without operators above it."""
        return isinstance(self.root, Join) and self.root.is_leaf and not self.root.name

    @property
    def join(self) -> Join:
        """Return the window join, if the query is one alone."""
        assert isinstance(self.root, Join), "asked of window joins"
        return self.root

    @cached_property
    def joins(self) -> tuple[Query, ...]:
        """Return each window join of the tree as a query; those below operators emit changes."""
        if self.is_join:
            return (self,)
        joins = [node for node in self.leaves if isinstance(node, Join)]
        fresh = dict(self.leaf_freshness)
        joined = [node for node in self.root.walk() if isinstance(node, OuterInserts)]
        coming = {one for node in joined for one in (node.matches, *node.history)}
        coming |= {node.input for node in self.root.walk() if isinstance(node, SessionWindows)}
        return tuple(
            Query(
                join.name, self.text, replace(join, name=""), Emit.CHANGES, self.every,
                freshness=fresh.get(join.name, ()), retracts=join not in coming, place=self.place,
            )
            for join in joins
        )  # fmt: skip

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """Return the conditions of the window join, if the query is one alone."""
        return self.join.predicates

    @property
    def select(self) -> tuple[OutputColumn, ...]:
        """Return the select list of the window join, if the query is one alone."""
        return self.join.select

    @cached_property
    def has_beginning(self) -> bool:
        """Return whether aggregates over nothing or tables give results before any row arrives."""
        return any(node.begins for node in self.root.dataflow())
