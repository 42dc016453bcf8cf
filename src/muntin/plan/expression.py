"""Scalar expressions and predicates over the columns of a node's inputs, all names resolved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

POSITION = "#row"
"""A column that every scan has besides its own: the position of a row in its stream or table."""


@dataclass(frozen=True, order=True)
class ColumnRef:
    """A column of one input of a node; inputs are numbered from 0."""

    source: int
    column: str

    @property
    def flat(self) -> str:
        """Return the name of the column in expressions and batches, e.g. ``0.LocationId``."""
        return f"{self.source}.{self.column}"


@dataclass(frozen=True)
class Expression:
    """A scalar expression in DuckDB's SQL, columns written as quoted flat names.

    ``A.Value + 1`` over the first entry of FROM has the text ``"0.Value" + 1``.
    """

    sql: str
    references: tuple[ColumnRef, ...]
    type: pa.DataType

    @cached_property
    def sources(self) -> frozenset[int]:
        """Return the inputs that it reads."""
        return frozenset(reference.source for reference in self.references)

    @cached_property
    def column(self) -> ColumnRef | None:
        """Return the column, if the expression is nothing but a column."""
        if len(self.references) == 1 and self.sql == quote(self.references[0].flat):
            return self.references[0]
        return None

    def __str__(self) -> str:
        return self.sql


def quote(name: str) -> str:
    """Return the name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def column_expression(reference: ColumnRef, kind: pa.DataType) -> Expression:
    """Return the expression that is one column."""
    return Expression(quote(reference.flat), (reference,), kind)


@dataclass(frozen=True)
class Comparison:
    """``left operator right`` with operator one of ``= <> < <= > >=``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Predicate:
    """One conjunct of WHERE or ON; ``comparison`` if it compares two expressions."""

    expression: Expression
    comparison: Comparison | None = None


@dataclass(frozen=True)
class OutputColumn:
    """One entry of a select list."""

    name: str
    expression: Expression


def select_schema(select: tuple[OutputColumn, ...]) -> pa.Schema:
    """Return the schema of a select list."""
    return pa.schema([pa.field(column.name, column.expression.type) for column in select])


def select_all(schema: pa.Schema) -> tuple[OutputColumn, ...]:
    """Return the select list that passes on every column of a single input."""
    return tuple(
        OutputColumn(field.name, column_expression(ColumnRef(0, field.name), field.type))
        for field in schema
    )
