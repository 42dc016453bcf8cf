"""A bound select-project-join query: what the user asked, with every name resolved."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import pyarrow as pa

from muntin.errors import Place
from muntin.model.window import Window

POSITION = "#row"
"""A column that every source has beside its own: the place of a row among all rows of its stream or table."""


@dataclass(frozen=True, order=True)
class ColumnRef:
    """A column of one source of the query, the source named by its place in FROM (from 0)."""

    source: int
    column: str

    @property
    def flat(self) -> str:
        """The name under which expressions and batches know the column, e.g. ``0.LocationId``."""
        return f"{self.source}.{self.column}"


@dataclass(frozen=True)
class Expression:
    """A scalar expression in DuckDB's SQL, columns written as quoted flat names.

    ``A.Value + 1`` over the first source of FROM has the text ``"0.Value" + 1``.
    """

    sql: str
    references: tuple[ColumnRef, ...]
    type: pa.DataType

    @cached_property
    def sources(self) -> frozenset[int]:
        """The places in FROM of the sources it reads."""
        return frozenset(reference.source for reference in self.references)

    @cached_property
    def column(self) -> ColumnRef | None:
        """The column, when the expression is nothing but a column."""
        if len(self.references) == 1 and self.sql == quote(self.references[0].flat):
            return self.references[0]
        return None

    def __str__(self) -> str:
        return self.sql


def quote(name: str) -> str:
    """The name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Comparison:
    """``left operator right`` with operator one of ``= <> < <= > >=``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Predicate:
    """One conjunct of WHERE and ON; ``comparison`` when it is a comparison of two expressions."""

    expression: Expression
    comparison: Comparison | None = None


@dataclass(frozen=True)
class Source:
    """One entry of FROM: a stream under its window, or a stored table."""

    alias: str
    relation: str
    stored: bool
    window: Window
    schema: pa.Schema


@dataclass(frozen=True)
class OutputColumn:
    """One entry of the select list."""

    name: str
    expression: Expression


class Emit(StrEnum):
    """What a query sends out."""

    INSERTS = "inserts"
    CHANGES = "changes"
    SNAPSHOT = "snapshot"


_START = Place(1, 1)


@dataclass(frozen=True)
class Query:
    """A standing query; ``every`` is its interval of re-evaluation in microseconds, if it has one."""

    name: str
    text: str
    sources: tuple[Source, ...]
    predicates: tuple[Predicate, ...]
    select: tuple[OutputColumn, ...]
    emit: Emit = Emit.INSERTS
    every: int | None = None
    freshness: tuple[tuple[int, Window], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    place: Place = _START

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The schema of the results: ``_op``, ``_ts``, then the select list."""
        fields = [pa.field("_op", pa.string()), pa.field("_ts", pa.timestamp("us"))]
        return pa.schema(
            fields + [pa.field(column.name, column.expression.type) for column in self.select]
        )
